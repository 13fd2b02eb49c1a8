/* restart.c - the iteration that is under way begins anew. */
#include "controller/iteration/restart.h"

#include "controller/controller.h"
#include "controller/members/member.h"
#include "controller/planning/replan.h"

/* Another epoch says so to the agents, and higher attempts tell the reports of the one try from
 * those of the other. */
static void begin_anew(struct controller *c)
{
	uint32_t most = c->reduce_attempt;

	for (uint32_t i = 0; i < c->routes.n; i++)
		if (c->routes.microbatches[i].route.attempt > most)
			most = c->routes.microbatches[i].route.attempt;
	if (most >= c->first_attempt)
		c->first_attempt = most + 1;
	c->redo = true;
	c->stall.taken_over = false;
	set_phase(c, PHASE_PLANNING);
}

void restart_iteration(struct controller *c, const char *why)
{
	if (c->phase == PHASE_STALLED && !replicas_everywhere(c)) {
		c->stall.taken_over = true; /* not before the lost stage is there */
		return;
	}
	begin_anew(c);
	replan(c, why);
}
