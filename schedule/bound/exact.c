#include "schedule/bound/exact.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "schedule/problem/routes.h"
#include "schedule/execution/simulate.h"

/* Depth first over the execution itself: a moment is all there is to know at an instant. At each, the
 * first node that is free and has something to start branches over what (branch_at), and a forward
 * task over where its microbatch goes next, which is a hop in the tree of legal paths. When nothing
 * can start, time advances to the next arrival or end. A branch ends when least_end says that it
 * cannot beat the best plan known. */

#define ASK_EVERY 4096
#define EQUAL (1 - 1e-12)

/* The legal paths of a data node as a tree of hops: siblings have the same way behind them. */
struct hop {
	int32_t node, parent, child, sibling; /* -1: none */
	double rest_s; /* the least from the end of the F here to the end of the last B */
};

/* Everything about a moment of the execution. */
struct moment {
	double now_s;
	double arrival_s[EXACT_MOST_MICROBATCHES]; /* of the next task; INFINITY: all done */
	double rest_s[EXACT_MOST_MICROBATCHES];    /* the least from the start of the next task to the end */
	int32_t at[EXACT_MOST_MICROBATCHES];       /* the last hop chosen; until the first F starts the root */
	uint8_t step[EXACT_MOST_MICROBATCHES];     /* tasks done or running */
	bool waiting[EXACT_MOST_MICROBATCHES];
	double free_s[EXACT_MOST_NODES];
	bool busy[EXACT_MOST_NODES];
	uint8_t held[EXACT_MOST_NODES];
	uint8_t visits[EXACT_MOST_STAGES];
	int to_come;  /* visits not chosen yet */
	double end_s; /* of the last microbatch that is back */
	int n_log;
};

struct start {
	int8_t mb, step;
	int16_t node;
};

struct exact {
	const struct problem *p;
	const struct solution *s;
	const struct progress *g;
	struct hop *hops;
	int n_hops;
	size_t room;
	int32_t root[EXACT_MOST_MICROBATCHES];                             /* by place in stage 0 */
	struct start log[EXACT_MOST_MICROBATCHES * (2 * EXACT_MOST_STAGES + 1)]; /* of the branch being looked at */
	struct start best_log[EXACT_MOST_MICROBATCHES * (2 * EXACT_MOST_STAGES + 1)];
	int32_t best_hop[EXACT_MOST_MICROBATCHES];
	int n_best;
	double best_s;
	long steps_left;
	bool gave_up;
};

bool exact_is_small(const struct problem *p)
{
	return problem_is(p, REGIME_EXACT) && p->n_movable == 0 && !p->q->split_backward;
}

static int add_hop(struct exact *e, int node, int parent)
{
	if (e->n_hops == EXACT_MOST_HOPS)
		return PLAN_NOT_FOUND;
	if (!array_grow(&e->hops, &e->room, (size_t)e->n_hops + 1, sizeof(e->hops[0])))
		return -ENOMEM;
	e->hops[e->n_hops++] = (struct hop){ node, parent, -1, -1, INFINITY };
	return 0;
}

/* Home, L, and the way back through all hops. */
static double home_s(const struct exact *e, int at)
{
	const struct problem *p = e->p;
	int data = at;
	double rest_s = 0;

	for (int h = at; e->hops[h].parent >= 0; h = e->hops[h].parent) {
		int v = e->hops[h].node, u = e->hops[e->hops[h].parent].node;

		rest_s += p->c->nodes[v].backward_s + problem_delay_s(p, v, u);
		data = e->hops[h].parent;
	}
	data = e->hops[data].node;
	if (data != e->hops[at].node)
		rest_s += problem_delay_s(p, e->hops[at].node, data) + problem_delay_s(p, data, e->hops[at].node);
	return rest_s + p->c->nodes[data].loss_s + p->c->nodes[data].backward_s;
}

struct growing {
	struct exact *e;
	int root;
};

/* A path into the tree. */
static int add_path(void *arg, const int *path)
{
	struct growing *g = arg;
	struct exact *e = g->e;
	int at = g->root, rc = 0;

	for (int h = 1; rc == 0 && h < e->p->length; h++) {
		int child = e->hops[at].child;

		while (child >= 0 && e->hops[child].node != path[h])
			child = e->hops[child].sibling;
		if (child < 0) {
			child = e->n_hops;
			rc = add_hop(e, path[h], at);
			if (rc != 0)
				return rc;
			e->hops[child].sibling = e->hops[at].child;
			e->hops[at].child = child;
		}
		at = child;
	}
	e->hops[at].rest_s = home_s(e, at);
	return 0;
}

