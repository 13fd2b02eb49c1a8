/* recover.h - a stage has lost its last replica: who takes it over, and from what. */
#ifndef CONTROLLER_WEIGHTS_RECOVER_H
#define CONTROLLER_WEIGHTS_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct iteration;
struct run;

/* A stage has no replica. */
struct stall {
	enum run_phase in; /* the phase that it interrupted */
	int64_t since_us;
	bool taken_over; /* somebody takes the lost stage over */
	int64_t next_ask_us, next_anew_us; /* for a node; to make the stage of its neighbours */
};

void recover_turn(struct iteration *it); /* while stalled */
/* How long a node that may only sleep is waited for when its stage is lost. Public for tests. */
int64_t recover_patience_us(const struct run *run);

#endif
