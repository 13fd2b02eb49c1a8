/* contingency.c - plans made ahead.
 *
 * While the run goes on, a thread that takes only idle time looks for the plans with which it
 * would go on if the operator skipped one stage more or less, or if a node were lost, one after
 * another: as good ones as a second (--ahead) finds. When that happens, or the operator asks
 * what it would cost, planning begins there and need not find in a tenth of a second what takes
 * ten times as long. Consoles show what each loss would cost; where it would gain something, as
 * without a data node that has become slow, which has its own microbatches whatever the plan,
 * the operator is told.
 *
 * A plan made ahead is of use where exactly those are out for whom it was made; who starts from
 * it judges it by today's times, whatever they were then. For others it is made anew. The last
 * plans that were in force are kept, too: who was lost may come back. Baselines (--algorithm) plan
 * nothing ahead.
 */
#include "controller/planning/contingency.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "controller/planning/planning.h"
#include "controller/iteration/predict.h"
#include "controller/members/member.h"
#include "controller/operator/journal.h"
#include "controller/planning/request.h"

enum { MOST_NODES = 64 }; /* with more it would take minutes; sets are 64 bits */
enum { SKIPS_LESS = MOST_NODES, SKIPS_MORE, CASES }; /* below them: the loss of the node */
enum { KEPT = 4 };
enum { LEAST_LENGTH = 2, RENEWED_US = 30000000 };
static const double changed = 1.5; /* times as much work as it was: at once */
static const double worth = 0.9;   /* of an iteration: to be told */

struct foreseen {
	struct planned *answer; /* NULL: not made yet */
	uint64_t out;           /* who is out in it */
	uint32_t path_length;
	uint64_t epoch; /* of the plan in force when it was asked for */
	double work_s;  /* of the node that is lost, a microbatch; INFINITY: none is */
	int64_t made_us;
};

struct contingency {
	struct planner *planner;
	uint64_t request; /* 0: none under way */
	uint32_t last;    /* the case that it is for, and the rest of what it will be */
	struct foreseen asked;
	struct foreseen of[CASES + KEPT]; /* then those that were in force */
	uint32_t n_kept;
	uint64_t kept_epoch;   /* of the last of them */
	bool told[MOST_NODES]; /* that it holds the run up */
};

static uint64_t bit_of(uint32_t node)
{
	return (uint64_t)1 << node;
}

static uint64_t out_now(const struct members *members)
{
	uint64_t out = 0;

	for (uint32_t i = 0; i < members->n; i++)
		out |= !members->list[i].is_replica || members->list[i].is_marked ? bit_of(i) : 0;
	return out;
}

int contingency_start(struct planning *planning, struct error *err)
{
	int rc;

	if (planning->members->n > MOST_NODES || planning->run->options.planning.ahead_s <= 0 ||
	    planning->run->options.planning.algorithm != PLAN_BEST)
		return 0;
	planning->contingency = calloc(1, sizeof(*planning->contingency));
	if (!planning->contingency)
		return error_set(err, -ENOMEM, "out of memory");
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
		planned_free(planning->contingency->of[k].answer);
	free(planning->contingency);
	planning->contingency = NULL;
}

/* What the case would be today, into w; false: it cannot be, or no plan would help. (The
 * stage's last replica is not replaced by a plan but by another node, recover.c.) */
static bool what_if(const struct members *members, uint32_t k, struct foreseen *w)
{
	const struct member *m = k < members->n ? &members->list[k] : NULL;

	*w = (struct foreseen){ .out = out_now(members),
				.path_length = members->run->wanted.path_length,
				.epoch = members->run->epoch,
				.work_s = INFINITY };
	if (m) {
		w->out |= bit_of(k);
		w->work_s = members->run->cluster->nodes[k].forward_s +
			    members->run->cluster->nodes[k].backward_s;
		return m->is_replica && !m->is_marked &&
		       stage_replicas(members, member_stage(members->run, m), m) > 0;
	}
	w->path_length = k == SKIPS_LESS ? members->run->wanted.path_length + 1
					 : members->run->wanted.path_length - 1;
	return k >= MOST_NODES && w->path_length >= LEAST_LENGTH &&
	       w->path_length <= (uint32_t)members->run->cluster->n_stages;
}

static bool is_for(const struct foreseen *f, uint64_t out, uint32_t path_length)
{
	return f->answer && f->out == out && f->path_length == path_length;
}

/* The best that was made ahead, or was in force, for a run with exactly these out and so long paths, its nodes where they
 * were then; NULL: none. Borrowed until the next contingency_turn. */
