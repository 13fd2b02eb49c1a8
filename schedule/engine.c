#include "schedule/engine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The calendar queue. Time is cut into buckets of equal width; an event goes to the list of its
 * bucket, and a bit says which buckets hold any. The bucket number never falls as time grows, so
 * the first filled bucket holds the earliest event, however the rounding goes; the last bucket
 * takes all that lies beyond. */

static int bucket_of(const struct engine *e, double at_s)
{
	double b = at_s * e->per_s;

	return b < e->n_buckets - 1 ? (int)b : e->n_buckets - 1;
}

static void queue_add(struct engine *e, int what, double at_s)
{
	int b = bucket_of(e, at_s);

	e->due_s[what] = at_s;
	e->next[what] = e->bucket[b];
	e->bucket[b] = what;
	e->filled[b >> 6] |= (uint64_t)1 << (b & 63);
}

/* Takes out all events of the earliest instant, as a list by next; -1: the queue is empty. *word
 * is where the search for it begins. */
static int queue_take(struct engine *e, int *word)
{
	int w = *word, words = e->n_buckets >> 6, b, first, kept = -1, taken = -1;
	double at_s;

	while (w < words && !e->filled[w])
		w++;
	*word = w;
	if (w == words)
		return -1;
	b = (w << 6) + __builtin_ctzll(e->filled[w]);
	first = e->bucket[b];
	if (e->next[first] < 0) {
		e->bucket[b] = -1;
		e->filled[w] &= e->filled[w] - 1;
		return first;
	}
	at_s = e->due_s[first];
	for (int i = e->next[first]; i >= 0; i = e->next[i])
		at_s = e->due_s[i] < at_s ? e->due_s[i] : at_s;
	for (int i = first, after; i >= 0; i = after) {
		int *list = e->due_s[i] == at_s ? &taken : &kept;

		after = e->next[i];
		e->next[i] = *list;
		*list = i;
	}
	e->bucket[b] = kept;
	if (kept < 0)
		e->filled[w] &= e->filled[w] - 1;
	return taken;
}

static void wake_later(struct engine *e, int node)
{
	if (!e->nodes[node].wakes) {
		e->nodes[node].wakes = true;
		queue_add(e, e->n_mb + node, e->nodes[node].free_s);
	}
}

/* A task of the microbatch ends after which the node has no other of it. Until the first of
 * them finish_s is an earlier run's: a run that is cut leaves a guess. */
static void finish(struct engine *e, int mb, double end_s)
{
	if (end_s <= e->finish_s[mb])
		return;
	e->finish_s[mb] = end_s;
	e->late = e->late || end_s > e->limit_s;
	e->makespan_s = end_s > e->makespan_s ? end_s : e->makespan_s;
}

/* A W waits from the end of its B; the node is not free before that, so it needs no event. */
static void add_weights(struct engine *e, struct engine_node *n, int mb, int step)
{
	int length = e->p->length, w = mb * length + 2 * length - step;

	if (step == length + 1)
		e->finish_s[mb] = 0;
	e->next_weights[w] = n->weights;
	n->weights = w;
}

static void start(struct engine *e, struct engine_node *n, int mb, double now_s)
{
	int step = e->step[mb], at = mb * e->steps + step;
	const struct engine_step *task = &e->chain[at];
	double end_s = now_s + task->duration_s;

	e->start_s[at] = now_s;
	e->started[e->n_started++] = at;
	n->slots -= task->slots;
	n->free_s = end_s + e->overhead_s;
	e->step[mb] = ++step;
	if (step < e->steps) {
		double arrival_s = end_s + task->travel_s;

		e->arrival_s[at + 1] = arrival_s;
		e->late = e->late || arrival_s + task[1].rest_s > e->limit_s;
		queue_add(e, mb, arrival_s);
	} else {
		if (!e->split)
			e->finish_s[mb] = 0;
		finish(e, mb, end_s);
		e->done++;
	}
	if (e->split && step > e->p->length + 1)
		add_weights(e, n, mb, step - 1);
}

static double weights_arrival_s(const struct engine *e, int w)
{
	int length = e->p->length, at = w / length * e->steps + 2 * length - w % length;

	return e->start_s[at] + e->chain[at].duration_s;
}

