/* drill.h - `skippipe drill FILE`: repeats a recorded sequence of commands and faults on a demo
 * cluster without a console, and checks the run against limits. For continuous integration: the
 * exit status is 0 within the limits, 1 outside them, 2 for a bad file or wrong usage.
 *
 *     {"format": "skippipe.drill/1", "name": "...",
 *      "run": {"agents": 20, "stages": [5,3,3,3,3,3], "skip": 2, "iterations": 30,
 *              "time_scale": 0, "seed": 1, "wire": "q8"},
 *      "acts": ["10:kill:4", "16:recover:4"],             as the controller's option --at
 *      "limits": {"iteration_s": 30, "slowest_s": 3, "loss": 3.5, "recovery_s": 2}}
 *
 * Every key of `run` and `limits` is optional; docs/formats.md lists the keys of `run`. The limits:
 *
 *     iteration_s  median duration of an iteration, in plan seconds (real seconds / time_scale)
 *     slowest_s    longest time from one commit to the next, in real seconds
 *     loss         last validation loss
 *     recovery_s   longest time until the next commit after a node died or the operator marked a
 *                  node as failed, in real seconds
 *
 * A run with acts writes a drill file of its own acts, RUN-DIR/drill.json.
 */
#ifndef CLI_DRILL_H
#define CLI_DRILL_H

/* Runs `skippipe drill`. argv: the verb and the words after it; ends with NULL. Returns the exit
 * status. */
int drill_main(char **argv);

#endif
