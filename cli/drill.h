/* drill.h - `skippipe drill FILE`: a recorded sequence of acts and faults, run again headless on an
 * embedded cluster and held to limits. For CI: exit status 0 within the limits, 1 not, 2 usage.
 *
 *     {"format": "skippipe.drill/1", "name": "...",
 *      "run": {"agents": 20, "stages": [5,3,3,3,3,3], "skip": 2, "iterations": 30,
 *              "time_scale": 0, "seed": 1},
 *      "acts": ["10:kill:4", "16:recover:4"],             as --at of the controller
 *      "limits": {"iteration_s": 30, "slowest_s": 3, "loss": 3.5, "recovery_s": 2}}
 *
 * Every key of run and limits may be left out. iteration_s: the median, plan seconds; slowest_s: the
 * longest commit to commit, real; loss: the last validation; recovery_s: from a node's death or mark to
 * the next commit, real. A run writes such a file itself: RUN-DIR/drill.json.
 */
#ifndef CLI_DRILL_H
#define CLI_DRILL_H

int drill_main(char **argv); /* what follows the verb; gives the exit status */

#endif
