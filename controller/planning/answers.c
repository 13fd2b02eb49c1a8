/* answers.c - what is done with the planner's answers.
 *
 * Where a plan by another algorithm stands in for the run's own, the journal says so, and the next of its
 * own takes over.
 */
#include "controller/planning/answers.h"

#include <string.h>

#include "controller/controller.h"
#include "controller/history/finish.h"
#include "controller/history/record.h"
#include "controller/members/link_failures.h"
#include "controller/operator/announce.h"
#include "controller/operator/journal.h"
#include "controller/planning/request.h"
#include "controller/planning/replan.h"

static const char refined_words[] = ", refined";
static const double worth = 0.985; /* a refinement is adopted when it takes less than this */

static void take_infeasible(struct controller *c, const struct planned *a)
{
	note(c, NOTE_ALERT, -1, 0, "no plan: %s", a->infeasible);
	if (c->phase == PHASE_GATHERING) {
		controller_finish(c, 3, a->infeasible);
	} else if (c->current && c->path_length != (uint32_t)c->current->plan->path_length) {
		c->path_length = (uint32_t)c->current->plan->path_length;
		note(c, NOTE_WARNING, -1, 0, "the skip ratio stays as it was");
		replan(c, "the wanted skip ratio has no plan");
	} else if (!c->current || !replan_usable(c, c->current)) {
		link_failures_give_way(c);
	}
}

static double cost_of(const struct planned *p)
{
	return p->plan->predicted.iteration_s;
}

/* By the algorithm that the run was begun with: a stand-in is not. */
static bool is_own(const struct controller *c, const struct planned *p)
{
	const char *by = p->plan->search.algorithm;

	return c->options.algorithm == PLAN_BEST ||
	       (by && strcmp(by, plan_algorithm_name(c->options.algorithm)) == 0);
}

/* A plan as asked for before a stand-in's, else the shorter: by more than `factor` says. */
static bool is_better(const struct controller *c, const struct planned *a, const struct planned *than,
		      double factor)
{
	if (is_own(c, a) != is_own(c, than))
		return is_own(c, a);
	return cost_of(a) < cost_of(than) * factor;
}

/* Says that a plan is not what was asked for: once, until it is something else. */
static void tell_stand_in(struct controller *c, const struct planned *a)
{
	const struct planned *before = c->pending ? c->pending : c->current;

	if (a->instead[0] && strcmp(c->stand_in, a->instead) != 0)
		note(c, is_own(c, a) ? NOTE_WARNING : NOTE_ALERT, -1, 0, "%s", a->instead);
	else if (before && !is_own(c, before) && is_own(c, a))
		note(c, NOTE_EVENT, -1, 0, "planned by %s again",
		     plan_algorithm_name(c->options.algorithm));
	memcpy(c->stand_in, a->instead, sizeof(c->stand_in));
}

/* A better one for the same nodes; what is found is welcome, not waited for: the loop may start without. */
static void refine_pending(struct controller *c)
{
	c->refine_wanted = false;
	if (c->options.algorithm != PLAN_BEST)
		return;
	if (!strstr(c->plan_reason, refined_words))
		strncat(c->plan_reason, refined_words,
			sizeof(c->plan_reason) - strlen(c->plan_reason) - 1);
	replan_refine(c, c->pending->plan);
}

void answers_run(struct controller *c, struct planned *a)
{
	bool refined = !c->refine_wanted;

	if (a->request != c->plan_wanted) {
		planned_free(a);
		return; /* overtaken */
	}
	c->plan_wanted = 0;
	if (a->request == c->recovery_plan) {
		c->recovery_plan = 0;
		record_recovery(c, "planned", -1, (int64_t)(a->elapsed_s * 1e6), c->now_us);
	}
	if (!a->plan) {
		take_infeasible(c, a);
		planned_free(a);
		return;
	}
	if (refined && c->current && replan_usable(c, c->current) && !c->pending &&
	    a->plan->path_length == c->current->plan->path_length &&
	    !is_better(c, a, c->current, worth)) {
		planned_free(a); /* what runs is as good */
		return;
	}
	if (!refined || !c->pending || !replan_usable(c, c->pending) ||
	    is_better(c, a, c->pending, 1)) {
		tell_stand_in(c, a);
		planned_free(c->pending);
		c->pending = a;
	} else {
		planned_free(a);
	}
	if (c->refine_wanted && c->phase != PHASE_GATHERING)
		refine_pending(c);
}

void answers_baseline(struct controller *c, struct planned *a)
{
	if (a->plan)
		c->baseline_s = a->plan->predicted.iteration_s;
	planned_free(a);
	consoles_run(c);
}
