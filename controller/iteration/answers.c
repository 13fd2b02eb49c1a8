/* answers.c - decides what the run does with each answer of the planner.
 *
 * A usable plan becomes the pending plan, which takes effect when the next iteration starts. After
 * the quick first answer the planner is asked once more for a better plan for the same nodes. If
 * there is no plan, the run keeps the plan in force or ends.
 *
 * If the run's algorithm finds no plan, the planner may answer with a substitute by another
 * algorithm. The journal reports the substitute, and the next plan by the run's own algorithm
 * replaces the substitute. */
#include "controller/iteration/answers.h"

#include <string.h>

#include "controller/iteration/link_failures.h"
#include "controller/members/finish.h"
#include "controller/members/member.h"
#include "controller/network/formats.h"
#include "controller/members/announce.h"
#include "controller/planning/planning.h"
#include "controller/planning/replan.h"
#include "controller/planning/request.h"
#include "controller/planning/skip_phases.h"
#include "controller/planning/spares.h"
#include "controller/run/journal.h"
#include "controller/run/record.h"

static const char refined_words[] = ", refined";
/* A refined plan is adopted if its iteration takes less than this share of the current plan's
 * time */
static const double worth = 0.985;
/* Replaces `worth` when a plan may use all spares, even nodes that failed often. Such a plan must
 * be much faster: it replaces the plan in force only if its iteration takes less than this share of
 * the current plan's time. To replace a pending plan, the share `worth` is enough. */
static const double spare_worth = 0.9;

static void take_infeasible(struct planning *planning, const struct planned *a)
{
	if (spares_use_all(planning->members)) {
		replan(planning, "spares or nodes that failed often are needed");
		return;
	}
	note(planning->run, NOTE_ALERT, -1, 0, "no plan: %s", a->infeasible);
	if (planning->run->phase == PHASE_GATHERING) {
		controller_finish(planning->members, 3, a->infeasible);
	} else if (phase_targets_drop(planning)) {
		note(planning->run, NOTE_WARNING, -1, 0,
		     "nodes keep their stages in this phase: no plan exists for their new stages");
		planning->targets.without_plan = planning->run->wanted.phase + 1;
		replan(planning, "an exchange of stages that has no plan");
	} else if (planning->run->plan && !skip_phases_planned(planning->run)) {
		planning->run->wanted.path_length =
			(uint32_t)planning->run->plan->plan->path_length;
		planning->run->wanted.skip_share = (uint32_t)planning->run->plan->plan->skip_share;
		note(planning->run, NOTE_WARNING, -1, 0, "the skip ratio stays as it was");
		replan(planning, "the wanted skip ratio has no plan");
	} else if (!planning->run->plan || !replan_usable(planning->members, planning->run->plan)) {
		link_failures_remove_end(planning->members);
	}
}

static double cost_of(const struct planned *p)
{
	return p->plan->predicted.iteration_s;
}

/* Returns true if the plan was made by the run's own algorithm, and not by a substitute. */
static bool is_own(const struct run *run, const struct planned *p)
{
	const char *by = p->plan->search.algorithm;

	return run->options.planning.algorithm == PLAN_BEST ||
	       (by && strcmp(by, plan_algorithm_name(run->options.planning.algorithm)) == 0);
}

/* Returns true if the run should prefer plan a to plan `than`. A plan by the run's own algorithm is
 * preferred to a substitute. Otherwise a's iteration must take less than `factor` times the other
 * plan's. */
static bool is_better(const struct run *run, const struct planned *a, const struct planned *than,
		      double factor)
{
	if (is_own(run, a) != is_own(run, than))
		return is_own(run, a);
	return cost_of(a) < cost_of(than) * factor;
}

/* Reports in the journal that a substitute algorithm made the plan, or that the run's own algorithm
 * makes plans again. Each substitute is reported once. */
