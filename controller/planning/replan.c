/* replan.c - sends the run's requests to the planner. answers.c handles the answers.
 *
 * A change means that a node is lost, joins or is marked, or that the skip ratio changes. After a
 * change the controller requests a plan within a short budget, so that the plan is ready when the
 * next iteration starts. After this plan has arrived, the planner gets more time to improve it.
 * Requests exclude nodes that cannot be used. The remaining data nodes take over the microbatches
 * of excluded data nodes.
 *
 * A baseline algorithm (--algorithm) gets its whole budget in one request, because a second request
 * would give the same plan. */
#include "controller/planning/replan.h"

#include <stdio.h>

#include "controller/planning/planning.h"
#include "controller/members/failures.h"
#include "controller/members/member.h"
#include "controller/network/measuring.h"
#include "controller/planning/contingency.h"
#include "controller/planning/request.h"
#include "controller/planning/spares.h"

/* Longest time for which an iteration waits for a plan, as a share of an iteration's time */
static const double short_wait = 0.05;

/* Requests a plan for the run. If an exchange is prepared, the plan is for the stages after the
 * exchange. The search starts from the plan `from`. If `from` is NULL, or its nodes have changed
 * stages, the search starts from the stored plan that fits best. */
static void ask_planner(struct planning *planning, double best_s, const struct plan *from)
{
	const struct exchange *x = &planning->targets.exchange;
	bool excluded[MSG_NODES];
	struct planner_request q;

	replan_request(planning->members, &q, excluded);
	spares_exclude(planning->members, planning->spares, excluded);
	if (planning->targets.state == PHASE_MOVES_PREPARED) {
		q.stages = x->to;
		q.exchange = x->number;
	}
	if (from && replan_as_pinned(planning->run, from, q.stages))
		q.from = from;
	else
		q.from = q.stages ? phase_targets_plan(planning) : replan_from(planning, &q);
	q.budget_s = replan_budget_s(planning->run, best_s);
	q.reason = planning->reason;
	replan_set_times(planning->members);
	planning->wanted_id = replan_send(planning->members, planning->planner, &q);
}

/* Returns true if the first plan may use m. The supervisor of an embedded cluster starts only the
 * first MIN agents (--agents MIN..MAX). An emulated cluster is planned before its agents join. */
static bool begins_with(const struct planning *planning, const struct member *m)
{
	const struct options *o = &planning->run->options;

	if (!planning->members->links)
		return !o->mode.embedded || o->cluster.least_agents <= 1 ||
		       m->id < o->cluster.least_agents;
	return member_alive(m) && !m->is_marked && !measuring_isolates(planning->members, m);
}

void replan_first(struct planning *planning)
{
	bool excluded[MSG_NODES], any = false;
	struct planner_request q = { .kind = PLANNER_RUN,
				     .path_length = (int)planning->run->wanted.path_length,
				     .skip_share = (int)planning->run->wanted.skip_share,
				     .formats = planning->run->wanted.formats,
				     .algorithm = planning->run->options.planning.algorithm,
				     .substitute = SUBSTITUTE_RANDOM,
				     .free_assignment =
					     !planning->run->options.cluster.assignment_given &&
					     !planning->has_chosen_stages,
				     .overlap_sync = planning->run->options.planning.overlap_sync,
				     .no_swaps = planning->run->options.planning.no_swaps,
				     .budget_s = planning->run->options.planning.budget_s,
				     .threads = 1,
				     .seed = planning->run->options.seed,
				     .reason = "the run's first plan" };

	for (uint32_t i = 0; i < planning->members->n; i++) {
		excluded[i] = !begins_with(planning, &planning->members->list[i]);
		any = any || excluded[i];
	}
	q.excluded = any ? excluded : NULL;
	planning->wanted_id = replan_send(planning->members, planning->planner, &q);
}

void replan(struct planning *planning, const char *reason)
{
	snprintf(planning->reason, sizeof(planning->reason), "%s", reason);
	planning->spares = SPARES_NONE;
	planning->refine_wanted = true;
	planning->only_if_better = false;
	planning->replanned_us = planning->run->now_us;
	ask_planner(planning, REPLAN_QUICK_S, NULL);
}

bool replan_awaited(const struct planning *planning)
{
	if (!planning->run->plan && !planning->run->resumed)
		return planning->wanted_id != 0;
	return planning->wanted_id && planning->refine_wanted && planning->run->plan &&
	       replan_budget_s(planning->run, REPLAN_QUICK_S) <
		       short_wait * planning->run->unit_s *
			       planning->run->plan->plan->predicted.iteration_s;
}

static void ask_if_better(struct planning *planning, const char *reason, bool soon,
			  enum spares_kind spares)
{
	snprintf(planning->reason, sizeof(planning->reason), "%s", reason);
	planning->spares = spares;
	planning->refine_wanted = soon;
	planning->only_if_better = true;
	ask_planner(planning, soon ? REPLAN_QUICK_S : REPLAN_REFINE_S, NULL);
}

void replan_if_better(struct planning *planning, const char *reason, bool soon)
{
	ask_if_better(planning, reason, soon, SPARES_NONE);
}

void replan_joined(struct planning *planning, const struct member *m)
{
	if (!spares_wait(planning->members, m))
		replan(planning, "a node joined");
	else if (failures_are_many(m))
		ask_if_better(planning, "a node that failed often joined", true, SPARES_ALL);
	else
		ask_if_better(planning, "a spare joined", true, SPARES_LATE);
}

void replan_try_spares(struct planning *planning)
{
	if (planning->spares == SPARES_NONE && spares_any(planning->members, SPARES_LATE))
		ask_if_better(planning, "an iteration is shorter with a spare", false, SPARES_LATE);
}

void replan_baseline(struct planning *planning)
{
	struct planner_request q = { .kind = PLANNER_BASELINE,
				     .algorithm = PLAN_DTFM,
				     .formats = planning->run->wanted.formats,
				     .path_length = planning->run->cluster->n_stages,
				     .free_assignment =
					     !planning->run->options.cluster.assignment_given,
				     .budget_s = planning->run->options.planning.budget_s,
				     .threads = 1,
				     .seed = planning->run->options.seed,
				     .reason = "baseline: every stage, straight pipelines" };

	replan_send(planning->members, planning->planner, &q);
}

void replan_refine(struct planning *planning, const struct plan *from)
{
	ask_planner(planning, REPLAN_REFINE_S, from);
}
