/* standby_private.h - a copy's state, for standby.c and its tests. */
#ifndef AGENT_STANDBY_PRIVATE_H
#define AGENT_STANDBY_PRIVATE_H

#include "agent/sums/reduction.h"
#include "agent/weights/fetch.h"
#include "agent/weights/standby.h"

struct standby {
	enum standby_standing standing;
	struct msg_keep order;    /* the newest */
	uint8_t stage;            /* MSG_NO_STAGE */
	size_t parameters;        /* P */
	uint64_t iteration, hash; /* once it is whole */
	struct fetch fetch;
	bool *taken; /* pieces that the job under way puts in */
	struct slices *slices;
	enum reducing reducing; /* NONE, SUMS, NORMING, DONE */
	double sum_squares;
	bool step_wanted; /* once the sum is here */
	bool following;   /* the worker is at it */
	int64_t heard_us; /* of a sum */
	int64_t piece_us; /* that one takes on the way */
	uint32_t most_held; /* pieces at any time, */
	int64_t more_us;    /* and when they became more */
	struct msg_commit commit;
};

#endif
