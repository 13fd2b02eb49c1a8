#include "schedule/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STEPS 2000000

/* The search: which of F, L, B (and W) the machine does next, each for the microbatch whose
 * turn it is, as early as can be. */
struct done {
	int f, l, b, w; /* tasks of each kind; without a split w is b */
};

struct sequence {
	const struct bound_machine *m;
	double *sent_s, *lost_s; /* (n) ends of the F and the L done so far */
	double best_s;
	long steps_left;
};

/* What remains takes at least this long: the machine's own work, and the chain of the microbatch
 * that starts last. */
static double least_end(const struct sequence *q, struct done d, double free_s)
{
	const struct bound_machine *m = q->m;
	int weights = m->split ? m->n - d.w : 0;
	int tasks = (m->n - d.f) + (m->n - d.l) + (m->n - d.b) + weights;
	double tail_s = m->split ? m->overhead_s + m->weights_s : 0;
	double chain_s = m->lag_loss_s + m->loss_s + m->lag_back_s + m->backward_s + tail_s;
	double work_s = free_s + (m->n - d.f) * m->forward_s + (m->n - d.l) * m->loss_s +
			(m->n - d.b) * m->backward_s + weights * m->weights_s +
			(tasks - 1) * m->overhead_s;

	if (d.b == m->n)
		return work_s;
	if (d.f < m->n)
		chain_s +=
			free_s + (m->n - d.f) * m->forward_s + (m->n - d.f - 1) * m->overhead_s;
	else
		chain_s += q->sent_s[m->n - 1];
	if (d.l == m->n)
		chain_s = q->lost_s[m->n - 1] + m->lag_back_s + m->backward_s + tail_s;
	return work_s > chain_s ? work_s : chain_s;
}

static void sequence(struct sequence *q, struct done d, double free_s, double end_s)
{
	const struct bound_machine *m = q->m;
	struct done next = d;
	double was, start_s;

	if (d.w == m->n) {
		q->best_s = end_s < q->best_s ? end_s : q->best_s;
		return;
	}
	if (q->steps_left-- <= 0 || least_end(q, d, free_s) >= q->best_s)
		return;
	if (d.b < d.l) {
		start_s = fmax(free_s, q->lost_s[d.b] + m->lag_back_s);
		end_s = start_s + m->backward_s;
		next.b++;
		next.w += !m->split;
		sequence(q, next, end_s + m->overhead_s, end_s);
		next = d;
	}
	if (d.w < d.b) {
		end_s = free_s + m->weights_s;
		next.w++;
		sequence(q, next, end_s + m->overhead_s, end_s);
		next = d;
	}
	if (d.l < d.f) {
		start_s = fmax(free_s, q->sent_s[d.l] + m->lag_loss_s);
		was = q->lost_s[d.l];
		q->lost_s[d.l] = start_s + m->loss_s;
		next.l++;
		sequence(q, next, q->lost_s[d.l] + m->overhead_s, q->lost_s[d.l]);
		q->lost_s[d.l] = was;
		next = d;
	}
	if (d.f < m->n && d.f - d.w < m->slots) {
		was = q->sent_s[d.f];
		q->sent_s[d.f] = free_s + m->forward_s;
		next.f++;
		sequence(q, next, q->sent_s[d.f] + m->overhead_s, q->sent_s[d.f]);
		q->sent_s[d.f] = was;
	}
}

/* Slots must hold every round trip, less what they cannot use while the first F and the last
 * tasks that give them back queue up. */
static double formula(const struct bound_machine *m, int slots)
{
	double tail_s = m->split ? m->overhead_s + m->weights_s : 0;
	double trip_s = m->forward_s + m->lag_loss_s + m->loss_s + m->lag_back_s +
			m->backward_s + tail_s;
	double work_s = m->n * (m->forward_s + m->loss_s + m->backward_s + tail_s) +
			(3 * m->n - 1) * m->overhead_s;
	double edges =
		slots * (slots - 1) / 2.0 *
		(m->forward_s + (m->split ? m->weights_s : m->backward_s) + 2 * m->overhead_s);
	double slots_s = (m->n * trip_s + (m->n - slots) * m->overhead_s + edges) / slots;

	return fmax(work_s, fmax(slots_s, trip_s));
}

double bound_machine_s(const struct bound_machine *m, long most_steps, bool *exact)
{
	int slots = m->slots < m->n ? m->slots : m->n;
	struct sequence q = { .m = m, .best_s = INFINITY, .steps_left = most_steps };
	double least;

	*exact = true;
	if (m->n == 0 || slots < 1)
		return 0;
	least = formula(m, slots);
	*exact = false;
	q.sent_s = calloc((size_t)m->n, sizeof(double));
	q.lost_s = calloc((size_t)m->n, sizeof(double));
	if (q.sent_s && q.lost_s && m->n <= 64) {
		sequence(&q, (struct done){ 0 }, 0, 0);
		*exact = q.steps_left > 0 && q.best_s < INFINITY;
	}
	free(q.sent_s);
	free(q.lost_s);
	return *exact ? q.best_s : least;
}