static int weights_priority(const struct engine *e, int w)
{
	return e->weights_priority ? e->weights_priority[w] : ENGINE_NO_PRIORITY;
}

static bool weights_go_first(const struct engine *e, int a, int b)
{
	int pa = weights_priority(e, a), pb = weights_priority(e, b);
	double at_a = weights_arrival_s(e, a), at_b = weights_arrival_s(e, b);

	if (pa != pb)
		return pa < pb;
	return at_a != at_b ? at_a < at_b : a < b;
}

/* The best W that waits at the node, in its list; NULL: none. */
static int32_t *best_weights(const struct engine *e, struct engine_node *n)
{
	int32_t *best = NULL;

	for (int32_t *at = &n->weights; *at >= 0; at = &e->next_weights[*at]) {
		if (!best || weights_go_first(e, *at, *best))
			best = at;
	}
	return best;
}

static double weights_s(const struct engine *e, int node, int w)
{
	double s = e->p->c->nodes[node].weight_gradient_s;
	int length = e->p->length, mb = w / length;

	return e->factors ? s * e->factors[mb * (2 * e->steps + length) + 2 * e->steps + w % length]
			  : s;
}

static void start_weights(struct engine *e, struct engine_node *n, int32_t *place, double now_s)
{
	int w = *place;
	double end_s = now_s + weights_s(e, (int)(n - e->nodes), w);

	*place = e->next_weights[w];
	e->weights_start_s[w] = now_s;
	n->slots++;
	n->free_s = end_s + e->overhead_s;
	finish(e, w / e->p->length, end_s);
}

static int priority_of(const struct engine *e, int mb)
{
	return e->priority ? e->priority[mb * e->steps + e->step[mb]] : ENGINE_NO_PRIORITY;
}

static bool goes_first(const struct engine *e, int a, int b)
{
	int at_a = a * e->steps + e->step[a], at_b = b * e->steps + e->step[b];

	if (e->priority && e->priority[at_a] != e->priority[at_b])
		return e->priority[at_a] < e->priority[at_b];
	if (e->arrival_s[at_a] != e->arrival_s[at_b])
		return e->arrival_s[at_a] < e->arrival_s[at_b];
	return a < b;
}

static void wake_if_waited_for(struct engine *e, int node)
{
	if (e->nodes[node].waiting >= 0 || e->nodes[node].weights >= 0)
		wake_later(e, node);
}

/* The node is free now: start the best that may start. */
static void choose(struct engine *e, int node, double now_s)
{
	struct engine_node *n = &e->nodes[node];
	int32_t *best = NULL;

	for (int32_t *at = &n->waiting; *at >= 0; at = &e->next[*at]) {
		int mb = *at;

		if (n->slots <= 0 && e->chain[mb * e->steps + e->step[mb]].slots > 0)
			continue;
		if (!best || goes_first(e, mb, *best))
			best = at;
	}
	if (e->split && n->weights >= 0) {
		int32_t *w = best_weights(e, n);

		if (!best || weights_priority(e, *w) < priority_of(e, *best)) {
			start_weights(e, n, w, now_s);
			wake_if_waited_for(e, node);
			return;
		}
	}
	if (best) {
		int mb = *best;

		*best = e->next[mb];
		start(e, n, mb, now_s);
		wake_if_waited_for(e, node);
	}
}

/* One event alone at its instant, the usual case. */
static void take_one(struct engine *e, int what, double now_s)
{
	struct engine_node *n;
	int node;

	if (what >= e->n_mb) {
		node = what - e->n_mb;
		e->nodes[node].wakes = false;
		choose(e, node, now_s);
		return;
	}
	const struct engine_step *task = &e->chain[what * e->steps + e->step[what]];

	node = task->node;
	n = &e->nodes[node];
	if (n->waiting < 0 && n->weights < 0 && n->free_s <= now_s &&
	    (task->slots <= 0 || n->slots > 0)) {
		start(e, n, what, now_s);
		if (n->weights >= 0)
			wake_later(e, node);
		return;
	}
	e->next[what] = n->waiting;
	n->waiting = what;
	if (n->free_s <= now_s)
		choose(e, node, now_s);
	else
		wake_later(e, node);
}

