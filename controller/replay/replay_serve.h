/* replay_serve.h - skippipe-controller --replay: a recorded run, served to consoles as if it ran.
 *
 * Every console has a cursor of its own, so that two people can look at different moments; it moves
 * by COMMAND_SEEK, SPEED, PAUSE, RESUME and STEP (to the next commit). Candidates are planned from the plan in force at the
 * asker's cursor. Every other act is refused: the past stays as it was.
 */
#ifndef CONTROLLER_REPLAY_SERVE_H
#define CONTROLLER_REPLAY_SERVE_H

#include "base/error.h"
#include "base/log.h"
#include "controller/options.h"

/* Until a signal can be read from `signals` (a signalfd). 0, or why it could not begin. */
int replay_serve(const struct options *o, const struct log *log, int signals, struct error *err);

#endif
