/* finish.h - the end of a run: said once, to everyone. */
#ifndef CONTROLLER_HISTORY_FINISH_H
#define CONTROLLER_HISTORY_FINISH_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct iteration;
struct members;
struct run;

struct ending {
	const char *stopping; /* the run is to end, and why; NULL */
	int exit_status;
	bool unrecorded; /* it ends because the run cannot be recorded */
	int64_t at_us;   /* it has ended */
};

void set_phase(struct run *run, enum run_phase phase);
bool run_is_done(const struct run *run); /* all iterations that were asked for are committed */
void controller_finish(struct members *members, int status, const char *why);
/* The store is closed: whoever supervises need not begin it again. */
void controller_closed(struct run *run);
/* What is under way is given up; once the last commit is on the agents' disks the run ends. Said twice: at once.
 * why: borrowed for good. */
void controller_stop(struct iteration *it, const char *why);
/* The disk is full, or worse: ends, and leaves the agents to a controller that can write. */
void controller_unrecorded(struct members *members, const char *why);

#endif