/* Several at one instant: all are taken in before any node chooses. */
static void take_many(struct engine *e, int list, double now_s)
{
	int n_dirty = 0;

	for (int what = list, after; what >= 0; what = after) {
		int node;

		after = e->next[what];
		if (what >= e->n_mb) {
			node = what - e->n_mb;
			e->nodes[node].wakes = false;
		} else {
			node = e->chain[what * e->steps + e->step[what]].node;
			e->next[what] = e->nodes[node].waiting;
			e->nodes[node].waiting = what;
		}
		if (!e->nodes[node].dirty) {
			e->nodes[node].dirty = true;
			e->dirty[n_dirty++] = node;
		}
	}
	for (int i = 0; i < n_dirty; i++) {
		struct engine_node *n = &e->nodes[e->dirty[i]];

		n->dirty = false;
		if (n->free_s <= now_s)
			choose(e, e->dirty[i], now_s);
		else
			wake_if_waited_for(e, e->dirty[i]);
	}
}

static void reset(struct engine *e)
{
	e->makespan_s = 0;
	e->done = e->n_started = 0;
	e->late = false;
	for (int w = 0; w < e->n_buckets >> 6; w++) { /* only a run that was cut leaves any */
		for (; e->filled[w]; e->filled[w] &= e->filled[w] - 1)
			e->bucket[(w << 6) + __builtin_ctzll(e->filled[w])] = -1;
	}
	memset(e->step, 0, (size_t)e->n_mb * sizeof(*e->step));
	for (int i = 0; i < e->n_nodes; i++) {
		struct engine_node *n = &e->nodes[i];

		n->free_s = 0;
		n->waiting = n->weights = -1;
		n->slots = n->memory;
		n->wakes = n->dirty = false;
	}
}

/* The calendar should just span a run. Its scale costs or saves time, and changes nothing else. */
static void fit_calendar(struct engine *e)
{
	double span_s = e->n_buckets / e->per_s;

	if (e->makespan_s > 0 && (span_s < e->makespan_s || span_s > 1.3 * e->makespan_s))
		e->per_s = e->n_buckets / (1.1 * e->makespan_s);
}

/* Everything that is in the queue, and what follows from it. */
static bool run(struct engine *e)
{
	int word = 0, list;

	while (!e->late && (list = queue_take(e, &word)) >= 0) {
		double now_s = e->due_s[list];

		if (e->next[list] < 0)
			take_one(e, list, now_s);
		else
			take_many(e, list, now_s);
	}
	if (e->late || e->done < e->n_mb) {
		e->makespan_s = INFINITY;
		return false;
	}
	fit_calendar(e);
	return true;
}

static void set_limit(struct engine *e, double limit_s)
{
	/* Sums in another order than the run's differ in the last bits. */
	e->limit_s = limit_s * (1 + 1e-9);
}

bool engine_run(struct engine *e, double limit_s)
{
	reset(e);
	set_limit(e, limit_s);
	for (int i = 0; i < e->n_mb; i++) {
		e->arrival_s[i * e->steps] = e->release_s[i];
		queue_add(e, i, e->release_s[i]);
	}
	return run(e);
}

static void swap(double **a, double **b)
{
	double *was = *a;

	*a = *b;
	*b = was;
}

void engine_keep(struct engine *e)
{
	int32_t *started = e->kept_started;

	if (e->split) /* W are not taken over */
		return;
	swap(&e->arrival_s, &e->kept_arrival_s);
	swap(&e->start_s, &e->kept_start_s);
	e->kept_started = e->started;
	e->started = started;
	e->n_kept = e->n_started;
}

double engine_changes_s(const struct engine *e, int mb, const int *path)
{
	const struct engine_step *chain = &e->chain[mb * e->steps];
	int at = mb * e->steps, h = 1, length = e->p->length;
	double end_s, delay_s;

	if (e->n_kept == 0 || chain[0].node != path[0])
		return 0;
	while (h < length && chain[h].node == path[h])
		h++;
	if (h == length)
		return INFINITY;
	end_s = e->kept_start_s[at + h - 1] + chain[h - 1].duration_s;
	delay_s = e->p->delay[(size_t)path[h - 1] * (size_t)e->n_nodes + (size_t)path[h]];
	return fmin(e->kept_arrival_s[at + h], end_s + delay_s);
}

