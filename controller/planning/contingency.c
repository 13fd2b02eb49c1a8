/* contingency.c - plans made ahead of a loss or a change of the skip ratio.
 *
 * A search that starts from nothing takes about a second to find a good plan. After a loss, the
 * run waits less than a tenth of a second. Therefore a thread with low priority plans one case
 * after another while the run continues: the loss of each node, one skipped stage more or less,
 * and the next phase of the skip schedule. Each case gets --ahead seconds. When a case occurs, or
 * when the operator asks for its cost, the search starts from the plan made for this case.
 *
 * Consoles show the iteration time after each possible loss. The operator is warned if the run
 * would be faster without a node. This happens with a slow data node, because no plan can move its
 * microbatches to another node.
 *
 * A plan made ahead fits only a case with exactly the same excluded nodes. A search that starts
 * from such a plan first predicts the plan's time again from current measurements. The newest plans
 * that were in force are also kept, because a lost node may come back. Baselines (--algorithm) plan
 * nothing ahead. */
#include "controller/planning/contingency.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "controller/members/member.h"
#include "controller/network/formats.h"
#include "controller/planning/planning.h"
#include "controller/planning/predict.h"
#include "controller/planning/request.h"
#include "controller/planning/skip_phases.h"
#include "controller/planning/spares.h"
#include "controller/run/journal.h"

/* Largest number of nodes for which plans are made ahead. Plans for more nodes would take
 * minutes, and a set of nodes has 64 bits */
enum { MOST_NODES = 64 };
/* Numbers of the cases. A number below MOST_NODES stands for the loss of the node with that
 * number. */
enum { SKIPS_LESS = MOST_NODES, SKIPS_MORE, NEXT_PHASE, CASES };
/* Number of earlier plans in force that are kept */
enum { KEPT = 4 };
enum { LEAST_LENGTH = 2, RENEWED_US = 30000000 };
/* A case is planned again if the work of its node has changed by this factor */
static const double changed = 1.5;
/* The operator is warned about a node if iterations without it would take less than this share of
 * their present time */
static const double worth = 0.9;

struct foreseen {
	struct planned *answer; /* NULL: no plan yet */
	uint64_t excluded;      /* set of the nodes that the plan excludes, one bit for each */
	uint32_t path_length, skip_share;
	struct tensor_formats formats;
	uint64_t epoch; /* epoch of the plan that was in force when this case was last planned */
	/* Seconds that the lost node computes for each of its microbatches; INFINITY: the case is
	 * not the loss of a node */
	double work_s;
	int64_t made_us;
};

struct contingency {
	struct planner *planner;
	uint64_t request; /* number of the request on which the planner works; 0: none */
	uint32_t last;    /* the case that was requested last */
	/* The case for which a plan was requested last, with the conditions at that time */
	struct foreseen asked;
	/* One entry for each case, then the plans that were in force earlier */
	struct foreseen cases[CASES + KEPT];
	uint32_t n_kept;
	uint64_t kept_epoch;     /* epoch of the newest plan that was kept */
	bool warned[MOST_NODES]; /* the operator was warned that this node slows the run */
};

static uint64_t bit_of(uint32_t node)
{
	return (uint64_t)1 << node;
}

static uint64_t out_now(const struct members *members)
{
	uint64_t out = 0;

	for (uint32_t i = 0; i < members->n; i++)
		out |= !member_is_replica(&members->list[i]) || members->list[i].is_marked ||
				       spares_wait(members, &members->list[i])
			       ? bit_of(i)
			       : 0;
	return out;
}

int contingency_start(struct planning *planning, struct error *err)
{
	int rc;

	if (planning->members->n > MOST_NODES || planning->run->options.planning.ahead_s <= 0 ||
	    planning->run->options.planning.algorithm != PLAN_BEST)
		return 0;
	planning->contingency = alloc_new(sizeof(*planning->contingency));
	rc = planner_start_idle(&planning->contingency->planner, err);
	if (rc != 0) {
		free(planning->contingency);
		planning->contingency = NULL;
	}
	return rc;
}

void contingency_stop(struct planning *planning)
{
	if (!planning->contingency)
		return;
	planner_stop(planning->contingency->planner);
	for (uint32_t k = 0; k < CASES + KEPT; k++)
		planned_free(planning->contingency->cases[k].answer);
	free(planning->contingency);
	planning->contingency = NULL;
}

/* Describes case k in *w for current conditions. Returns false if the case cannot occur, or if no
 * plan can prepare for it. After the loss of a stage's last replica, recover.c first gives the
 * stage to another node, so no plan can prepare for this loss. */
