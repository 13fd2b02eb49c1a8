/* phase_moves_state.c - the table of the states of the moves between phases.
 *
 * Answers of the planner, deaths and boundaries of iterations come in any order. With one table,
 * each pair of state and event has exactly one result, and a pair that must not occur is noticed at
 * once. */
#include "controller/planning/phase_moves_state.h"

#include <stddef.h>

static const struct {
	enum phase_moves_state from;
	enum phase_moves_event event;
	enum phase_moves_state to;
} table[] = {
	/* The allocations of all phases are planned once, or loaded from the record. */
	{ PHASE_MOVES_OFF, PHASE_MOVES_START, PHASE_MOVES_UNPLANNED },
	{ PHASE_MOVES_UNPLANNED, PHASE_MOVES_LOAD, PHASE_MOVES_IDLE },
	{ PHASE_MOVES_UNPLANNED, PHASE_MOVES_REQUEST, PHASE_MOVES_REQUESTED },
	{ PHASE_MOVES_REQUESTED, PHASE_MOVES_PLAN, PHASE_MOVES_IDLE },
	{ PHASE_MOVES_REQUESTED, PHASE_MOVES_NO_PLAN, PHASE_MOVES_FAILED },

	/* From here on, any number of exchanges follow one another. */
	{ PHASE_MOVES_IDLE, PHASE_MOVES_PREPARE, PHASE_MOVES_PREPARED },
	{ PHASE_MOVES_PREPARED, PHASE_MOVES_DROP, PHASE_MOVES_IDLE },
	{ PHASE_MOVES_PREPARED, PHASE_MOVES_EXCHANGE, PHASE_MOVES_IDLE },
};

bool phase_moves_apply(enum phase_moves_state *state, enum phase_moves_event event)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].from == *state && table[i].event == event) {
			*state = table[i].to;
			return true;
		}
	return false;
}

bool phase_moves_are_planned(enum phase_moves_state state)
{
	return state == PHASE_MOVES_IDLE || state == PHASE_MOVES_PREPARED;
}
