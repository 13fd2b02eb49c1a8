/* phase_targets.h - the stage that each node will have in each phase of the skip schedule
 * (--phase-moves), and the next exchange of stages. */
#ifndef CONTROLLER_PLANNING_PHASE_TARGETS_H
#define CONTROLLER_PLANNING_PHASE_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "controller/planning/phase_moves_state.h"
#include "wire/msg.h"

struct planned;
struct planner;
struct planning;

/* Nodes that exchange their stages between two iterations (weights/phase_moves.c). */
struct exchange {
	uint32_t number; /* number of the exchange that was prepared last; 0: none */
	/* First iteration after the newest exchange, even if the exchange was dropped. Before the
	 * first exchange: the iteration in which the allocations were planned. */
	uint64_t at;
	int to[MSG_NODES]; /* array of n_nodes: the stage of each node after the exchange */
};

struct phase_targets {
	enum phase_moves_state state;
	/* Planner that searches for the allocations; NULL if the state is PHASE_MOVES_OFF */
	struct planner *planner;
	/* 1 + the phase whose exchange was dropped last because no plan exists for the new stages;
	 * 0: none */
	uint32_t without_plan;
	/* The planner's answer, with the allocations. In a resumed run it has only the saved
	 * stages. NULL: no allocations are known */
	struct planned *answer;
	struct exchange exchange;
};

/* Starts the planner if the run has --phase-moves. A resumed run loads its allocations. */
int phase_targets_start(struct planning *planning, struct error *err);
void phase_targets_stop(struct planning *planning);
/* Requests the allocations when the first iteration runs, and takes the answer. */
void phase_targets_turn(struct planning *planning);
/* Changes the state of the moves. The present state must allow the event. */
void phase_targets_apply(struct planning *planning, enum phase_moves_event event);
/* Returns the present phase's plan if it has the stages after the prepared exchange, or NULL.
 * Borrowed. */
const struct plan *phase_targets_plan(const struct planning *planning);
/* Returns the stage of the node in this phase; -1: unknown. */
int phase_targets_stage(const struct planning *planning, uint32_t phase, uint32_t node);
/* If an exchange is prepared, returns true if the plan can be used after this exchange. Otherwise
 * returns true if the plan can be used now. */
bool phase_targets_fit(const struct planning *planning, const struct planned *p);
/* Drops the prepared exchange, and the plan that was made for it. Returns false if no exchange was
 * prepared. */
bool phase_targets_drop(struct planning *planning);

#endif