static const struct plan *find_foreseen(const struct planning *planning, const bool *excluded,
					int path_length)
{
	const struct plan *best = NULL;
	uint64_t out = 0;

	for (uint32_t i = 0; planning->contingency && i < planning->members->n; i++)
		out |= excluded[i] ? bit_of(i) : 0;
	for (uint32_t k = 0; planning->contingency && k < CASES + KEPT; k++) {
		const struct foreseen *f = &planning->contingency->of[k];
		const struct plan *plan =
			is_for(f, out, (uint32_t)path_length) ? f->answer->plan : NULL;

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
	bool other = from && from->path_length != q->path_length; /* or for other nodes */

	for (uint32_t i = 0; planning->contingency && i < planning->members->n; i++)
		other = other || q->excluded[i] == planned_uses(planning->run->plan, (uint16_t)i);
	if (other)
		ready = find_foreseen(planning, q->excluded, q->path_length);
	if (ready && replan_as_pinned(planning->run, ready))
		return ready;
	return from && replan_as_pinned(planning->run, from) ? from : NULL;
}

/* The plan in force, once. One for the same nodes makes way for it, else the oldest. */
static void keep_current(struct planning *planning)
{
	struct contingency *a = planning->contingency;
	struct foreseen new = { 0 }, *f = &a->of[CASES + a->n_kept % KEPT];

	if (!planning->run->plan || a->kept_epoch == planning->run->epoch)
		return;
	a->kept_epoch = planning->run->epoch;
	new.path_length = (uint32_t)planning->run->plan->plan->path_length;
	for (uint32_t i = 0; i < planning->members->n; i++)
		new.out |= planned_uses(planning->run->plan, (uint16_t)i) ? 0 : bit_of(i);
	new.answer = calloc(1, sizeof(*new.answer));
	if (new.answer)
		new.answer->plan = plan_copy(planning->run->plan->plan);
	for (uint32_t k = CASES; k < CASES + KEPT; k++)
		if (is_for(&a->of[k], new.out, new.path_length))
			f = &a->of[k];
	a->n_kept += f == &a->of[CASES + a->n_kept % KEPT];
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
	f = &planning->contingency->of[m->id];
	if (!is_for(f, today.out, today.path_length))
		return 0;
	return f->answer->plan ? f->answer->plan->predicted.iteration_s : -1;
}

static void tell_who_holds_up(struct planning *planning, uint32_t node)
{
	const struct member *m = &planning->members->list[node];
	double now_s = planning->run->plan ? planning->run->plan->plan->predicted.iteration_s : 0,
	       lost_s = contingency_lost_s(planning, m);
	bool does = planning->contingency->of[node].epoch == planning->run->epoch && lost_s > 0 &&
		    lost_s < worth * now_s;

	if (does && !planning->contingency->told[node])
		note(planning->run, NOTE_WARNING, m->id, 0,
		     "n%02u holds all up: without it an iteration would take %.3g s, not %.3g",
		     m->id, lost_s, now_s);
	planning->contingency->told[node] = does;
	planning->members->list[node].shown.is_stale = true;
}

static void take_answers(struct planning *planning)
{
	struct contingency *a = planning->contingency;
	struct planned *answer;

	while ((answer = planner_take(a->planner)) != NULL) {
		predict(planning->members, answer);
		struct foreseen *f = &a->of[a->last];

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
			tell_who_holds_up(planning, a->last);
	}
}

/* None is there for today, or one of before the plan in force: an old one, or of a node that
 * was quicker or slower. */
static bool is_due(const struct planning *planning, uint32_t k, const struct foreseen *today)
{
	const struct foreseen *f = &planning->contingency->of[k];

	return !is_for(f, today->out, today->path_length) ||
	       (f->epoch != planning->run->epoch &&
		(planning->run->now_us - f->made_us > RENEWED_US ||
		 today->work_s > changed * f->work_s || f->work_s > changed * today->work_s));
}

/* Another skip ratio first, then the slowest node, else in turn. */
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
		excluded[i] = best.out & bit_of(i);
	q.path_length = (int)best.path_length;
	q.from = replan_from(planning, &q);
	q.budget_s = planning->run->options.planning.ahead_s;
	q.reason = "ahead";
	a->last = chosen;
	a->asked = best;
	a->request = planner_ask(a->planner, planning->run->cluster, &q);
}

void contingency_turn(struct planning *planning)
{
	struct contingency *a = planning->contingency;
	struct foreseen today;

	if (!a)
		return;
	take_answers(planning);
	keep_current(planning);
	if (a->request && (!what_if(planning->members, a->last, &today) ||
			   today.out != a->asked.out || today.path_length != a->asked.path_length))
		a->request = 0; /* nobody wants it any more; the next one cancels it */
	if (!a->request && planning->run->plan && planning->run->phase != PHASE_GATHERING &&
	    planning->run->phase != PHASE_STALLED)
		ask_next(planning);
}
