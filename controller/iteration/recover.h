/* recover.h - restores a stage that has lost its last replica. */
#ifndef CONTROLLER_ITERATION_RECOVER_H
#define CONTROLLER_ITERATION_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct iteration;
struct run;

/* A stage has no replica. */
struct stall {
	enum run_phase in; /* phase of the run that was interrupted */
	int64_t since_us;
	bool taken_over; /* some node is restoring the lost stage */
	/* Time of the next request for a node; time of the next try to average the neighbours. */
	int64_t next_ask_us, next_average_us;
};

void recover_turn(struct iteration *it); /* call while stalled */
/* Returns how long the controller waits for a silent node when its stage is lost. Public for tests.
 */
int64_t recover_patience_us(const struct run *run);

#endif
