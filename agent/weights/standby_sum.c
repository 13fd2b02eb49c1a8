/* standby_sum.c - decides what an agent with a standby copy does next with the sum of gradients.
 *
 * Messages, sums and ends of jobs arrive in any order. A table has one row for each state and
 * event that may occur together. Any other pair is an error in the program, and an assertion finds
 * it.
 */
#include "agent/weights/standby_sum.h"

#include <stddef.h>

#define IN(STATE) (1u << STANDBY_SUM_##STATE)

enum {
	DUE = IN(DUE) | IN(NORMING_DUE) | IN(READY_DUE) | IN(STORING_DUE) | IN(STEPPING),
	NORMING = IN(NORMING) | IN(NORMING_DUE),
	STORING = IN(STORING) | IN(STORING_ARRIVING) | IN(STORING_DUE) | IN(STORING_READY),
	SAME = -1 /* the event does not change the state */
};

static const struct {
	unsigned from; /* bit mask of states */
	enum standby_event event;
	int to; /* the next state, or SAME */
} table[] = {
	/* The sum arrives, its squares are summed, and its iteration is committed. The commit may
	 * also arrive earlier. */
	{ IN(NONE), STANDBY_REDUCE, STANDBY_SUM_ARRIVING },
	{ IN(ARRIVING), STANDBY_COMMIT, STANDBY_SUM_DUE },
	{ IN(READY), STANDBY_COMMIT, STANDBY_SUM_READY_DUE },
	{ IN(ARRIVING), STANDBY_NORM, STANDBY_SUM_NORMING },
	{ IN(DUE), STANDBY_NORM, STANDBY_SUM_NORMING_DUE },
	{ IN(NORMING), STANDBY_NORMED, STANDBY_SUM_READY },
	{ IN(NORMING_DUE), STANDBY_NORMED, STANDBY_SUM_READY_DUE },
	{ IN(READY_DUE), STANDBY_STEP, STANDBY_SUM_STEPPING },
	{ IN(STEPPING), STANDBY_FOLLOWED, STANDBY_SUM_NONE },

	/* The worker begins and ends a job that stores fetched pieces. */
	{ IN(NONE), STANDBY_STORE, STANDBY_SUM_STORING },
	{ IN(ARRIVING), STANDBY_STORE, STANDBY_SUM_STORING_ARRIVING },
	{ IN(DUE), STANDBY_STORE, STANDBY_SUM_STORING_DUE },
	{ IN(READY), STANDBY_STORE, STANDBY_SUM_STORING_READY },
	{ IN(STORING), STANDBY_FOLLOWED, STANDBY_SUM_NONE },
	{ IN(STORING_ARRIVING), STANDBY_FOLLOWED, STANDBY_SUM_ARRIVING },
	{ IN(STORING_DUE), STANDBY_FOLLOWED, STANDBY_SUM_DUE },
	{ IN(STORING_READY), STANDBY_FOLLOWED, STANDBY_SUM_READY },

	/* The copy no longer waits for the sum, or the sum is dropped. A running job that stores
	 * pieces or makes the step continues to its end. */
	{ IN(DUE), STANDBY_ABANDON, STANDBY_SUM_ARRIVING },
	{ IN(NORMING_DUE), STANDBY_ABANDON, STANDBY_SUM_NORMING },
	{ IN(READY_DUE), STANDBY_ABANDON, STANDBY_SUM_READY },
	{ IN(NONE) | IN(ARRIVING) | IN(NORMING) | IN(READY) | IN(STEPPING) | STORING,
	  STANDBY_ABANDON, SAME },
	{ IN(NONE) | IN(ARRIVING) | IN(DUE) | IN(READY) | IN(READY_DUE), STANDBY_FORGET,
	  STANDBY_SUM_NONE },
};

bool standby_sum_apply(enum standby_sum *state, enum standby_event event)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].event == event && table[i].from >> *state & 1) {
			if (table[i].to != SAME)
				*state = (enum standby_sum)table[i].to;
			return true;
		}
	return false;
}

bool standby_sum_is_due(enum standby_sum state)
{
	return DUE >> state & 1;
}

bool standby_sum_is_followed(enum standby_sum state)
{
	return (STORING | IN(STEPPING)) >> state & 1;
}

bool standby_sum_is_in_use(enum standby_sum state)
{
	return (NORMING | STORING | IN(STEPPING)) >> state & 1;
}