/* The least rests, from the leaves up, and the shortest child first. */
static double find_rests(struct exact *e, int at)
{
	const struct problem *p = e->p;
	int32_t sorted = -1;

	for (int32_t child = e->hops[at].child, next; child >= 0; child = next) {
		int v = e->hops[child].node;
		int32_t *link = &sorted;
		double rest_s = problem_delay_s(p, e->hops[at].node, v) + p->c->nodes[v].forward_s +
				find_rests(e, child);

		next = e->hops[child].sibling;
		e->hops[at].rest_s = fmin(e->hops[at].rest_s, rest_s);
		while (*link >= 0 && e->hops[*link].rest_s <= e->hops[child].rest_s)
			link = &e->hops[*link].sibling;
		e->hops[child].sibling = *link;
		*link = child;
	}
	e->hops[at].child = sorted;
	return e->hops[at].rest_s;
}

static int node_of(const struct exact *e, const struct moment *m, int mb)
{
	int length = e->p->length, h = m->at[mb], step = m->step[mb], up;

	if (step < length)
		return e->hops[h].node;
	up = step == length ? length - 1 : step - length - 1;
	for (; up > 0; up--)
		h = e->hops[h].parent;
	return e->hops[h].node;
}

static double task_duration_s(const struct exact *e, int node, int step)
{
	const struct cluster_node *n = &e->p->c->nodes[node];
	int length = e->p->length;

	return step < length ? n->forward_s : step == length ? n->loss_s : n->backward_s;
}

/* What is under way and still to start cannot all be back before this. */
static double least_end(const struct exact *e, const struct moment *m)
{
	const struct problem *p = e->p;
	double least = 0;

	for (int i = 0; i < p->n_mb;) {
		int place = p->mb_slot[i], node = e->s->members[place], tasks = 0,
		    unstarted = 0;
		const struct cluster_node *n = &p->c->nodes[node];
		double start = m->busy[node] ? m->free_s[node] : m->now_s, work = 0, held = 0,
		       end;

		for (; i < p->n_mb && p->mb_slot[i] == place; i++) {
			int step = m->step[i];

			if (step == 2 * p->length + 1)
				continue;
			end = fmax(m->arrival_s[i], m->now_s) + m->rest_s[i];
			least = fmax(least, end);
			held += step > 0 ? end - m->now_s : m->rest_s[i];
			unstarted += step == 0;
			tasks += (step == 0) + (step <= p->length) + 1;
			work += (step == 0 ? n->forward_s : 0) +
				(step <= p->length ? n->loss_s : 0) + n->backward_s;
		}
		if (tasks > 0)
			least = fmax(least,
				     start + work + (tasks - 1) * p->c->dispatch_overhead_s);
		if (unstarted > 0)
			least = fmax(least, m->now_s + held / n->memory);
	}
	return least;
}

/* Can the visits still to be chosen bring every stage between its limits? */
static bool may_even_out(const struct exact *e, const struct moment *m)
{
	int room = 0, lack = 0;

	for (int s = 1; s < e->p->n_stages; s++) {
		if (m->visits[s] > e->p->high[s])
			return false;
		room += e->p->high[s] - m->visits[s];
		lack += m->visits[s] < e->p->low[s] ? e->p->low[s] - m->visits[s] : 0;
	}
	return lack <= m->to_come && m->to_come <= room;
}

static void record_best(struct exact *e, const struct moment *m)
{
	for (int i = 0; i < e->p->n_mb; i++) {
		if (m->step[i] != 2 * e->p->length + 1)
			return; /* standstill */
	}
	e->best_s = m->end_s;
	memcpy(e->best_hop, m->at, sizeof(e->best_hop));
	e->n_best = m->n_log;
	memcpy(e->best_log, e->log, (size_t)m->n_log * sizeof(*e->log));
}

struct choice {
	int mb;
	int32_t hop; /* the next one; -1: the task is not an F with hops to come */
};

/* The task starts now: the node is busy and a slot taken or given back; its microbatch then travels to
 * its next task, by the hop chosen where there was a choice, and the least rest is brought up to date. */
