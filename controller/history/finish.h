/* finish.h - the end of a run: said once, to everyone. */
#ifndef CONTROLLER_HISTORY_FINISH_H
#define CONTROLLER_HISTORY_FINISH_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct controller;

struct ending {
	const char *stopping; /* the run is to end, and why; NULL */
	int exit_status;
	bool unrecorded; /* it ends because the run cannot be recorded */
	int64_t at_us;   /* it has ended */
};

void set_phase(struct controller *c, enum run_phase phase);
bool run_is_done(const struct controller *c); /* all iterations that were asked for are committed */
void controller_finish(struct controller *c, int status, const char *why);
/* The store is closed: whoever supervises need not begin it again. */
void controller_closed(struct controller *c);
/* What is under way is given up; once the last commit is on the agents' disks the run ends. Said twice: at once.
 * why: borrowed for good. */
void controller_stop(struct controller *c, const char *why);
/* The disk is full, or worse: ends, and leaves the agents to a controller that can write. */
void controller_unrecorded(struct controller *c, const char *why);

#endif
