/* standby_sum.h - the state of a standby copy's sum and step: a table of states and events.
 *
 * A copy receives the sum of each reduction of its stage, and reports the sum of squares of the
 * received sum. After the commit the copy steps. Meanwhile the worker may store fetched pieces in
 * the copy. A sum is due as soon as its iteration is committed. From then on the copy takes no
 * further order until it has stepped.
 */
#ifndef AGENT_STANDBY_SUM_H
#define AGENT_STANDBY_SUM_H

#include <stdbool.h>

enum standby_sum {
	STANDBY_SUM_NONE,
	STANDBY_SUM_ARRIVING,    /* a REDUCE has arrived; the slices' sums arrive */
	STANDBY_SUM_DUE,         /* as ARRIVING, and the sum's iteration is committed */
	STANDBY_SUM_NORMING,     /* the worker computes the sum of squares */
	STANDBY_SUM_NORMING_DUE, /* as NORMING, and the sum's iteration is committed */
	/* The sum of squares was reported; the copy waits for the commit. */
	STANDBY_SUM_READY,
	/* As READY, and the sum's iteration is committed. The copy steps as soon as it has at
	 * least one piece of the stage and the worker is free. */
	STANDBY_SUM_READY_DUE,
	STANDBY_SUM_STEPPING, /* the worker steps the copy, and may store pieces too */
	/* In the next four states the worker stores pieces. For the rest, these states are like
	 * NONE, ARRIVING, DUE and READY, in this order. */
	STANDBY_SUM_STORING,
	STANDBY_SUM_STORING_ARRIVING,
	STANDBY_SUM_STORING_DUE,
	STANDBY_SUM_STORING_READY,
	STANDBY_SUM_STATES
};

enum standby_event {
	STANDBY_REDUCE, /* the controller orders a sum */
	STANDBY_COMMIT, /* the controller commits the sum's iteration */
	/* All slices of the sum have arrived, and the worker begins the sum of squares. */
	STANDBY_NORM,
	STANDBY_NORMED,   /* the worker has computed the sum of squares */
	STANDBY_STORE,    /* the worker begins to store pieces */
	STANDBY_STEP,     /* the worker begins the step */
	STANDBY_FOLLOWED, /* the worker has stored the pieces, or has made the step */
	/* A newer order for a copy has arrived, so the copy stops waiting for the sum. */
	STANDBY_ABANDON,
	STANDBY_FORGET, /* the sum is no longer useful and is dropped */
	STANDBY_EVENTS
};

/* Changes the state as the table says. Returns false if the event must not occur in this state. */
bool standby_sum_apply(enum standby_sum *state, enum standby_event event);

/* Returns true if the iteration of the sum is committed and the copy has not stepped yet. */
bool standby_sum_is_due(enum standby_sum state);
/* Returns true if the worker runs a job that stores pieces or makes the step. */
bool standby_sum_is_followed(enum standby_sum state);
/* Returns true if the worker runs a job of the copy. The job uses the copy, its pieces and its
 * sum. */
bool standby_sum_is_in_use(enum standby_sum state);

#endif