static bool what_if(const struct members *members, uint32_t k, struct foreseen *w)
{
	const struct member *m = k < members->n ? &members->list[k] : NULL;

	*w = (struct foreseen){ .excluded = out_now(members),
				.path_length = members->run->wanted.path_length,
				.skip_share = members->run->wanted.skip_share,
				.formats = members->run->wanted.formats,
				.epoch = members->run->epoch,
				.work_s = INFINITY };
	if (m && spares_wait(members, m))
		return false; /* the case would not change the plan */
	if (m) {
		const struct member *spare = spares_for(members, m);

		w->excluded |= bit_of(k);
		w->excluded &= spare ? ~bit_of(spare->id) : UINT64_MAX;
		w->work_s = (members->run->cluster->nodes[k].forward_s +
			     members->run->cluster->nodes[k].backward_s) *
			    member_work(members->run, m);
		return member_is_replica(m) && !m->is_marked &&
		       stage_replicas(members, member_stage(members->run, m), m) > 0;
	}
	w->path_length = k == NEXT_PHASE   ? skip_phases_next_length(members->run, &w->skip_share)
			 : k == SKIPS_LESS ? members->run->wanted.path_length + 1
					   : members->run->wanted.path_length - 1;
	if (w->path_length == (uint32_t)members->run->cluster->n_stages)
		w->skip_share = 0;
	return k >= MOST_NODES && w->path_length >= LEAST_LENGTH &&
	       w->path_length >= (uint32_t)stage_set_count(members->run->cluster->always) &&
	       w->path_length <= (uint32_t)members->run->cluster->n_stages;
}

/* Returns true if both cases exclude the same nodes and have the same skip ratio. */
static bool is_alike(const struct foreseen *a, const struct foreseen *b)
{
	return a->excluded == b->excluded && a->path_length == b->path_length &&
	       a->skip_share == b->skip_share;
}

static bool is_for(const struct foreseen *f, const struct foreseen *wanted)
{
	return f->answer && is_alike(f, wanted);
}

/* Returns the fastest stored plan that has the request's skip ratio and excludes exactly the
 * request's nodes, or NULL. The plan's nodes may have changed stages since the plan was made.
 * Borrowed until the next contingency_turn. */
static const struct plan *find_foreseen(const struct planning *planning,
					const struct planner_request *q)
{
	struct foreseen wanted = { .path_length = (uint32_t)q->path_length,
				   .skip_share = (uint32_t)q->skip_share };
	const struct plan *best = NULL;

	for (uint32_t i = 0; planning->contingency && i < planning->members->n; i++)
		wanted.excluded |= q->excluded[i] ? bit_of(i) : 0;
	for (uint32_t k = 0; planning->contingency && k < CASES + KEPT; k++) {
		const struct foreseen *f = &planning->contingency->cases[k];
		const struct plan *plan = is_for(f, &wanted) ? f->answer->plan : NULL;

		if (plan &&
		    (!best || plan->predicted.iteration_s < best->predicted.iteration_s))
			best = plan;
	}
	return best;
}

const struct plan *replan_from(const struct planning *planning, const struct planner_request *q)
{
	const struct plan *from = planning->run->plan ? planning->run->plan->plan : NULL,
			  *ready = NULL;
	/* True if the plan in force does not fit the request, because its nodes or its skip ratio
	 * differ. */
	bool other =
		from && (from->path_length != q->path_length || from->skip_share != q->skip_share);

	for (uint32_t i = 0; planning->contingency && i < planning->members->n; i++)
		other = other || q->excluded[i] == planned_uses(planning->run->plan, (uint16_t)i);
	if (other)
		ready = find_foreseen(planning, q);
	if (ready && replan_as_pinned(planning->run, ready, NULL))
		return ready;
	return from && replan_as_pinned(planning->run, from, NULL) ? from : NULL;
}

/* Stores a copy of the plan in force, once per plan. The copy replaces a stored plan for the same
 * nodes and path length, or else the oldest stored plan. */
static void keep_current(struct planning *planning)
{
	struct contingency *a = planning->contingency;
	struct foreseen new = { 0 }, *f = &a->cases[CASES + a->n_kept % KEPT];

	if (!planning->run->plan || a->kept_epoch == planning->run->epoch)
		return;
	a->kept_epoch = planning->run->epoch;
	new.path_length = (uint32_t)planning->run->plan->plan->path_length;
	new.skip_share = (uint32_t)planning->run->plan->plan->skip_share;
	for (uint32_t i = 0; i < planning->members->n; i++)
		new.excluded |= planned_uses(planning->run->plan, (uint16_t)i) ? 0 : bit_of(i);
	new.answer = alloc_new(sizeof(*new.answer));
	new.answer->plan = plan_copy(planning->run->plan->plan);
	for (uint32_t k = CASES; k < CASES + KEPT; k++)
		if (is_for(&a->cases[k], &new))
			f = &a->cases[k];
	a->n_kept += f == &a->cases[CASES + a->n_kept % KEPT];
	planned_free(f->answer);
	*f = new;
}

