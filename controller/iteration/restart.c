/* restart.c - the iteration that is under way begins anew. */
#include "controller/iteration/restart.h"

#include "controller/controller.h"
#include "controller/history/finish.h"
#include "controller/iteration/remaining.h"
#include "controller/members/member.h"
#include "controller/operator/journal.h"
#include "controller/planning/request.h"
#include "controller/planning/replan.h"

/* Of the time that it would take otherwise: to begin anew throws work away. */
static const double WORTH_IT = 0.9;
enum { ANEW_MOST = 1 }; /* in one iteration, for a plan that ends it sooner */

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

void restart_if_sooner(struct controller *c)
{
	double now_s = (double)(c->now_us - c->progress.started_us) * 1e-6 / c->unit_s, until_s, anew_s;

	if (c->phase != PHASE_COMPUTING || !c->pending || !replan_usable(c, c->pending))
		return;
	if (c->progress.anew >= ANEW_MOST)
		return;
	until_s = remaining_until_s(c->cluster, &c->routes, c->first_attempt, now_s);
	anew_s = now_s + c->pending->plan->predicted.iteration_s;
	if (until_s < 0 || anew_s > WORTH_IT * until_s)
		return;
	note(c, NOTE_EVENT, -1, 0, "it%llu begins anew: what runs again would end at %.1f s, the new plan at %.1f",
	     (unsigned long long)c->iteration, until_s, anew_s);
	c->progress.anew++;
	begin_anew(c);
}