/* The tasks that started before from_s, as they did in the kept run. */
static void replay(struct engine *e, double from_s)
{
	for (int i = 0; i < e->n_kept; i++) {
		int at = e->kept_started[i], mb = at / e->steps;
		const struct engine_step *task = &e->chain[at];
		struct engine_node *n = &e->nodes[task->node];
		double start_s = e->kept_start_s[at];

		if (start_s >= from_s)
			break;
		e->arrival_s[at] = e->kept_arrival_s[at];
		e->start_s[at] = start_s;
		e->started[e->n_started++] = at;
		n->slots -= task->slots;
		n->free_s = start_s + task->duration_s + e->overhead_s;
		if (++e->step[mb] == e->steps) {
			e->finish_s[mb] = 0;
			finish(e, mb, start_s + task->duration_s);
			e->done++;
		}
	}
}

/* A microbatch between two tasks: still on its way at from_s, or waiting. */
static void place(struct engine *e, int mb, double from_s)
{
	int step = e->step[mb], at = mb * e->steps + step;
	const struct engine_step *task = &e->chain[at];
	double arrival_s = e->release_s[mb];

	if (step == e->steps)
		return;
	if (step > 0)
		arrival_s = e->start_s[at - 1] + task[-1].duration_s + task[-1].travel_s;
	e->arrival_s[at] = arrival_s;
	e->late = e->late || arrival_s + task->rest_s > e->limit_s;
	if (arrival_s >= from_s) {
		queue_add(e, mb, arrival_s);
		return;
	}
	e->next[mb] = e->nodes[task->node].waiting;
	e->nodes[task->node].waiting = mb;
	/* Where it waits for a slot instead, the task that gives it back wakes the node. */
	if (e->nodes[task->node].free_s >= from_s)
		wake_later(e, task->node);
}

bool engine_run_from(struct engine *e, double from_s, double limit_s)
{
	if (from_s <= 0 || e->n_kept == 0)
		return engine_run(e, limit_s);
	reset(e);
	set_limit(e, limit_s);
	replay(e, from_s);
	for (int i = 0; i < e->n_mb; i++)
		place(e, i, from_s);
	return run(e);
}

/* last_s: what follows the chain at its own node. */
static void add_up(struct engine_step *chain, int steps, double last_s)
{
	double rest_s = last_s;

	for (int s = steps - 1; s >= 0; s--) {
		rest_s = chain[s].duration_s + chain[s].travel_s + rest_s;
		chain[s].rest_s = rest_s;
	}
}

void engine_fill_chain(const struct problem *p, const int *path, struct engine_step *chain)
{
	int length = p->length, steps = 2 * length + 1;
	double last_s = p->q->split_backward ? p->c->dispatch_overhead_s +
						       p->c->nodes[path[0]].weight_gradient_s
					     : 0;

	for (int s = 0; s < steps; s++) {
		int hop = s < length ? s : s == length ? 0 : 2 * length - s;
		int after = s + 1 < length ? s + 1 : s + 1 == length ? 0 : 2 * length - s - 1;
		int node = path[hop];
		const struct cluster_node *n = &p->c->nodes[node];

		chain[s].node = node;
		chain[s].slots = s < length ? 1 : s == length || p->q->split_backward ? 0 : -1;
		chain[s].duration_s = s < length ? n->forward_s
						 : s == length ? n->loss_s : n->backward_s;
		chain[s].travel_s = s + 1 < steps
			? p->delay[(size_t)node * (size_t)p->n_nodes + (size_t)path[after]] : 0;
	}
	add_up(chain, steps, last_s);
}

void engine_set_path(struct engine *e, int mb, const int *path)
{
	struct engine_step *chain = &e->chain[mb * e->steps];
	const double *factors = e->factors;
	double last_s;

	engine_fill_chain(e->p, path, chain);
	if (!factors)
		return;
	factors += mb * (2 * e->steps + e->p->length);
	for (int s = 0; s < e->steps; s++) {
		chain[s].duration_s *= factors[s];
		chain[s].travel_s *= factors[e->steps + s];
	}
	last_s = e->split ? e->overhead_s + weights_s(e, path[0], mb * e->p->length) : 0;
	add_up(chain, e->steps, last_s);
}

