/* ahead.c - plans made ahead of losses.
 *
 * While the run goes on, a thread that takes only idle time looks for the plan with which it would go on if a
 * node were lost, one node after another: as good a one as a second (--ahead) finds. When that node is lost, or the
 * operator asks what it would cost, planning begins there and need not find in a tenth of a second what takes
 * ten times as long. Consoles show what each loss would cost; where it would gain something, as without a data
 * node that has become slow, which has its own microbatches whatever the plan, the operator is told.
 *
 * A plan made ahead is of use as long as exactly those are out for whom it was made, and the node; who starts
 * from it judges it by today's times, whatever they were then. For others it is made anew.
 */
#include "controller/controller.h"

#include <errno.h>
#include <stdlib.h>

enum { MOST_NODES = 64, RENEWED_US = 30000000 }; /* with more it would take minutes; sets are 64 bits */
static const double changed = 1.5; /* times as much work as it was: at once */
static const double worth = 0.9;   /* of an iteration: to be told */
struct foreseen {
	struct planned *answer; /* NULL: not made yet */
	uint64_t out;           /* who is out in it: the node, and whoever was then */
	uint32_t path_length;
	uint64_t epoch;         /* of the plan in force */
	double work_s;          /* of a microbatch at the node */
	int64_t made_us;
};

struct ahead {
	struct planner *planner;
	uint64_t request; /* 0: none under way */
	uint32_t node;    /* it is for, and the rest of what it will be */
	struct foreseen asked;
	struct foreseen of[MOST_NODES];
	bool told[MOST_NODES]; /* that it holds the run up */
};

static uint64_t bit(uint32_t node)
{
	return (uint64_t)1 << node;
}

static uint64_t out_now(const struct controller *c)
{
	uint64_t out = 0;

	for (uint32_t i = 0; i < c->n_members; i++)
		out |= !c->members[i].replica || c->members[i].marked ? bit(i) : 0;
	return out;
}

int ahead_start(struct controller *c, struct error *err)
{
	int rc;

	if (c->n_members > MOST_NODES || c->options.ahead_s <= 0)
		return 0;
	c->ahead = calloc(1, sizeof(*c->ahead));
	if (!c->ahead)
		return error_set(err, -ENOMEM, "out of memory");
	rc = planner_start_idle(&c->ahead->planner, err);
	if (rc != 0) {
		free(c->ahead);
		c->ahead = NULL;
	}
	return rc;
}

void ahead_stop(struct controller *c)
{
	if (!c->ahead)
		return;
	planner_stop(c->ahead->planner);
	for (uint32_t i = 0; i < MOST_NODES; i++)
		planned_free(c->ahead->of[i].answer);
	free(c->ahead);
	c->ahead = NULL;
}

static const struct foreseen *known(const struct controller *c, uint32_t node, uint64_t out)
{
	const struct foreseen *f = &c->ahead->of[node];

	return f->answer && f->out == out && f->path_length == c->path_length ? f : NULL;
}

const struct plan *ahead_plan(const struct controller *c, const bool *excluded, int path_length)
{
	uint64_t out = 0;

	for (uint32_t i = 0; c->ahead && i < c->n_members; i++)
		out |= excluded[i] ? bit(i) : 0;
	for (uint32_t i = 0; c->ahead && i < c->n_members; i++) {
		const struct foreseen *f = excluded[i] ? known(c, i, out) : NULL;

		if (f && f->answer->plan && (int)f->path_length == path_length)
			return f->answer->plan;
	}
	return NULL;
}

/* The plan in force has been overtaken: it needs somebody who is out. */
static bool is_overtaken(const struct controller *c, uint64_t out)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		if ((out & bit(i)) && planned_uses(c->current, (uint16_t)i))
			return true;
	return false;
}

