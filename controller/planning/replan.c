/* replan.c - when the planner is asked. Its answers: answers.c.
 *
 * A change (a node lost, found or marked, another skip ratio) asks for a plan quickly; it takes
 * over when the next iteration starts. When that is in hand the planner is asked once more,
 * with more time, from the plan it just made. Node ids stay the cluster's; who cannot be used
 * is excluded, and the data nodes that remain take over the microbatches of those that are out.
 *
 * A baseline (--algorithm) is asked once, and has its whole budget: more time would give the same.
 * Where another's plan stands in for its own, the journal says so, and the next of its own takes over.
 */
#include "controller/planning/replan.h"

#include <stdio.h>

#include "controller/controller.h"
#include "controller/members/member.h"
#include "controller/planning/contingency.h"
#include "controller/planning/request.h"

static const double short_wait = 0.05; /* of an iteration */

/* from: NULL: wherever is best. */
static void ask_planner(struct controller *c, double best_s, const struct plan *from)
{
	bool excluded[MSG_NODES];
	struct planner_request q;

	replan_request(c, &q, excluded);
	q.from = from && replan_as_pinned(c, from) ? from : replan_from(c, &q);
	q.budget_s = replan_budget_s(c, best_s);
	q.reason = c->plan_reason;
	replan_set_times(c);
	c->plan_wanted = planner_ask(c->planner, c->cluster, &q);
}

void replan_first(struct controller *c)
{
	bool excluded[MSG_NODES], any = false;
	struct planner_request q = { .kind = PLANNER_RUN,
				     .path_length = (int)c->path_length,
				     .algorithm = c->options.algorithm,
				     .stand_in = STAND_IN_RANDOM,
				     .free_assignment = !c->options.given,
				     .overlap_sync = c->options.overlap_sync,
				     .budget_s = c->options.budget_s,
				     .threads = 1,
				     .seed = c->options.seed,
				     .reason = "the run's first plan" };

	for (uint32_t i = 0; c->links && i < c->n_members; i++) {
		excluded[i] = !member_alive(&c->members[i]) || c->members[i].marked;
		any = any || excluded[i];
	}
	q.excluded = any ? excluded : NULL;
	c->plan_wanted = planner_ask(c->planner, c->cluster, &q);
}

void replan(struct controller *c, const char *reason)
{
	snprintf(c->plan_reason, sizeof(c->plan_reason), "%s", reason);
	c->refine_wanted = true;
	c->replanned_us = c->now_us;
	ask_planner(c, REPLAN_QUICK_S, NULL);
}

/* The first answer to a change is worth a short wait before the next iteration; what refines it is not. */
bool replan_awaited(const struct controller *c)
{
	return c->plan_wanted && c->refine_wanted && c->current &&
	       replan_budget_s(c, REPLAN_QUICK_S) < short_wait * c->unit_s * c->current->plan->predicted.iteration_s;
}

void replan_if_better(struct controller *c, const char *reason)
{
	snprintf(c->plan_reason, sizeof(c->plan_reason), "%s", reason);
	c->refine_wanted = false;
	ask_planner(c, REPLAN_REFINE_S, NULL);
}

void replan_baseline(struct controller *c)
{
	struct planner_request q = { .kind = PLANNER_BASELINE,
				     .algorithm = PLAN_DTFM,
				     .path_length = c->cluster->n_stages,
				     .free_assignment = !c->options.given,
				     .budget_s = c->options.budget_s,
				     .threads = 1,
				     .seed = c->options.seed,
				     .reason = "baseline: every stage, straight pipelines" };

	planner_ask(c->planner, c->cluster, &q);
}

void replan_refine(struct controller *c, const struct plan *from)
{
	ask_planner(c, REPLAN_REFINE_S, from);
}
