/* phase.h - the phase of the run, and its end. members/finish.c ends the run. */
#ifndef CONTROLLER_RUN_PHASE_H
#define CONTROLLER_RUN_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct run;

struct ending {
	const char *stopping; /* reason for which an end was requested; NULL: none was requested */
	int exit_status;
	bool unrecorded; /* the run is ending because its record cannot be written */
	int64_t at_us;   /* time at which the run ended */
	/* The run continues with other stages: this controller ends, and another controller begins
	 * in the same process (joining/recut.h). */
	bool restarts;
};

/* Changes the phase, records the change, and sends consoles the status at the next turn. */
void set_phase(struct run *run, enum run_phase phase);
/* Returns true if all requested iterations are committed. */
bool run_is_done(const struct run *run);
/* Tells the supervisor that the run is over. Call it once the store is closed. */
void controller_closed(struct run *run);

#endif