double ahead_lost_s(const struct controller *c, const struct member *m)
{
	uint64_t out = c->ahead ? out_now(c) : 0;
	const struct foreseen *f = c->ahead && m->replica && !m->marked ? known(c, m->id, out | bit(m->id))
									: NULL;

	if (!f || is_overtaken(c, out))
		return 0;
	return f->answer->plan ? f->answer->plan->predicted.iteration_s : -1;
}

static void tell_who_holds_up(struct controller *c, uint32_t node)
{
	const struct member *m = &c->members[node];
	double now_s = c->current ? c->current->plan->predicted.iteration_s : 0, lost_s = ahead_lost_s(c, m);
	bool does = c->ahead->of[node].epoch == c->epoch && lost_s > 0 && lost_s < worth * now_s;

	if (does && !c->ahead->told[node])
		note(c, NOTE_WARNING, m->id, 0,
		     "n%02u holds all up: without it an iteration would take %.3g s, not %.3g", m->id, lost_s,
		     now_s);
	c->ahead->told[node] = does;
}

static void take(struct controller *c)
{
	struct ahead *a = c->ahead;
	struct planned *answer;

	while ((answer = planner_take(a->planner)) != NULL) {
		struct foreseen *f = &a->of[a->node];

		if (answer->request != a->request) {
			planned_free(answer);
			continue;
		}
		planned_free(f->answer);
		*f = a->asked;
		f->answer = answer;
		f->made_us = c->now_us;
		a->request = 0;
		c->members[a->node].changed = true;
		tell_who_holds_up(c, a->node);
	}
}

static double work_s(const struct controller *c, uint32_t node)
{
	return c->cluster->nodes[node].forward_s + c->cluster->nodes[node].backward_s;
}

/* None is there for today, or one of before the plan in force: an old one, or of a node that was quicker or slower. */
static bool is_due(const struct controller *c, uint32_t node, uint64_t out)
{
	const struct foreseen *f = known(c, node, out | bit(node));
	double work = work_s(c, node);

	return !f || (f->epoch != c->epoch && (c->now_us - f->made_us > RENEWED_US ||
					       work > changed * f->work_s || f->work_s > changed * work));
}

/* The stage's last replica is not replaced by a plan but by another node (recover.c). */
static bool can_be_spared(const struct controller *c, uint32_t node)
{
	const struct member *m = &c->members[node];

	return m->replica && !m->marked && stage_replicas(c, member_stage(c, m), m) > 0;
}

static void ask(struct controller *c, uint32_t node, uint64_t out)
{
	struct ahead *a = c->ahead;
	bool excluded[MSG_NODES];
	struct planner_request q;

	replan_question(c, &q, excluded);
	excluded[node] = true;
	q.from = replan_from(c, &q);
	q.budget_s = c->options.ahead_s;
	q.reason = "ahead";
	a->node = node;
	a->asked = (struct foreseen){ .out = out | bit(node),
				       .path_length = c->path_length,
				       .epoch = c->epoch,
				       .work_s = work_s(c, node) };
	a->request = planner_ask(a->planner, c->cluster, &q);
}

/* The slowest first, else in turn; n_members: nobody. */
static uint32_t next(const struct controller *c, uint64_t out)
{
	uint32_t best = c->n_members;

	for (uint32_t k = 1; k <= c->n_members; k++) {
		uint32_t node = (c->ahead->node + k) % c->n_members;

		if (can_be_spared(c, node) && is_due(c, node, out) &&
		    (best == c->n_members || work_s(c, node) > work_s(c, best)))
			best = node;
	}
	return best;
}

void ahead_turn(struct controller *c)
{
	struct ahead *a = c->ahead;
	uint64_t out;
	uint32_t node;

	if (!a)
		return;
	take(c);
	out = out_now(c);
	if (a->request && (a->asked.out != (out | bit(a->node)) || a->asked.path_length != c->path_length))
		a->request = 0; /* nobody wants it any more; the next one cancels it */
	if (a->request || !c->current || c->phase == PHASE_GATHERING || c->phase == PHASE_STALLED)
		return;
	node = next(c, out);
	if (node < c->n_members)
		ask(c, node, out);
}