struct bound {
	const struct problem *p;
	const struct solution *s;
	int *sent;   /* (sizes[0]) microbatches of each data node, by its place in stage 0 */
	int *order;  /* (sizes[0]) places, latest first */
	int next;    /* into order, then stages */
	double *way;      /* (length, n_nodes) fastest way to be there after so many visits */
	double *way_from_below; /* the same, coming from below the stage under it */
	double *way_exchanged;  /* the same, the stage above visited just before */
	double best_s;
};

struct bound *bound_new(const struct problem *p, const struct solution *s,
			const double *finish_s)
{
	struct bound *b = calloc(1, sizeof(*b));
	size_t data = (size_t)p->sizes[0], cells = (size_t)p->length * (size_t)p->n_nodes;
	double *late = calloc(data, sizeof(*late));

	if (!b || !late)
		goto free_late;
	b->p = p;
	b->s = s;
	b->sent = calloc(data, sizeof(*b->sent));
	b->order = calloc(data, sizeof(*b->order));
	b->way = malloc(cells * sizeof(*b->way));
	b->way_from_below = malloc(cells * sizeof(*b->way));
	b->way_exchanged = malloc(cells * sizeof(*b->way));
	if (!b->sent || !b->order || !b->way || !b->way_from_below || !b->way_exchanged)
		goto free_late;
	for (int i = 0; i < p->n_mb; i++) {
		b->sent[p->mb_slot[i]]++;
		if (finish_s && finish_s[i] > late[p->mb_slot[i]])
			late[p->mb_slot[i]] = finish_s[i];
	}
	for (int i = 0; i < (int)data; i++) {
		int at = i;

		for (; at > 0 && late[b->order[at - 1]] < late[i]; at--)
			b->order[at] = b->order[at - 1];
		b->order[at] = i;
	}
	free(late);
	return b;

free_late:
	free(late);
	bound_free(b);
	return NULL;
}

void bound_free(struct bound *b)
{
	if (!b)
		return;
	free(b->sent);
	free(b->order);
	free(b->way);
	free(b->way_from_below);
	free(b->way_exchanged);
	free(b);
}

double bound_s(const struct bound *b)
{
	return b->best_s;
}

/* Hop from u to v and the work at v, in the direction asked for. */
static double hop_s(const struct problem *p, int u, int v, bool back)
{
	const struct cluster_node *n = &p->c->nodes[v];
	size_t nodes = (size_t)p->n_nodes;

	return back ? p->delay[(size_t)v * nodes + (size_t)u] + n->backward_s
		    : p->delay[(size_t)u * nodes + (size_t)v] + n->forward_s;
}

static void lower(double *cell, double s)
{
	if (s < *cell)
		*cell = s;
}

/* From u, reached after k visits with `top` the highest stage so far, to all that may follow. */
static void spread(struct bound *b, int k, int u, int top, double s, bool back)
{
	const struct problem *p = b->p;
	size_t row = (size_t)(k + 1) * (size_t)p->n_nodes;

	for (int i = b->s->start[top + 1]; i < b->s->start[p->n_stages]; i++) {
		int v = b->s->members[i];
		double at_v = s + hop_s(p, u, v, back);

		lower(&b->way[row + (size_t)v], at_v);
		if (b->s->stage_of[v] > top + 1)
			lower(&b->way_from_below[row + (size_t)v], at_v);
	}
}

/* v stands for a stage entered from below the one under it: now that one. */
static void exchange(struct bound *b, int k, int v, double s, bool back)
{
	int under = b->s->stage_of[v] - 1;

	for (int i = b->s->start[under]; i < b->s->start[under + 1]; i++) {
		int w = b->s->members[i];

		lower(&b->way_exchanged[(size_t)(k + 1) * (size_t)b->p->n_nodes + (size_t)w],
		      s + hop_s(b->p, v, w, back));
	}
}

/* The fastest legal way through length - 1 stages and back to the data node, or of the gradient
 * the other way round. */
