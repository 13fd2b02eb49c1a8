/* restore_state.c - the table of the states in which the controller restores a stage or the run.
 *
 * Deaths, returning nodes and unreadable files come in any order. With one table, each pair of
 * state and event has exactly one result, and a pair that must not occur is noticed at once. */
#include "controller/weights/restore_state.h"

#include <stddef.h>

#define IN(STATE) (1u << RESTORING_##STATE)

enum {
	GOES_BACK = IN(CHECKPOINT) | IN(FIRST_WEIGHTS),
	ANY = IN(NOTHING) | GOES_BACK | IN(AVERAGE)
};

static const struct {
	unsigned from; /* set of states in which the event can occur */
	enum restoring_event event;
	enum restoring_state to;
} table[] = {
	{ IN(NOTHING), RESTORING_READ, RESTORING_CHECKPOINT },
	{ IN(NOTHING), RESTORING_BUILD, RESTORING_FIRST_WEIGHTS },
	{ IN(NOTHING), RESTORING_COMBINE, RESTORING_AVERAGE },
	/* REJECT does not occur in the state AVERAGE. If an average fails, its source
	 * checkpoints remain usable. */
	{ GOES_BACK, RESTORING_REJECT, RESTORING_NOTHING },
	{ ANY, RESTORING_GIVE_UP, RESTORING_NOTHING },
	{ GOES_BACK | IN(AVERAGE), RESTORING_FINISH, RESTORING_NOTHING },
};

bool restoring_apply(enum restoring_state *state, enum restoring_event event)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].event == event && table[i].from >> *state & 1) {
			*state = table[i].to;
			return true;
		}
	return false;
}

bool restoring_goes_back(enum restoring_state state)
{
	return GOES_BACK >> state & 1;
}