double contingency_lost_s(const struct planning *planning, const struct member *m)
{
	const struct foreseen *f;
	struct foreseen today;

	if (!planning->contingency || !planning->run->plan ||
	    !replan_usable(planning->members, planning->run->plan) ||
	    !what_if(planning->members, m->id, &today))
		return 0;
	f = &planning->contingency->cases[m->id];
	if (!is_for(f, &today) || !formats_equal(&f->formats, &today.formats))
		return 0;
	return f->answer->plan ? f->answer->plan->predicted.iteration_s : -1;
}

static void warn_of_slow_node(struct planning *planning, uint32_t node)
{
	const struct member *m = &planning->members->list[node];
	double now_s = planning->run->plan ? planning->run->plan->plan->predicted.iteration_s : 0,
	       lost_s = contingency_lost_s(planning, m);
	bool does = planning->contingency->cases[node].epoch == planning->run->epoch &&
		    lost_s > 0 && lost_s < worth * now_s;

	if (does && !planning->contingency->warned[node])
		note(planning->run, NOTE_WARNING, m->id, 0,
		     "n%02u slows the run: without it an iteration would take %.3g s, not %.3g",
		     m->id, lost_s, now_s);
	planning->contingency->warned[node] = does;
	planning->members->list[node].shown.is_stale = true;
}

static void take_answers(struct planning *planning)
{
	struct contingency *a = planning->contingency;
	struct planned *answer;

	while ((answer = planner_take(a->planner)) != NULL) {
		predict(planning->members, answer);
		struct foreseen *f = &a->cases[a->last];

		if (answer->request != a->request) {
			planned_free(answer);
			continue;
		}
		planned_free(f->answer);
		*f = a->asked;
		f->answer = answer;
		f->made_us = planning->run->now_us;
		a->request = 0;
		if (a->last < planning->members->n)
			warn_of_slow_node(planning, a->last);
	}
}

/* Returns true if case k must be planned again, because it has no plan for current conditions. If
 * another plan has taken effect since the case was planned, two more reasons count: the case's plan
 * is old, or the case's node has become much faster or slower. */
static bool is_due(const struct planning *planning, uint32_t k, const struct foreseen *today)
{
	const struct foreseen *f = &planning->contingency->cases[k];

	return !is_for(f, today) || !formats_equal(&f->formats, &today->formats) ||
	       (f->epoch != planning->run->epoch &&
		(planning->run->now_us - f->made_us > RENEWED_US ||
		 today->work_s > changed * f->work_s || f->work_s > changed * today->work_s));
}

/* Requests a plan for the next case: first for another skip ratio, then for the loss of the node
 * with the most work for each microbatch. Cases of equal urgency take turns. */
static void ask_next(struct planning *planning)
{
	struct contingency *a = planning->contingency;
	struct foreseen best = { .work_s = -1 }, today;
	bool excluded[MSG_NODES];
	struct planner_request q;
	uint32_t chosen = CASES;

	for (uint32_t i = 1; i <= CASES; i++) {
		uint32_t k = (a->last + i) % CASES;

		if (what_if(planning->members, k, &today) && is_due(planning, k, &today) &&
		    today.work_s > best.work_s) {
			best = today;
			chosen = k;
		}
	}
	if (chosen == CASES)
		return;
	replan_request(planning->members, &q, excluded);
	for (uint32_t i = 0; i < planning->members->n; i++)
		excluded[i] = best.excluded & bit_of(i);
	q.path_length = (int)best.path_length;
	q.skip_share = (int)best.skip_share;
	q.from = replan_from(planning, &q);
	q.budget_s = planning->run->options.planning.ahead_s;
	q.reason = "ahead";
	a->last = chosen;
	a->asked = best;
	a->request = replan_send(planning->members, a->planner, &q);
}

void contingency_turn(struct planning *planning)
{
	struct contingency *a = planning->contingency;
	struct foreseen today;

	if (!a)
		return;
	take_answers(planning);
	keep_current(planning);
	if (a->request &&
	    (!what_if(planning->members, a->last, &today) || !is_alike(&today, &a->asked) ||
	     !formats_equal(&today.formats, &a->asked.formats)))
		/* the answer to the request under way is useless now; the next request cancels
		 * it */
		a->request = 0;
	if (!a->request && planning->run->plan && planning->run->phase != PHASE_GATHERING &&
	    planning->run->phase != PHASE_STALLED)
		ask_next(planning);
}
