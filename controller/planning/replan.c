/* replan.c - what to ask the planner, and what to do with its answers.
 *
 * A change (a node lost, found or marked, another skip ratio) asks for a plan quickly; it takes
 * over when the next iteration starts. When that is in hand the planner is asked once more,
 * with more time, from the plan it just made. Node ids stay the cluster's; who cannot be used
 * is excluded, and the data nodes that remain take over the microbatches of those that are out.
 *
 * A baseline (--algorithm) is asked once, and has its whole budget: more time would give the same.
 * Where another's plan stands in for its own, the journal says so, and the next of its own takes over.
 */
#include "controller/controller.h"
#include "controller/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char refined_words[] = ", refined";
static const double quick_s = 0.06, refine_s = 1.0;
static const double worth = 0.985; /* a refinement is adopted when it takes less than this */
static const double short_wait = 0.05; /* of an iteration */

bool planned_uses(const struct planned *p, uint16_t node)
{
	const struct plan *plan = p ? p->plan : NULL;

	for (int i = 0; plan && i < plan->stage_start[plan->n_stages]; i++)
		if (plan->assigned[i] == node)
			return true;
	return false;
}

/* None of its paths uses a link that is cut. */
static bool links_are_there(const struct controller *c, const struct plan *plan)
{
	for (uint32_t k = 0; k < c->n_cuts; k++) {
		const struct cut *cut = &c->cuts[k];

		for (int i = 0; cut->active && i < plan->n_microbatches; i++) {
			const struct plan_microbatch *m = &plan->microbatches[i];

			for (int h = 0; h < m->length; h++) {
				int x = m->path[h], y = m->path[(h + 1) % m->length];

				if ((x == cut->from && y == cut->to) || (x == cut->to && y == cut->from))
					return false;
			}
		}
	}
	return true;
}

/* Every node of it is a replica of that very stage, and nobody wants it out; its links are there. */
bool replan_usable(const struct controller *c, const struct planned *p)
{
	const struct plan *plan = p->plan;

	for (int s = 0; s < plan->n_stages; s++) {
		for (int i = plan->stage_start[s]; i < plan->stage_start[s + 1]; i++) {
			const struct member *m = &c->members[plan->assigned[i]];

			if (!m->replica || m->marked || member_stage(c, m) != s)
				return false;
		}
	}
	return links_are_there(c, plan);
}

uint32_t plan_peak_slots(const struct planned *p)
{
	int most = 0;

	for (int i = 0; i < p->trace->n_nodes; i++)
		if (p->trace->peak_slots[i] > most)
			most = p->trace->peak_slots[i];
	return (uint32_t)most;
}

/* Without emulation things take what they take on the agents' devices: as timed while nobody else computed on
 * that machine, or, of those that came later, as they said when their stage was built. */
static void measured_times(struct controller *c)
{
	if (c->options.time_scale != 0)
		return;
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];
		struct cluster_node was = c->cluster->nodes[i];

		if (!m->replica || m->measured_forward_s <= 0)
			continue;
		if (m->alone_forward_s <= 0) {
			m->alone_forward_s = m->measured_forward_s;
			m->alone_backward_s = m->measured_backward_s;
			m->alone_loss_s = m->measured_loss_s;
		}
		drift_set_times(c, m);
		if (was.forward_s != c->cluster->nodes[i].forward_s)
			record_compute(c, m->id);
	}
}

/* A plan from before somebody changed stages is no place to start from. */
static bool as_pinned(const struct controller *c, const struct plan *p)
{
	for (int s = 0; s < p->n_stages; s++)
		for (int i = p->stage_start[s]; i < p->stage_start[s + 1]; i++)
			if (c->cluster->nodes[p->assigned[i]].stage != s)
				return false;
	return true;
}

void replan_question(const struct controller *c, struct planner_request *q, bool *excluded)
{
	*q = (struct planner_request){ .kind = PLANNER_RUN,
				       .path_length = (int)c->path_length,
				       .algorithm = c->options.algorithm,
				       .stand_in = STAND_IN_BEST,
				       .excluded = excluded,
				       .split_backward = c->options.split_backward,
				       .overlap_sync = c->options.overlap_sync,
				       .jitter = c->options.jitter,
				       .threads = 1,
				       .seed = c->options.seed };
	for (uint32_t i = 0; i < c->n_members; i++)
		excluded[i] = !c->members[i].replica || c->members[i].marked;
}

