/* standby_private.h - a copy's state, for standby.c and its tests. */
#ifndef AGENT_STANDBY_PRIVATE_H
#define AGENT_STANDBY_PRIVATE_H

#include "agent/sums/slices.h"
#include "agent/weights/fetch.h"
#include "agent/weights/standby.h"
#include "agent/weights/standby_sum.h"

struct standby {
	enum standby_standing standing;
	struct msg_keep order;    /* the newest order */
	uint8_t stage;            /* stage of the copy; MSG_NO_STAGE: none */
	size_t parameters;        /* number of parameters P of the stage */
	uint64_t iteration, hash; /* iteration and hash of a complete copy */
	struct fetch fetch;
	bool *taken; /* (pieces) true for the pieces that the running job stores */
	struct slices *slices;
	enum standby_sum sum; /* state of `slices`, and of the jobs that follow the run */
	double sum_squares;
	int64_t heard_us;   /* when the last part of a sum, or the last commit, arrived */
	int64_t piece_us;   /* measured transfer time of a piece */
	uint32_t most_held; /* largest number of pieces held so far */
	int64_t last_growth_us; /* when most_held last grew */
	struct msg_commit commit;
	struct standby_uses uses;
};

#endif
