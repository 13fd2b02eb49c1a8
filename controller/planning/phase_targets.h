/* phase_targets.h - the stage that each node is to have in each phase of the skip schedule
 * (--phase-moves), and the exchange of stages that is prepared. */
#ifndef CONTROLLER_PLANNING_PHASE_TARGETS_H
#define CONTROLLER_PLANNING_PHASE_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/msg.h"

struct planned;
struct planner;
struct planning;

/* Nodes that get other stages at once, between two iterations (weights/phase_moves.c). */
struct exchange {
	uint32_t number;   /* 0: none is prepared */
	uint32_t newest;   /* number of the newest exchange */
	/* The iteration that begins with the exchange or, if none is prepared, began with the last
	 * one; before the first one: the iteration in which the allocations were planned */
	uint64_t at;
	int to[MSG_NODES]; /* (n_nodes) the stage of each node after it */
};

struct phase_targets {
	struct planner *planner; /* NULL: nodes do not move between phases */
	uint64_t request;        /* number of the request; 0: none is under way */
	bool has_failed;         /* there are no allocations, and none are requested again */
	uint32_t without_plan;   /* 1 + the newest phase whose exchange has no plan; 0: none */
	/* The answer, or what a resumed run has saved of it: its stages. NULL: not planned yet. */
	struct planned *answer;
	struct exchange exchange;
};

/* Starts the planner if the run has --phase-moves. A resumed run loads its allocations. */
int phase_targets_start(struct planning *planning, struct error *err);
void phase_targets_stop(struct planning *planning);
/* Requests the allocations when the first iteration runs, and takes the answer. */
void phase_targets_turn(struct planning *planning);
/* Returns the plan of the present phase if all of its nodes have their stages after the prepared
 * exchange; NULL: there is none. Borrowed. */
const struct plan *phase_targets_plan(const struct planning *planning);
/* Returns the stage of the node in the phase; -1: unknown. */
int phase_targets_stage(const struct planning *planning, uint32_t phase, uint32_t node);
/* Returns true if the plan can be used after the exchange that is prepared, or now if there is
 * none. */
bool phase_targets_fit(const struct planning *planning, const struct planned *p);
/* Drops the prepared exchange, and the plan that was made for it. Returns false if there was none.
 */
bool phase_targets_drop(struct planning *planning);

#endif