const struct plan *replan_from(const struct controller *c, const struct planner_request *q)
{
	const struct plan *from = c->current ? c->current->plan : NULL, *ready = NULL;
	bool other = from && from->path_length != q->path_length; /* or for other nodes */

	for (uint32_t i = 0; c->ahead && i < c->n_members; i++)
		other = other || q->excluded[i] == planned_uses(c->current, (uint16_t)i);
	if (other)
		ready = ahead_plan(c, q->excluded, q->path_length);
	if (ready && as_pinned(c, ready))
		return ready;
	return from && as_pinned(c, from) ? from : NULL;
}

double replan_budget_s(const struct controller *c, double best_s)
{
	return c->options.algorithm == PLAN_BEST ? best_s : c->options.budget_s;
}

/* from: NULL: wherever is best. */
static void ask(struct controller *c, double best_s, const struct plan *from)
{
	bool excluded[MSG_NODES];
	struct planner_request q;

	replan_question(c, &q, excluded);
	q.from = from && as_pinned(c, from) ? from : replan_from(c, &q);
	q.budget_s = replan_budget_s(c, best_s);
	q.reason = c->plan_reason;
	measured_times(c);
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
				     .split_backward = c->options.split_backward,
				     .overlap_sync = c->options.overlap_sync,
				     .jitter = c->options.jitter,
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
	ask(c, quick_s, NULL);
}

/* The first answer to a change is worth a short wait before the next iteration; what refines it is not. */
bool replan_awaited(const struct controller *c)
{
	return c->plan_wanted && c->refine_wanted && c->current &&
	       replan_budget_s(c, quick_s) < short_wait * c->unit_s * c->current->plan->predicted.iteration_s;
}

void replan_if_better(struct controller *c, const char *reason)
{
	snprintf(c->plan_reason, sizeof(c->plan_reason), "%s", reason);
	c->refine_wanted = false;
	ask(c, refine_s, NULL);
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

static void infeasible(struct controller *c, const struct planned *a)
{
	note(c, NOTE_ALERT, -1, 0, "no plan: %s", a->infeasible);
	if (c->phase == PHASE_GATHERING) {
		controller_finish(c, 3, a->infeasible);
	} else if (c->current && c->path_length != (uint32_t)c->current->plan->path_length) {
		c->path_length = (uint32_t)c->current->plan->path_length;
		note(c, NOTE_WARNING, -1, 0, "the skip ratio stays as it was");
		replan(c, "the wanted skip ratio has no plan");
	} else if (!c->current || !replan_usable(c, c->current)) {
		cuts_give_way(c);
	}
}

static double cost(const struct planned *p)
{
	const struct plan_predicted *d = &p->plan->predicted;

	return d->jitter > 0 ? d->expected_s : d->iteration_s;
}

/* By the algorithm that the run was begun with: a stand-in is not. */
static bool is_own(const struct controller *c, const struct planned *p)
{
	const char *by = p->plan->search.algorithm;

	return c->options.algorithm == PLAN_BEST ||
	       (by && strcmp(by, plan_algorithm_name(c->options.algorithm)) == 0);
}

/* Its own before a stand-in's, else the shorter: by more than `factor` says. */
static bool is_better(const struct controller *c, const struct planned *a, const struct planned *than,
		      double factor)
{
	if (is_own(c, a) != is_own(c, than))
		return is_own(c, a);
	return cost(a) < cost(than) * factor;
}

/* That a plan is not what was asked for: once, until it is something else. */
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
static void refine(struct controller *c)
{
	c->refine_wanted = false;
	if (c->options.algorithm != PLAN_BEST)
		return;
	if (!strstr(c->plan_reason, refined_words))
		strncat(c->plan_reason, refined_words,
			sizeof(c->plan_reason) - strlen(c->plan_reason) - 1);
	ask(c, refine_s, c->pending->plan);
}

static void take_run(struct controller *c, struct planned *a)
{
	bool refined = !c->refine_wanted;
	bool sooner = a->request == c->sooner_plan;

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
		infeasible(c, a);
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
		refine(c);
	if (sooner) {
		c->sooner_plan = 0;
		recover_sooner(c);
	}
}

void replan_turn(struct controller *c)
{
	struct planned *a;

	while ((a = planner_take(c->planner)) != NULL) {
		predict(c, a);
		switch (a->kind) {
		case PLANNER_RUN:
			take_run(c, a);
			break;
		case PLANNER_PREVIEW:
		case PLANNER_COMPARE:
			command_previewed(c, a);
			break;
		case PLANNER_BASELINE:
			if (a->plan)
				c->baseline_s = a->plan->predicted.iteration_s;
			consoles_run(c);
			planned_free(a);
			break;
		}
	}
}
