/* standby_private.h - the state of a standby copy, for standby.c and its tests. */
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
	size_t parameters;        /* P, the number of parameters of the stage */
	uint64_t iteration, hash; /* iteration of a complete copy, and hash of its weights */
	struct fetch fetch;
	bool *taken; /* one flag for each piece: true if the running job stores the piece */
	struct slices *slices;
	/* State of the sum in `slices`, and of the jobs that step the copy or store pieces. */
	enum standby_sum sum;
	double sum_squares;
	/* Time at which the newest part of a sum or the newest commit arrived. */
	int64_t heard_us;
	/* Average transfer time of a piece when most_held last grew. */
	int64_t piece_us;
	uint32_t most_held;     /* largest number of pieces that the fetch has had */
	int64_t last_growth_us; /* time at which most_held last grew */
	struct msg_commit commit;
	struct standby_uses uses;
};

#endif
