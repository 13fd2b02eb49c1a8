/* remaining.c - what is left of an iteration: how long it takes, and how it takes less.
 *
 * The tasks that have not ended are simulated from now on: each node one at a time, first come, first served,
 * slots held until the backward. Where ways can change, microbatches that have not begun at a hop are moved to
 * another replica as long as that ends the iteration sooner, within an effort that the caller gives. Pure: no
 * clock, no messages.
 */
#include "controller/iteration/remaining.h"

#include <stdlib.h>

#include "wire/chain.h"

/* A task that is left: position t of a microbatch's chain. */
struct task {
	double arrival_s; /* when its last input is there */
	uint32_t mb;
	uint8_t t;
};

/* A task's input arrives, or a node is free: t is NODE_FREE then, and mb the node. */
struct event {
	double at_s;
	struct task task;
};

enum { NODE_FREE = UINT8_MAX };

struct node {
	bool busy, touched;
	int held; /* slots */
	uint32_t n_waiting;
	struct task *waiting; /* (r->n): of a microbatch one task at most */
};

struct run {
	const struct cluster *c;
	const struct routes *r;
	uint32_t first;
	double at_s, until_s;
	uint32_t left; /* tasks */
	struct node *nodes;
	struct task *rooms;
	struct event *heap;
	uint32_t n_heap;
	uint16_t *touched; /* (n_touched) nodes that may choose at this instant */
	uint32_t n_touched;
	uint8_t (*missing)[2 * MSG_STAGES + 1]; /* by microbatch and position: inputs that are not there */
	double (*arrival_s)[2 * MSG_STAGES + 1];
};