static void begin_task(struct exact *e, struct moment *m, struct choice k)
{
	const struct problem *p = e->p;
	int step = m->step[k.mb], node = node_of(e, m, k.mb), to;
	double took = task_duration_s(e, node, step), end = m->now_s + took;

	e->log[m->n_log++] = (struct start){ (int8_t)k.mb, (int8_t)step, (int16_t)node };
	m->held[node] = (uint8_t)(m->held[node] + (step < p->length) - (step > p->length));
	m->busy[node] = true;
	m->free_s[node] = end + p->c->dispatch_overhead_s;
	m->waiting[k.mb] = false;
	m->step[k.mb]++;
	if (step == 2 * p->length) {
		m->arrival_s[k.mb] = INFINITY;
		m->end_s = fmax(m->end_s, end);
		return;
	}
	if (k.hop >= 0) {
		m->at[k.mb] = k.hop;
		m->visits[e->s->stage_of[e->hops[k.hop].node]]++;
		m->to_come--;
	}
	to = node_of(e, m, k.mb);
	m->arrival_s[k.mb] = end + problem_delay_s(p, node, to);
	if (k.hop >= 0)
		m->rest_s[k.mb] = p->c->nodes[to].forward_s + e->hops[k.hop].rest_s;
	else if (step == p->length - 1)
		m->rest_s[k.mb] = e->hops[m->at[k.mb]].rest_s - problem_delay_s(p, node, to);
	else
		m->rest_s[k.mb] -= took + problem_delay_s(p, node, to);
}

static bool may_start(const struct exact *e, const struct moment *m, int mb, int node)
{
	return m->waiting[mb] && node_of(e, m, mb) == node &&
	       (m->step[mb] >= e->p->length || m->held[node] < e->p->c->nodes[node].memory);
}

/* The microbatches to choose from at a node. */
static int list_candidates(const struct exact *e, const struct moment *m, int node, int *mb)
{
	const struct problem *p = e->p;
	int n = 0;

	for (int i = 0, fresh = 0; i < p->n_mb; i++) {
		if (!may_start(e, m, i, node))
			continue;
		if (p->q->fifo && n > 0) {
			mb[0] = m->arrival_s[i] < m->arrival_s[mb[0]] ? i : mb[0];
			continue;
		}
		/* Microbatches that have not started yet are alike. */
		if (p->q->fifo || m->step[i] > 0 || fresh++ == 0)
			mb[n++] = i;
	}
	return n;
}

/* The next instant at which anything happens; false: nothing will. */
static bool advance_time(const struct exact *e, struct moment *m)
{
	double next = INFINITY;

	for (int i = 0; i < e->p->n_mb; i++) {
		if (!m->waiting[i])
			next = fmin(next, m->arrival_s[i]);
	}
	for (int v = 0; v < e->p->n_nodes; v++) {
		if (m->busy[v])
			next = fmin(next, m->free_s[v]);
	}
	if (isinf(next))
		return false;
	m->now_s = next;
	for (int i = 0; i < e->p->n_mb; i++)
		m->waiting[i] = m->waiting[i] || m->arrival_s[i] == next;
	for (int v = 0; v < e->p->n_nodes; v++)
		m->busy[v] = m->busy[v] && m->free_s[v] > next;
	return true;
}

static bool worth_it(const struct exact *e, const struct moment *m)
{
	return least_end(e, m) < e->best_s * EQUAL;
}

static bool out_of_steps(struct exact *e)
{
	if (--e->steps_left < 0 || (e->g && e->steps_left % ASK_EVERY == 0 && progress_over(e->g)))
		e->gave_up = true;
	return e->gave_up;
}

static void explore_from(struct exact *e, struct moment *m);

static void branch_on(struct exact *e, const struct moment *m, struct choice k)
{
	struct moment next = *m;

	if (out_of_steps(e))
		return;
	begin_task(e, &next, k);
	if ((k.hop < 0 || may_even_out(e, &next)) && worth_it(e, &next))
		explore_from(e, &next);
}

/* All that the node can do now. */
static void branch_at(struct exact *e, const struct moment *m, const int *mb, int n)
{
	for (int i = 0; i < n && !e->gave_up; i++) {
		bool goes_on = m->step[mb[i]] < e->p->length - 1;
		int32_t hop = goes_on ? e->hops[m->at[mb[i]]].child : -1;

		do {
			branch_on(e, m, (struct choice){ mb[i], hop });
			hop = goes_on ? e->hops[hop].sibling : -1;
		} while (hop >= 0 && !e->gave_up);
	}
}

/* Every way things can go on from this moment. Which node chooses first does not matter: a node
 * sees only what waits with it. */
static void explore_from(struct exact *e, struct moment *m)
{
	int mb[EXACT_MOST_MICROBATCHES];

	for (;;) {
		int v = 0, n = 0;

		while (v < e->p->n_nodes && (m->busy[v] || (n = list_candidates(e, m, v, mb)) == 0))
			v++;
		if (v < e->p->n_nodes) {
			branch_at(e, m, mb, n);
			return;
		}
		if (!advance_time(e, m)) {
			record_best(e, m);
			return;
		}
		if (!worth_it(e, m))
			return;
	}
}