void engine_set_paths(struct engine *e, const struct solution *s)
{
	for (int i = 0; i < e->n_mb; i++)
		engine_set_path(e, i, s->path + (size_t)i * (size_t)e->p->length);
}

/* As many buckets as tasks, over the time the busiest node needs at the least; a wrong guess
 * costs speed only. */
static double guess_horizon(const struct problem *p)
{
	double work = 0, slowest = 0;

	for (int i = 0; i < p->n_nodes; i++) {
		const struct cluster_node *n = &p->c->nodes[i];
		double t = n->forward_s + n->backward_s + 2 * p->c->dispatch_overhead_s;

		work += p->out[i] ? 0 : t;
		slowest = !p->out[i] && t > slowest ? t : slowest;
	}
	work /= p->n_nodes;
	return 4 * (work + slowest) * p->c->microbatches_per_data_node + 1e-6;
}

int engine_init(struct engine *e, const struct problem *p)
{
	size_t m = (size_t)p->n_mb, n = (size_t)p->n_nodes, steps = 2 * (size_t)p->length + 1;
	size_t buckets = 256;

	while (buckets < 4 * m * steps && buckets < 65536)
		buckets *= 2;
	*e = (struct engine){ .p = p,
			      .n_mb = p->n_mb,
			      .n_nodes = p->n_nodes,
			      .steps = (int)steps,
			      .overhead_s = p->c->dispatch_overhead_s,
			      .split = p->q->split_backward,
			      .n_buckets = (int)buckets };
	e->per_s = (double)buckets / guess_horizon(p);
	e->chain = calloc(m * steps, sizeof(*e->chain));
	e->release_s = calloc(m, sizeof(*e->release_s));
	e->arrival_s = calloc(m * steps, sizeof(*e->arrival_s));
	e->start_s = calloc(m * steps, sizeof(*e->start_s));
	e->started = calloc(m * steps, sizeof(*e->started));
	e->kept_arrival_s = calloc(m * steps, sizeof(*e->kept_arrival_s));
	e->kept_start_s = calloc(m * steps, sizeof(*e->kept_start_s));
	e->kept_started = calloc(m * steps, sizeof(*e->kept_started));
	e->finish_s = calloc(m, sizeof(*e->finish_s));
	e->step = calloc(m, sizeof(*e->step));
	e->due_s = calloc(m + n, sizeof(*e->due_s));
	e->next = calloc(m + n, sizeof(*e->next));
	e->nodes = calloc(n, sizeof(*e->nodes));
	e->dirty = calloc(n, sizeof(*e->dirty));
	e->bucket = calloc(buckets, sizeof(*e->bucket));
	e->filled = calloc(buckets / 64, sizeof(*e->filled));
	if (e->split) {
		e->weights_start_s = calloc(m * (size_t)p->length, sizeof(*e->weights_start_s));
		e->next_weights = calloc(m * (size_t)p->length, sizeof(*e->next_weights));
	}
	if (!e->chain || !e->release_s || !e->arrival_s || !e->start_s || !e->finish_s || !e->started ||
	    !e->kept_arrival_s || !e->kept_start_s || !e->kept_started ||
	    !e->step || !e->due_s || !e->next || !e->nodes || !e->dirty || !e->bucket ||
	    !e->filled || (e->split && (!e->weights_start_s || !e->next_weights))) {
		engine_fini(e);
		return -ENOMEM;
	}
	for (int i = 0; i < p->n_nodes; i++)
		e->nodes[i].memory = p->c->nodes[i].memory;
	memset(e->bucket, 0xff, buckets * sizeof(*e->bucket));
	return 0;
}

void engine_fini(struct engine *e)
{
	free(e->chain);
	free(e->priority);
	free(e->weights_priority);
	free(e->weights_start_s);
	free(e->next_weights);
	free(e->release_s);
	free(e->arrival_s);
	free(e->start_s);
	free(e->finish_s);
	free(e->started);
	free(e->kept_arrival_s);
	free(e->kept_start_s);
	free(e->kept_started);
	free(e->step);
	free(e->due_s);
	free(e->next);
	free(e->nodes);
	free(e->dirty);
	free(e->bucket);
	free(e->filled);
	*e = (struct engine){ 0 };
}
