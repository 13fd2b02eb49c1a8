/* phase_moves_state.h - the state of the moves between phases (--phase-moves): a table of states
 * and events.
 *
 *     OFF --START--> UNPLANNED --REQUEST--> REQUESTED --PLAN--> IDLE --PREPARE--> PREPARED
 *                        |                      |                ^                   |
 *                        +---------LOAD---------|----------------+---EXCHANGE, DROP--+
 *                                               +--NO_PLAN--> FAILED
 *
 * phase_targets.c plans the stages of the nodes in each phase, and weights/phase_moves.c prepares
 * the exchanges. */
#ifndef CONTROLLER_PLANNING_PHASE_MOVES_STATE_H
#define CONTROLLER_PLANNING_PHASE_MOVES_STATE_H

#include <stdbool.h>

enum phase_moves_state {
	PHASE_MOVES_OFF, /* nodes do not move between phases */
	/* The allocations are not known yet; the first iteration requests them */
	PHASE_MOVES_UNPLANNED,
	PHASE_MOVES_REQUESTED, /* the planner was asked for allocations and searches for them */
	PHASE_MOVES_FAILED,    /* there are no allocations; the planner is not asked again */
	PHASE_MOVES_IDLE,      /* the allocations are known; no exchange is prepared */
	/* An exchange is prepared. A plan for the stages after the exchange was requested or has
	 * arrived. */
	PHASE_MOVES_PREPARED,
	PHASE_MOVES_STATES
};

enum phase_moves_event {
	PHASE_MOVES_START,   /* the run has --phase-moves */
	PHASE_MOVES_LOAD,    /* a resumed run has loaded its saved allocations */
	PHASE_MOVES_REQUEST, /* the controller asks the planner for allocations */
	PHASE_MOVES_PLAN,    /* the planner has found allocations */
	PHASE_MOVES_NO_PLAN, /* the planner has found no allocations */
	PHASE_MOVES_PREPARE, /* the nodes that take part in an exchange are listed */
	/* The prepared exchange has become impossible, or the planner found no plan for it */
	PHASE_MOVES_DROP,
	PHASE_MOVES_EXCHANGE, /* the listed nodes have their new stages */
	PHASE_MOVES_EVENTS
};

/* Changes the state as the table says. Returns false if the event must not occur in this state. */
bool phase_moves_apply(enum phase_moves_state *state, enum phase_moves_event event);
/* Returns true if the stages of the nodes in each phase are known. */
bool phase_moves_are_planned(enum phase_moves_state state);

#endif
