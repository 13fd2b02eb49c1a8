/* plans.h - keeps the plans of the newest two epochs, because an iteration may follow either
 * plan. */
#ifndef AGENT_PLANS_H
#define AGENT_PLANS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/shared/route.h"
#include "agent/shared/run.h"
#include "agent/shared/tell.h"
#include "wire/msg.h"

enum { PLANS_KEPT = 2 };

/* The part of a plan that an agent keeps. schedule/format/plan.h has the whole plan. */
struct agent_plan {
	bool known;
	uint64_t epoch;
	struct route *routes; /* the n_routes routes of the plan */
	uint32_t n_routes;
	struct msg_rank *ranks; /* this node's priority list, with n_ranks entries */
	uint32_t n_ranks;
	uint32_t visits; /* number of routes through this node */
};

/* The plans that an agent knows. The pointers are borrowed. */
struct plans {
	struct agent_plan list[PLANS_KEPT];
	const struct run *run;
	struct tell *tell;
};

/* Checks a plan and keeps it. The new plan replaces the kept plan of the same epoch. If no plan
 * of this epoch is kept, the new plan replaces the older of the two kept plans. Reports an
 * invalid plan to the controller and changes nothing. */
void plans_take(struct plans *x, const struct msg_plan *m);
/* Returns the plan of an epoch, borrowed; NULL: unknown. */
const struct agent_plan *plans_find(const struct plans *x, uint64_t epoch);
/* Returns the largest number of routes through this node that any known plan has. */
uint32_t plans_most_visits(const struct plans *x);
void plans_forget(struct plans *x);

#endif