static void push(struct run *run, double at_s, struct task task)
{
	uint32_t i = run->n_heap++;

	while (i > 0 && run->heap[(i - 1) / 2].at_s > at_s) {
		run->heap[i] = run->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	run->heap[i] = (struct event){ at_s, task };
}

static struct event pop(struct run *run)
{
	struct event top = run->heap[0], last = run->heap[--run->n_heap];
	uint32_t i = 0;

	for (uint32_t child; (child = 2 * i + 1) < run->n_heap; i = child) {
		if (child + 1 < run->n_heap && run->heap[child + 1].at_s < run->heap[child].at_s)
			child++;
		if (run->heap[child].at_s >= last.at_s)
			break;
		run->heap[i] = run->heap[child];
	}
	run->heap[i] = last;
	return top;
}

static double lasts_s(const struct run *run, const struct microbatch *m, uint32_t t)
{
	const struct cluster_node *n = &run->c->nodes[routes_node_at(m, t)];
	uint32_t hops = m->route.n_hops;

	return t < hops ? n->forward_s : t == hops ? n->loss_s : n->backward_s;
}

/* Of t's output to the next. */
static double way_s(const struct run *run, const struct microbatch *m, uint32_t t)
{
	uint16_t from = routes_node_at(m, t), to = routes_node_at(m, t + 1);

	return from == to ? 0 : run->c->delay_s[from * (uint32_t)run->c->n_nodes + to];
}

/* One of its inputs is there; with the last, it arrives. */
static void input(struct run *run, uint32_t mb, uint32_t t, double at_s)
{
	double *arrival = &run->arrival_s[mb][t];

	if (at_s > *arrival)
		*arrival = at_s;
	if (--run->missing[mb][t] == 0)
		push(run, *arrival > run->at_s ? *arrival : run->at_s,
		     (struct task){ *arrival, mb, (uint8_t)t });
}

static void ended(struct run *run, uint32_t mb, uint32_t t, double at_s)
{
	const struct microbatch *m = &run->r->microbatches[mb];
	uint32_t n = m->route.n_hops;

	run->left--;
	if (at_s > run->until_s)
		run->until_s = at_s;
	if (t < 2 * n && run->missing[mb][t + 1] > 0)
		input(run, mb, t + 1, at_s + way_s(run, m, t));
	if (t < n && run->missing[mb][2 * n - t] > 0)
		input(run, mb, 2 * n - t, at_s); /* its backward pass has the activations */
	/* A data node's loss needs the slot of its F, and its B the loss to be done. */
	if (t == 0 && run->missing[mb][n] > 0)
		input(run, mb, n, at_s);
	if (t == n && run->missing[mb][2 * n] > 0)
		input(run, mb, 2 * n, at_s);
}

static bool before(const struct run *run, const struct task *a, const struct task *b)
{
	uint32_t aa = run->r->microbatches[a->mb].route.attempt,
		 ab = run->r->microbatches[b->mb].route.attempt;

	if ((aa > run->first || ab > run->first) && aa != ab)
		return aa > ab;
	return a->arrival_s != b->arrival_s ? a->arrival_s < b->arrival_s : a->mb < b->mb;
}

static void choose(struct run *run, uint16_t id, double now_s)
{
	struct node *n = &run->nodes[id];
	const struct microbatch *m;
	struct task task;
	uint32_t best = UINT32_MAX;
	double end_s;

	for (uint32_t i = 0; i < n->n_waiting; i++) {
		const struct task *t = &n->waiting[i];
		bool forward = t->t < run->r->microbatches[t->mb].route.n_hops;

		if ((!forward || n->held < run->c->nodes[id].memory) &&
		    (best == UINT32_MAX || before(run, t, &n->waiting[best])))
			best = i;
	}
	if (best == UINT32_MAX)
		return;
	task = n->waiting[best];
	n->waiting[best] = n->waiting[--n->n_waiting];
	m = &run->r->microbatches[task.mb];
	end_s = now_s + lasts_s(run, m, task.t);
	n->held += task.t < m->route.n_hops;
	n->held -= task.t > m->route.n_hops; /* nothing else starts here before its end */
	n->busy = true;
	push(run, end_s + run->c->dispatch_overhead_s, (struct task){ 0, id, NODE_FREE });
	ended(run, task.mb, task.t, end_s);
}

static void take_in(struct run *run, struct task task)
{
	bool free = task.t == NODE_FREE;
	uint16_t id = free ? (uint16_t)task.mb : routes_node_at(&run->r->microbatches[task.mb], task.t);
	struct node *n = &run->nodes[id];

	if (free)
		n->busy = false;
	else
		n->waiting[n->n_waiting++] = task;
	if (!n->touched)
		run->touched[run->n_touched++] = id;
	n->touched = true;
}

/* What happens at one instant is taken in before any node chooses. */
static void go(struct run *run)
{
	while (run->n_heap > 0) {
		double now_s = run->heap[0].at_s;

		while (run->n_heap > 0 && run->heap[0].at_s == now_s)
			take_in(run, pop(run).task);
		while (run->n_touched > 0) {
			uint16_t id = run->touched[--run->n_touched];

			run->nodes[id].touched = false;
			if (!run->nodes[id].busy)
				choose(run, id, now_s);
		}
	}
}

/* The task that has been begun goes on; it has its inputs, and its slot. */
static void goes_on(struct run *run, uint32_t mb, uint32_t t)
{
	const struct microbatch *m = &run->r->microbatches[mb];
	uint16_t node = routes_node_at(m, t);
	double end_s = m->began_s + lasts_s(run, m, t);

	if (end_s < run->at_s)
		end_s = run->at_s;
	run->missing[mb][t] = 0;
	run->nodes[node].held += t < m->route.n_hops;
	run->nodes[node].held -= t > m->route.n_hops;
	run->nodes[node].busy = true;
	push(run, end_s + run->c->dispatch_overhead_s, (struct task){ 0, node, NODE_FREE });
	ended(run, mb, t, end_s);
}

/* What is left of the microbatch, what of it is done, and what of that is on its way. False: there is no
 * link for it. */
static bool set_out(struct run *run, uint32_t mb)
{
	const struct microbatch *m = &run->r->microbatches[mb];
	uint32_t n = m->route.n_hops;

	for (uint32_t t = 0; t < 2 * n; t++)
		if (way_s(run, m, t) < 0 && !routes_began(m, t + 1))
			return false;
	for (uint32_t t = 0; t <= 2 * n; t++) {
		if (routes_ended(m, t))
			continue;
		run->missing[mb][t] = (uint8_t)(1 + (t >= n) + (t == 2 * n));
		run->arrival_s[mb][t] = 0;
		run->left++;
	}
	for (uint32_t h = 0; h < n; h++)
		run->nodes[m->nodes[h]].held += routes_ended(m, h) && !routes_ended(m, 2 * n - h);
	if (m->began_s >= 0 && m->passed <= 2 * n && !routes_ended(m, m->passed))
		goes_on(run, mb, m->passed);
	for (uint32_t t = 0; t <= 2 * n; t++) {
		/* To one that stands in it is sent now. */
		double sent_s = t == m->passed && !routes_owes(m, t) ? m->passed_s : run->at_s;

		if (run->missing[mb][t] == 0)
			continue;
		if (t >= n && routes_ended(m, chain_hop(n, t)))
			input(run, mb, t, 0);
		if (t == 2 * n && routes_ended(m, n))
			input(run, mb, t, 0);
		if (t == 0)
			input(run, mb, t, 0);
		else if (run->missing[mb][t] > 0 && routes_ended(m, t - 1))
			input(run, mb, t, sent_s + way_s(run, m, t - 1));
	}
	return true;
}

static bool run_alloc(struct run *run)
{
	uint32_t n = run->r->n, nodes = (uint32_t)run->c->n_nodes;
	size_t tasks = 0;

	for (uint32_t i = 0; i < n; i++)
		tasks += 2 * run->r->microbatches[i].route.n_hops + 1;
	run->nodes = calloc(nodes + 1, sizeof(*run->nodes));
	run->rooms = calloc((size_t)nodes * n + 1, sizeof(*run->rooms));
	run->heap = calloc(tasks + nodes + 1, sizeof(*run->heap));
	run->touched = calloc(nodes + 1, sizeof(*run->touched));
	run->missing = calloc(n + 1, sizeof(*run->missing));
	run->arrival_s = calloc(n + 1, sizeof(*run->arrival_s));
	if (!run->nodes || !run->rooms || !run->heap || !run->touched || !run->missing || !run->arrival_s)
		return false;
	for (uint32_t i = 0; i < nodes; i++)
		run->nodes[i].waiting = &run->rooms[(size_t)i * n];
	return true;
}

static void run_free(struct run *run)
{
	free(run->nodes);
	free(run->rooms);
	free(run->heap);
	free(run->touched);
	free(run->missing);
	free(run->arrival_s);
}

double remaining_until_s(const struct cluster *c, const struct routes *r, uint32_t first, double at_s)
{
	struct run run = { .c = c, .r = r, .first = first, .at_s = at_s, .until_s = at_s };
	bool known = run_alloc(&run);

	for (uint32_t i = 0; known && i < r->n; i++)
		if (!r->microbatches[i].done)
			known = set_out(&run, i);
	if (known)
		go(&run);
	run_free(&run);
	return known && run.left == 0 ? run.until_s : -1;
}

/* ---- shorter ---- */

/* What remaining_improve looks at. */
struct look {
	const struct cluster *c;
	struct routes *r;
	uint32_t first;
	double at_s, until_s;
	const bool *usable;
	const int *stage_of;
	int64_t left; /* tasks that may still be simulated */
	uint32_t *changed;
	int n;
};

static bool may_go(const struct look *l, const struct microbatch *m, uint32_t hop, uint16_t node)
{
	return l->usable[node] && l->stage_of[node] == m->stages[hop] && routes_hop(m, node) < 0;
}

/* Nobody has begun its F there, as far as is known, nor counted it before all of it began again. */
static bool is_ahead(const struct routes *r, const struct microbatch *m, uint32_t hop)
{
	return !m->done && hop >= m->passed && (hop > m->passed || m->began_s < 0) && !routes_counted_at(r, m, hop);
}

static bool among(const uint32_t *list, int n, uint32_t i)
{
	while (n > 0 && list[n - 1] != i)
		n--;
	return n > 0;
}

/* The hop moves to where the iteration is shortest. Whether it has moved. */
static bool move(struct look *l, uint32_t i, uint32_t hop)
{
	struct microbatch *m = &l->r->microbatches[i];
	uint16_t was = m->nodes[hop], best = was;
	bool again = among(l->changed, l->n, i);

	m->route.attempt += !again;
	for (uint32_t node = 0; node < l->r->n_nodes && l->left > 0; node++) {
		double until;

		if (!may_go(l, m, hop, (uint16_t)node))
			continue;
		m->nodes[hop] = (uint16_t)node;
		until = remaining_until_s(l->c, l->r, l->first, l->at_s);
		l->left -= (int64_t)l->r->n * (2 * m->route.n_hops + 1);
		if (until >= 0 && until < l->until_s) {
			l->until_s = until;
			best = (uint16_t)node;
		}
		m->nodes[hop] = was;
	}
	if (best == was) {
		m->route.attempt -= !again;
		return false;
	}
	routes_stand_in(m, hop, best);
	if (!again)
		l->changed[l->n++] = i;
	return true;
}

static bool move_what_is_ahead(struct look *l, uint32_t i)
{
	struct microbatch *m = &l->r->microbatches[i];
	bool moved = false;

	for (uint32_t h = 0; h < m->route.n_hops; h++)
		moved = (is_ahead(l->r, m, h) && move(l, i, h)) || moved;
	m->moved = m->moved || moved;
	return moved;
}

int remaining_improve(const struct cluster *c, struct routes *r, uint32_t first, double at_s,
		  const bool *usable, const int *stage_of, int64_t most_tasks, uint32_t *changed, int n)
{
	struct look l = { c, r, first, at_s, remaining_until_s(c, r, first, at_s), usable, stage_of, most_tasks,
			  changed, n };
	bool moved = l.until_s >= 0;

	while (moved && l.left > 0) {
		moved = false;
		for (int k = 0; k < n; k++)
			moved = move(&l, changed[k], r->microbatches[changed[k]].replaced) || moved;
		for (uint32_t i = 0; i < r->n; i++)
			moved = move_what_is_ahead(&l, i) || moved;
	}
	return l.n;
}