static int find_paths(struct exact *e, struct moment *m)
{
	const struct problem *p = e->p;
	int rc = 0;

	for (int i = 0; rc == 0 && i < p->n_mb; i++) {
		int place = p->mb_slot[i];

		if (i == 0 || place != p->mb_slot[i - 1]) {
			e->root[place] = e->n_hops;
			rc = add_hop(e, e->s->members[place], -1);
			if (rc == 0)
				rc = routes_each(p, e->s, e->s->members[place], EXACT_MOST_HOPS * 10L,
						 add_path,
						 &(struct growing){ e, e->root[place] });
			if (rc == 0)
				find_rests(e, e->root[place]);
		}
		m->at[i] = e->root[place];
		m->waiting[i] = true;
	}
	for (int i = 0; rc == 0 && i < p->n_mb; i++) {
		const struct hop *root = &e->hops[m->at[i]];

		m->rest_s[i] = p->c->nodes[root->node].forward_s + root->rest_s;
		if (isinf(root->rest_s))
			rc = PLAN_NOT_FOUND; /* no legal path at all */
	}
	m->to_come = p->n_mb * (p->length - 1);
	return rc;
}

/* The nodes' orders: tasks as they started. */
static int add_orders(const struct exact *e, struct plan *plan)
{
	static const enum task_kind kinds[] = { TASK_FORWARD, TASK_LOSS, TASK_BACKWARD };
	int length = e->p->length;

	plan->orders = calloc((size_t)e->p->n_nodes, sizeof(*plan->orders));
	if (!plan->orders)
		return -ENOMEM;
	for (int v = 0; v < e->p->n_nodes; v++) {
		struct plan_order *o = &plan->orders[plan->n_orders];

		o->node = v;
		o->tasks = calloc((size_t)e->n_best + 1, sizeof(*o->tasks));
		plan->n_orders++;
		if (!o->tasks)
			return -ENOMEM;
		for (int k = 0; k < e->n_best; k++) {
			const struct start *t = &e->best_log[k];
			int kind = (t->step >= length) + (t->step > length);

			if (t->node == v)
				o->tasks[o->n_tasks++] =
					(struct plan_task){ t->mb, kinds[kind] };
		}
		if (o->n_tasks == 0) {
			free(o->tasks);
			plan->n_orders--;
		}
	}
	return 0;
}

/* First come, first served may do as well. */
static int add_orders_if_needed(const struct exact *e, struct plan *plan)
{
	struct simulation *sim = NULL;
	int rc = simulate(e->p->whole, plan, &sim, NULL);
	bool needed = rc != 0 || sim->iteration_s > e->best_s;

	simulation_free(sim);
	if (rc == -ENOMEM)
		return rc;
	return needed && !e->p->q->fifo ? add_orders(e, plan) : 0;
}

static int take_best(const struct exact *e, struct plan **out)
{
	const struct problem *p = e->p;
	struct plan *plan = NULL;
	struct solution best;
	int rc = solution_init(&best, p);

	if (rc != 0)
		return rc;
	solution_copy(&best, e->s, p);
	for (int i = 0; i < p->n_mb; i++) {
		int h = e->best_hop[i];

		for (int k = p->length - 1; k >= 0; k--, h = e->hops[h].parent)
			best.path[i * p->length + k] = e->hops[h].node;
	}
	plan = solution_to_plan(&best, p);
	rc = plan ? add_orders_if_needed(e, plan) : -ENOMEM;
	if (rc == 0)
		*out = plan;
	else
		plan_free(plan);
	solution_fini(&best);
	return rc;
}

int exact_search(const struct problem *p, const struct solution *s, double below_s, long most_steps,
		 const struct progress *g, struct plan **out)
{
	struct moment first = { 0 };
	struct exact *e;
	int rc;

	*out = NULL;
	if (!exact_is_small(p))
		return PLAN_NOT_FOUND;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	*e = (struct exact){ .p = p, .s = s, .g = g, .best_s = below_s, .steps_left = most_steps };
	rc = find_paths(e, &first);
	if (rc == 0) {
		explore_from(e, &first);
		if (e->n_best > 0)
			rc = take_best(e, out);
		if (rc == 0 && e->gave_up)
			rc = PLAN_NOT_FOUND;
	}
	free(e->hops);
	free(e);
	return rc;
}