static void tell_stand_in(struct planning *planning, const struct planned *a)
{
	const struct planned *before = planning->pending ? planning->pending : planning->run->plan;

	if (a->instead[0] && strcmp(planning->substitute, a->instead) != 0)
		note(planning->run, is_own(planning->run, a) ? NOTE_WARNING : NOTE_ALERT, -1, 0,
		     "%s", a->instead);
	else if (before && !is_own(planning->run, before) && is_own(planning->run, a))
		note(planning->run, NOTE_EVENT, -1, 0, "planned by %s again",
		     plan_algorithm_name(planning->run->options.planning.algorithm));
	memcpy(planning->substitute, a->instead, sizeof(planning->substitute));
}

/* Asks the planner for a better plan for the same nodes. The better plan must beat the pending plan
 * or, if no plan is pending, the plan in force. The next iteration does not wait for the answer. */
static void refine(struct planning *planning)
{
	const struct planned *from = planning->pending ? planning->pending : planning->run->plan;

	planning->refine_wanted = false;
	/* No plan is possible while a stage has no replica. Another node must take over that stage
	 * first. */
	if (planning->run->options.planning.algorithm != PLAN_BEST ||
	    !replicas_everywhere(planning->members))
		return;
	if (!strstr(planning->reason, refined_words))
		strncat(planning->reason, refined_words,
			sizeof(planning->reason) - strlen(planning->reason) - 1);
	replan_refine(planning, from->plan);
}

void answers_tell_sums(struct planning *planning, const struct planned *a)
{
	const struct plan_predicted *d;

	if (!a->plan || !a->plan->overlap_sync || planning->run->plan || planning->pending)
		return;
	d = &a->plan->predicted;
	note(planning->run, NOTE_EVENT, -1, 0,
	     "sums begin early: %.1f s for an iteration, %.1f s if they began after its last task",
	     d->total_s, d->iteration_s + d->sync_s);
}

/* Returns true if the answer should be ignored because the plan in force is about as fast. The
 * plan in force must be usable and must have the answer's skip ratio and formats. Returns false
 * while a pending plan is going to replace the plan in force. */
static bool is_about_as_good(const struct planning *planning, const struct planned *a)
{
	const struct planned *now = planning->run->plan;

	return now && replan_usable(planning->members, now) && !planning->pending &&
	       a->plan->path_length == now->plan->path_length &&
	       a->plan->skip_share == now->plan->skip_share &&
	       formats_equal(&a->formats, &now->formats) &&
	       !is_better(planning->run, a, now,
			  planning->spares == SPARES_ALL ? spare_worth : worth);
}

void answers_run(struct planning *planning, struct planned *a)
{
	bool refined = !planning->refine_wanted;

	if (a->request != planning->wanted_id) {
		planned_free(a);
		return; /* outdated: a newer plan has been requested since this one */
	}
	planning->wanted_id = 0;
	if (a->request == planning->recovery_plan) {
		planning->recovery_plan = 0;
		record_recovery(planning->run, "planned", -1, (int64_t)(a->elapsed_s * 1e6),
				planning->run->now_us);
	}
	if (!a->plan) {
		take_infeasible(planning, a);
		planned_free(a);
		return;
	}
	if ((refined || planning->only_if_better) && is_about_as_good(planning, a)) {
		planned_free(a);
		if (!refined)
			refine(planning);
		else
			replan_try_spares(planning);
		return;
	}
	if (!refined || !planning->pending || !phase_targets_fit(planning, planning->pending) ||
	    is_better(planning->run, a, planning->pending,
		      planning->spares == SPARES_NONE ? 1 : worth)) {
		tell_stand_in(planning, a);
		planned_free(planning->pending);
		planning->pending = a;
		if (planning->spares != SPARES_NONE)
			spares_use(planning->members, a);
	} else {
		planned_free(a);
	}
	if (planning->refine_wanted && planning->run->phase != PHASE_GATHERING)
		refine(planning);
	else if (refined)
		replan_try_spares(planning);
}

void answers_baseline(struct members *members, struct planned *a)
{
	if (a->plan)
		members->run->training.baseline_s = a->plan->predicted.iteration_s;
	planned_free(a);
	consoles_run(members);
}
