/* restart.c - restarts the iteration under way with a new attempt.
 *
 * The controller restarts an iteration when its results cannot be completed or trusted: weights
 * differed, a stage was restored, or the iteration stalled. A restart discards the work of all
 * nodes, so nothing depends on how much each node has done. */
#include "controller/iteration/restart.h"

#include "controller/iteration/iteration.h"
#include "controller/members/member.h"
#include "controller/planning/replan.h"
#include "controller/run/phase.h"

/* A new epoch announces the restart to the agents. Higher attempt numbers distinguish new reports
 * from void ones. */
static void begin_attempt(struct iteration *it)
{
	uint32_t most = it->reduce_attempt;

	for (uint32_t i = 0; i < it->routes.n; i++)
		if (it->routes.microbatches[i].route.attempt > most)
			most = it->routes.microbatches[i].route.attempt;
	if (most >= it->run->first_attempt)
		it->run->first_attempt = most + 1;
	it->redo = true;
	it->backups->stall.taken_over = false;
	set_phase(it->run, PHASE_PLANNING);
}

void restart_iteration(struct iteration *it, const char *why)
{
	if (it->run->phase == PHASE_STALLED && !replicas_everywhere(it->members)) {
		/* recover_turn restarts the iteration after the lost stage has been restored */
		it->redo = it->backups->stall.taken_over = true;
		return;
	}
	begin_attempt(it);
	replan(it->planning, why);
}