static double fastest_lag(struct bound *b, int data_node, bool back)
{
	const struct problem *p = b->p;
	size_t n = (size_t)p->n_nodes, cells = (size_t)p->length * n;
	int visits = p->length - 1;
	double best = INFINITY;

	if (visits == 0)
		return 0;
	for (size_t i = 0; i < cells; i++)
		b->way[i] = b->way_from_below[i] = b->way_exchanged[i] = INFINITY;
	spread(b, 0, data_node, 0, 0, back);
	for (int k = 1; k < visits; k++) {
		for (int i = b->s->start[1]; i < b->s->start[p->n_stages]; i++) {
			int v = b->s->members[i], stage = b->s->stage_of[v];
			size_t at = (size_t)k * n + (size_t)v;

			if (b->way[at] < INFINITY)
				spread(b, k, v, stage, b->way[at], back);
			if (b->way_exchanged[at] < INFINITY)
				spread(b, k, v, stage + 1, b->way_exchanged[at], back);
			if (b->way_from_below[at] < INFINITY)
				exchange(b, k, v, b->way_from_below[at], back);
		}
	}
	for (int i = b->s->start[1]; i < b->s->start[p->n_stages]; i++) {
		int v = b->s->members[i];
		size_t at = (size_t)visits * n + (size_t)v;
		double home = back ? p->delay[(size_t)data_node * n + (size_t)v]
				   : p->delay[(size_t)v * n + (size_t)data_node];

		lower(&best, fmin(b->way[at], b->way_exchanged[at]) + home);
	}
	return best;
}

static void bound_data_node(struct bound *b, int place)
{
	int node = b->s->members[place];
	const struct cluster_node *n = &b->p->c->nodes[node];
	struct bound_machine m = {
		.forward_s = n->forward_s,
		.loss_s = n->loss_s,
		.backward_s = n->backward_s,
		.overhead_s = b->p->c->dispatch_overhead_s,
		.lag_loss_s = fastest_lag(b, node, false),
		.lag_back_s = fastest_lag(b, node, true),
		.n = b->sent[place],
		.slots = n->memory,
		.split = b->p->q->split_backward,
		.weights_s = n->weight_gradient_s,
	};
	bool exact;
	double s;

	if (!isfinite(m.lag_loss_s) || !isfinite(m.lag_back_s))
		return;
	s = bound_machine_s(&m, MOST_STEPS, &exact);
	b->best_s = s > b->best_s ? s : b->best_s;
}

/* Visits that node v can serve in an iteration of length t. */
static double visits_within(const struct bound *b, int v, double edges_s, double t)
{
	const struct cluster_node *n = &b->p->c->nodes[v];
	double each = n->forward_s + n->backward_s + 2 * b->p->c->dispatch_overhead_s;
	double room = t - edges_s + b->p->c->dispatch_overhead_s;

	if (n->memory < 1 || room < 0)
		return 0;
	return each > 0 ? floor(room / each * (1 + 1e-12)) : INFINITY;
}

/* The first arrival at v and the way home after its last B, at the least. */
static double edges_of(const struct bound *b, int v)
{
	const struct problem *p = b->p;
	size_t n = (size_t)p->n_nodes;
	double in = INFINITY, out = INFINITY, first = INFINITY, last = INFINITY;

	for (int i = 0; i < b->s->start[p->n_stages]; i++) {
		int u = b->s->members[i];

		if (u == v)
			continue;
		in = fmin(in, p->delay[(size_t)u * n + (size_t)v]);
		out = fmin(out, p->delay[(size_t)v * n + (size_t)u]);
		if (b->s->stage_of[u] == 0) {
			first = fmin(first, p->c->nodes[u].forward_s);
			last = fmin(last, p->c->nodes[u].backward_s);
		}
	}
	return in + out + first + last;
}

static double served_within(const struct bound *b, int stage, const double *edges, double t)
{
	int first = b->s->start[stage], size = b->s->start[stage + 1] - first;
	double served = 0;

	for (int i = 0; i < size; i++)
		served += isfinite(edges[i])
			? visits_within(b, b->s->members[first + i], edges[i], t) : 0;
	return served;
}

static void bound_stage(struct bound *b, int stage)
{
	int first = b->s->start[stage], size = b->s->start[stage + 1] - first;
	int demand = b->p->low[stage];
	double *edges = malloc((size_t)size * sizeof(*edges)), low = 0, high = 1;

	if (!edges)
		return;
	for (int i = 0; i < size; i++)
		edges[i] = edges_of(b, b->s->members[first + i]);
	while (high < 1e12 && served_within(b, stage, edges, high) < demand) {
		low = high;
		high *= 2;
	}
	for (int round = 0; round < 60 && high < 1e12; round++) {
		double t = (low + high) / 2;

		if (served_within(b, stage, edges, t) < demand)
			low = t;
		else
			high = t;
	}
	if (demand > 0 && high < 1e12 && low > b->best_s)
		b->best_s = low;
	free(edges);
}

bool bound_step(struct bound *b)
{
	int data = b->p->sizes[0], stage = b->next - data + 1;

	if (b->next < data)
		bound_data_node(b, b->order[b->next]);
	else if (stage < b->p->n_stages && b->p->length > 1)
		bound_stage(b, stage);
	else
		return false;
	b->next++;
	return true;
}
