/* restart.c - the iteration that is under way begins anew. */
#include "controller/iteration/restart.h"

#include "controller/iteration/iteration.h"
#include "controller/members/member.h"
#include "controller/planning/replan.h"

/* Another epoch says so to the agents, and higher attempts tell the reports of the one try from
 * those of the other. */
static void begin_anew(struct iteration *it)
{
	uint32_t most = it->reduce_attempt;

	for (uint32_t i = 0; i < it->routes.n; i++)
		if (it->routes.microbatches[i].route.attempt > most)
			most = it->routes.microbatches[i].route.attempt;
	if (most >= it->run->first_attempt)
		it->run->first_attempt = most + 1;
	it->redo = true;
	it->weights->stall.taken_over = false;
	set_phase(it->run, PHASE_PLANNING);
}

void restart_iteration(struct iteration *it, const char *why)
{
	if (it->run->phase == PHASE_STALLED && !replicas_everywhere(it->members)) {
		it->weights->stall.taken_over = true; /* not before the lost stage is there */
		return;
	}
	begin_anew(it);
	replan(it->planning, why);
}
