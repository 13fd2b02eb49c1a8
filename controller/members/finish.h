/* finish.h - ends a run: announces the end once, to consoles, agents and the supervisor. */
#ifndef CONTROLLER_MEMBERS_FINISH_H
#define CONTROLLER_MEMBERS_FINISH_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct iteration;
struct members;
struct run;

struct ending {
	const char *stopping; /* reason for the requested end; NULL: none was requested */
	int exit_status;
	bool unrecorded; /* the run ends because its record cannot be written */
	int64_t at_us;   /* when the run ended */
};

/* Changes the phase, records the change, and sends consoles the status at the next turn. */
void set_phase(struct run *run, enum run_phase phase);
/* Returns true if all requested iterations are committed. */
bool run_is_done(const struct run *run);
/* Ends the run now and sends MSG_STOP to the agents. status: the exit status of the program; not 0:
 * why is an error. Does nothing if the run has ended already. */
void controller_finish(struct members *members, int status, const char *why);
/* Tells the supervisor that the run is over. To be called once the store is closed. */
void controller_closed(struct run *run);
/* Abandons the work under way, and ends the run once the last commit is on the agents' disks. A
 * second call ends the run at once. why: borrowed until the program ends. */
void controller_stop(struct iteration *it, const char *why);
/* Ends this controller because it cannot write. The agents are not stopped: they keep their
 * weights for a controller that can. */
void controller_unrecorded(struct members *members, const char *why);

#endif
