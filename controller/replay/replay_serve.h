/* replay_serve.h - skippipe-controller --replay: serves a recorded run to consoles.
 *
 * Each console has its own cursor, so that two people can look at different times. COMMAND_SEEK,
 * SPEED, PAUSE, RESUME and STEP (to the next commit) move the cursor. Comparisons are planned from
 * the plan in force at the console's cursor. All other commands are refused, because a recorded run
 * cannot change.
 */
#ifndef CONTROLLER_REPLAY_SERVE_H
#define CONTROLLER_REPLAY_SERVE_H

#include "base/error.h"
#include "base/log.h"
#include "controller/options.h"

/* Serves consoles until a signal can be read from `signals` (a signalfd). Returns 0, or a negative
 * errno if the server could not start. */
int replay_serve(const struct options *o, const struct log *log, int signals, struct error *err);

#endif
