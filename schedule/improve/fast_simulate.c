/* The fast simulation.
 *
 * Nodes serve first come, first served. When a task arrives, all tasks that the node does before
 * it are known. The task's start is therefore known too, and the simulation books the task at
 * once, so nodes need no events. Only a forward task (F) that finds no unused slot has to wait.
 * It is booked after the backward task (B) that gives a slot back, and before all later arrivals.
 *
 * The calendar queue holds the arrivals. It divides time into buckets of equal width. An event is
 * in the list of its bucket, and one bit for each bucket says if the bucket is empty. Bucket
 * numbers never fall as time grows, so the first bucket that is not empty holds the earliest
 * event, whatever the rounding. The last bucket takes all later times. */
#include "schedule/improve/fast_simulate.h"

#include <math.h>
#include <string.h>

static int bucket_of(const struct fast_simulate *e, double at_s)
{
	double b = at_s * e->per_s;

	return b < e->n_buckets - 1 ? (int)b : e->n_buckets - 1;
}

/* Adds an event to the queue. Keeps the bits of the present 64 buckets in e->bits, whose address
 * is constant. A read from e->filled would have to wait for the previous write to this array,
 * because the processor learns the address of that write very late. */
static inline void queue_add(struct fast_simulate *e, int what, double at_s)
{
	int b = bucket_of(e, at_s), next = e->bucket[b];
	uint64_t bit = (uint64_t)1 << (b & 63);
	struct fast_simulate_event *event = &e->event[what];

	event->due_s = at_s;
	if (b >> 6 == e->word) {
		event->next = e->bits & bit ? next : -1;
		e->bits |= bit;
	} else {
		event->next = e->filled[b >> 6] & bit ? next : -1;
		e->filled[b >> 6] |= bit;
	}
	e->bucket[b] = what;
}

/* Removes the events of the earliest instant from the first bucket, and returns them as a list.
 * Later events stay in the bucket. */
static int take_earliest(struct fast_simulate *e, int b)
{
	struct fast_simulate_event *event = e->event;
	int first = e->bucket[b], kept = -1, taken = -1;
	double at_s = event[first].due_s;

	for (int i = event[first].next; i >= 0; i = event[i].next)
		at_s = event[i].due_s < at_s ? event[i].due_s : at_s;
	for (int i = first, after; i >= 0; i = after) {
		int *list = event[i].due_s == at_s ? &taken : &kept;

		after = event[i].next;
		event[i].next = *list;
		*list = i;
	}
	e->bucket[b] = kept;
	if (kept < 0)
		e->bits &= e->bits - 1;
	return taken;
}

/* Takes all events of the earliest instant out of the queue, as a list by next. -1: the queue is
 * empty. */
static inline int queue_take(struct fast_simulate *e)
{
	int b, first;

	while (e->bits == 0) {
		e->bits = e->filled[++e->word];
		e->filled[e->word] = 0;
	}
	b = (e->word << 6) + __builtin_ctzll(e->bits);
	if (b >= e->n_buckets)
		return -1;
	first = e->bucket[b];
	if (e->event[first].next >= 0)
		return take_earliest(e, b);
	e->bits &= e->bits - 1;
	return first;
}

/* Returns the time at which a task's output reaches the next node. A link carries the outputs of
 * one node only, and a node's tasks are booked in the order in which they end. Outputs therefore
 * take the link in the order of the calls. */
static inline double arrive_s(struct fast_simulate *e, int task, double end_s)
{
	if (e->links.outputs) {
		struct fast_simulate_link *link = e->links.outputs[task].link;

		if (link->run == e->links.run && link->free_s > end_s)
			end_s = link->free_s;
		link->free_s = end_s + e->links.outputs[task].occupied_s;
		link->run = e->links.run;
		end_s += e->chain[task].travel_s;
		e->arrival_s[task + e->chain[task].next] = end_s;
		return end_s;
	}
	return end_s + e->chain[task].travel_s;
}

/* Books the microbatch's next task, which starts when the node has done all tasks booked so far. */
static inline void book_task(struct fast_simulate *e, struct fast_simulate_node *n, int mb,
			     double now_s)
{
	struct fast_simulate_event *event = &e->event[mb];
	const struct fast_simulate_step *task = &e->chain[event->task];
	double start_s = event->due_s > n->free_s ? event->due_s : n->free_s;
	double end_s = start_s + task->duration_s;
	double next_s = task->last ? end_s : arrive_s(e, event->task, end_s);

	e->booked[e->n_booked++] = (struct fast_simulate_booking){ now_s, event->task, mb };
	e->start_s[event->task] = start_s;
	n->free_s = end_s + e->overhead_s;
	n->slots -= task->slots;
	if (next_s + task->rest_s > e->limit_s)
		e->late = true;
	if (task->last) {
		e->done++;
	} else {
		event->task += task->next;
		queue_add(e, mb, next_s);
	}
}

/* Books waiting microbatches as long as slots are free. */
static void serve_waiting(struct fast_simulate *e, struct fast_simulate_node *n, double now_s)
{
	while (n->first >= 0 && n->slots > 0) {
		int mb = n->first;

		n->first = e->event[mb].next;
		book_task(e, n, mb, now_s);
	}
}

static void wait_for_slot(struct fast_simulate *e, struct fast_simulate_node *n, int mb)
{
	e->event[mb].next = -1;
	if (n->first < 0)
		n->first = mb;
	else
		e->event[n->last].next = mb;
	n->last = mb;
}

/* Handles one arrival. Arrivals of the same instant are handled in order of their microbatches. */
static inline void take_one(struct fast_simulate *e, int mb, double now_s)
{
	const struct fast_simulate_step *task = &e->chain[e->event[mb].task];
	struct fast_simulate_node *n = &e->nodes[task->node];

	if (task->slots > 0 && n->slots <= 0)
		wait_for_slot(e, n, mb);
	else
		book_task(e, n, mb, now_s);
	if (n->first >= 0 && n->slots > 0)
		serve_waiting(e, n, now_s);
}

/* Handles several arrivals of one instant, in ascending order of their microbatches. */
static void take_many(struct fast_simulate *e, int list, double now_s)
{
	int n = 0;

	for (int what = list; what >= 0; what = e->event[what].next) {
		int at = n++;

		for (; at > 0 && e->batch[at - 1] > what; at--)
			e->batch[at] = e->batch[at - 1];
		e->batch[at] = what;
	}
	for (int i = 0; i < n; i++)
		take_one(e, e->batch[i], now_s);
}

static void reset_run(struct fast_simulate *e, double limit_s)
{
	e->done = e->n_booked = e->n_replayed = 0;
	e->late = false;
	/* Raises the limit a little. If the same times are added in another order, the last bits of
	 * the sum may differ. Such a difference must not make a run late. */
	e->limit_s = limit_s * (1 + 1e-9);
	e->links.run++;
	memset(e->filled, 0, (size_t)(e->n_buckets >> 6) * sizeof(*e->filled));
	e->filled[e->n_buckets >> 6] = 1;
	for (int i = 0; i < e->n_mb; i++)
		e->event[i].task = i * e->steps;
	for (int i = 0; i < e->n_nodes; i++) {
		struct fast_simulate_node *n = &e->nodes[i];

		*n = (struct fast_simulate_node){ .slots = n->memory,
					   .memory = n->memory,
					   .first = -1 };
	}
}

/* Fits the calendar to the length of a run. The width of a bucket changes the speed, not the
 * result. */
static void fit_calendar(struct fast_simulate *e)
{
	double span_s = e->n_buckets / e->per_s;

	if (e->makespan_s > 0 && (span_s < e->makespan_s || span_s > 1.3 * e->makespan_s))
		e->per_s = e->n_buckets / (1.1 * e->makespan_s);
}

static void fill_arrivals(struct fast_simulate *e, int mb)
{
	int task = mb * e->steps;

	e->arrival_s[task] = e->release_s[mb];
	if (e->links.outputs)
		return; /* arrive_s has already filled in the other arrival times */
	for (; !e->chain[task].last; task += e->chain[task].next)
		e->arrival_s[task + e->chain[task].next] =
			e->start_s[task] + e->chain[task].duration_s + e->chain[task].travel_s;
}

/* Fills in the results of a complete run. */
static void finish_run(struct fast_simulate *e)
{
	for (int i = 0; i < e->n_replayed; i++) {
		int task = e->booked[i].task;

		e->start_s[task] = e->kept.start_s[task];
	}
	for (int i = 0; i < e->n_mb; i++)
		fill_arrivals(e, i);
	e->makespan_s = 0;
	for (int i = 0; i < e->n_mb; i++) {
		int last = (i + 1) * e->steps - 1;
		double end_s = e->start_s[last] + e->chain[last].duration_s;

		e->finish_s[i] = end_s;
		e->makespan_s = end_s > e->makespan_s ? end_s : e->makespan_s;
	}
	fit_calendar(e);
}

/* Handles the events of the queue, and the events that these cause, until none is left or a
 * microbatch is too late. */
static bool run_events(struct fast_simulate *e)
{
	int list;

	while (!e->late && (list = queue_take(e)) >= 0) {
		double now_s = e->event[list].due_s;

		if (e->event[list].next < 0)
			take_one(e, list, now_s);
		else
			take_many(e, list, now_s);
	}
	if (e->late || e->done < e->n_mb) {
		e->makespan_s = INFINITY;
		return false;
	}
	finish_run(e);
	return true;
}

bool fast_simulate_run(struct fast_simulate *e, double limit_s)
{
	reset_run(e, limit_s);
	e->word = 0;
	e->bits = 0;
	for (int i = 0; i < e->n_mb; i++)
		queue_add(e, i, e->release_s[i]);
	return run_events(e);
}

static void swap_pointers(double **a, double **b)
{
	double *was = *a;

	*a = *b;
	*b = was;
}

void fast_simulate_keep(struct fast_simulate *e)
{
	struct fast_simulate_booking *booked = e->kept.booked;

	swap_pointers(&e->arrival_s, &e->kept.arrival_s);
	swap_pointers(&e->start_s, &e->kept.start_s);
	e->kept.booked = e->booked;
	e->booked = booked;
	e->kept.n = e->n_booked;
}

double fast_simulate_changes_s(const struct fast_simulate *e, int mb, const int *path)
{
	const struct fast_simulate_step *chain = &e->chain[mb * e->steps];
	int at = mb * e->steps, h = 1, length = problem_path_length(e->p, path);
	double end_s, delay_s;
	int next; /* first step after the forward tasks that both runs have in common */

	if (e->kept.n == 0 || chain[0].node != path[0])
		return 0;
	while (h < length && chain[h - 1].next == 1 && chain[h].node == path[h])
		h++;
	next = h - 1 + chain[h - 1].next;
	if (h == length && next == problem_next_step(e->p, length, h - 1))
		return INFINITY;
	end_s = e->kept.start_s[at + h - 1] + chain[h - 1].duration_s;
	if (e->links.outputs)
		/* A changed output may occupy its link longer or shorter, so later outputs may
		 * change too. */
		return end_s;
	delay_s = e->p->delay[(size_t)path[h - 1] * (size_t)e->n_nodes +
			      (size_t)path[h < length ? h : 0]];
	return fmin(e->kept.arrival_s[at + next], end_s + delay_s);
}

/* Takes over the bookings of the kept run that were made before from_s. finish_run copies their
 * start times. */
static void replay_kept(struct fast_simulate *e, double from_s)
{
	int i = 0;

	for (; i < e->kept.n && e->kept.booked[i].at_s < from_s; i++) {
		int at = e->kept.booked[i].task;
		const struct fast_simulate_step *task = &e->chain[at];
		struct fast_simulate_node *n = &e->nodes[task->node];
		double end_s = e->kept.start_s[at] + task->duration_s;

		e->event[e->kept.booked[i].mb].task = at + task->next;
		n->slots -= task->slots;
		n->free_s = end_s + e->overhead_s;
		if (task->last) {
			e->late = e->late || end_s > e->limit_s;
			e->done++;
		} else if (e->links.outputs) {
			(void)arrive_s(e, at, end_s);
		}
	}
	memcpy(e->booked, e->kept.booked, (size_t)i * sizeof(*e->booked));
	e->n_booked = e->n_replayed = i;
}

/* Inserts the microbatch into the list of waiting microbatches, in order of arrival. Looks at the
 * end of the list first, because microbatches that wait for their first F are inserted in order.
 * Scanning the list for each of them would take quadratic time. */
static void wait_in_turn(struct fast_simulate *e, struct fast_simulate_node *n, int mb)
{
	int32_t *at = &n->first;

	if (n->first >= 0 && e->event[n->last].due_s <= e->event[mb].due_s)
		at = &e->event[n->last].next;
	while (*at >= 0 && e->event[*at].due_s <= e->event[mb].due_s)
		at = &e->event[*at].next;
	e->event[mb].next = *at;
	if (*at < 0)
		n->last = mb;
	*at = mb;
}

/* Restores a microbatch that is between two tasks at from_s. If it is still travelling, its
 * arrival goes into the queue. If it waits for a slot, the microbatch goes into the node's
 * list. */
static void place_microbatch(struct fast_simulate *e, int mb, double from_s)
{
	struct fast_simulate_event *event = &e->event[mb];
	const struct fast_simulate_step *task = &e->chain[event->task];
	double arrival_s = e->release_s[mb];

	if (event->task == (mb + 1) * e->steps)
		return;
	if (event->task > mb * e->steps) {
		int before = event->task - task->before;

		task = &e->chain[before];
		arrival_s = e->links.outputs ? e->arrival_s[event->task]
					     : e->kept.start_s[before] + task->duration_s +
						       task->travel_s;
		e->late = e->late || arrival_s + task->rest_s > e->limit_s;
	}
	if (arrival_s >= from_s) {
		queue_add(e, mb, arrival_s);
		return;
	}
	event->due_s = arrival_s;
	wait_in_turn(e, &e->nodes[e->chain[event->task].node], mb);
}

bool fast_simulate_run_from(struct fast_simulate *e, double from_s, double limit_s)
{
	if (from_s <= 0 || e->kept.n == 0)
		return fast_simulate_run(e, limit_s);
	reset_run(e, limit_s);
	e->word = bucket_of(e, from_s) >> 6;
	e->bits = 0;
	replay_kept(e, from_s);
	for (int i = 0; i < e->n_mb; i++)
		place_microbatch(e, i, from_s);
	return run_events(e);
}

static void add_up(struct fast_simulate_step *chain, int steps)
{
	double rest_s = 0;

	for (int s = steps - 1; s >= 0; s -= chain[s].before) {
		chain[s].rest_s = rest_s;
		rest_s = chain[s].duration_s + chain[s].travel_s + rest_s;
	}
}

/* Fills in `chain`, which has 2 * length + 1 entries, with the tasks of a path. Each task is at the
 * index of its step. */
static void fill_chain(const struct problem *p, const double *work, const int *path,
		       struct fast_simulate_step *chain)
{
	int length = p->length, steps = 2 * length + 1, visits = problem_path_length(p, path);

	for (int s = 0, before = 1; s < steps; s += before) {
		int next = problem_next_step(p, visits, s);
		int hop = s < length ? s : s == length ? 0 : 2 * length - s;
		int after = next < length ? next : next == length ? 0 : 2 * length - next;
		int node = path[hop];

		chain[s].node = node;
		chain[s].slots = s < length ? 1 : s == length ? 0 : -1;
		chain[s].last = next == steps;
		chain[s].before = (uint8_t)before;
		chain[s].next = (uint8_t)(next - s);
		chain[s].duration_s = s < length    ? problem_forward_s(p, work, node)
				      : s == length ? p->c->nodes[node].loss_s
						    : problem_backward_s(p, work, node);
		chain[s].travel_s = next < steps ? problem_delay_s(p, node, path[after]) : 0;
		before = next - s;
	}
	add_up(chain, steps);
}

/* Fills in the links of a path's outputs and how long the outputs occupy them. Call this after
 * fill_chain. */
static void fill_outputs(struct fast_simulate *e, int first)
{
	for (int s = first; !e->chain[s].last; s += e->chain[s].next) {
		size_t at = (size_t)e->chain[s].node * (size_t)e->n_nodes +
			    (size_t)e->chain[s + e->chain[s].next].node;

		e->links.outputs[s] =
			(struct fast_simulate_output){ e->p->occupied[at], &e->links.all[at] };
	}
}

void fast_simulate_set_path(struct fast_simulate *e, int mb, const int *path)
{
	fill_chain(e->p, e->work, path, &e->chain[mb * e->steps]);
	if (e->links.outputs)
		fill_outputs(e, mb * e->steps);
}

void fast_simulate_set_paths(struct fast_simulate *e, const struct solution *s)
{
	e->work = s->work;
	for (int i = 0; i < e->n_mb; i++)
		fast_simulate_set_path(e, i, solution_path(s, e->p, i));
}

/* Guesses the length of a run from the work of the nodes. A wrong guess only costs speed. */
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

/* The calendar has several buckets for each task, over the guessed length of a run. */
void fast_simulate_init(struct fast_simulate *e, const struct problem *p)
{
	size_t m = (size_t)p->n_mb, n = (size_t)p->n_nodes, steps = 2 * (size_t)p->length + 1;
	size_t buckets = 256;
	double *work;

	while (buckets < 8 * m * steps && buckets < 65536)
		buckets *= 2;
	*e = (struct fast_simulate){ .p = p,
			      .n_mb = p->n_mb,
			      .n_nodes = p->n_nodes,
			      .steps = (int)steps,
			      .overhead_s = p->c->dispatch_overhead_s,
			      .n_buckets = (int)buckets };
	e->per_s = (double)buckets / guess_horizon(p);
	e->chain = arena_array(&e->arena, m * steps, sizeof(*e->chain));
	if (p->occupied) {
		e->links.outputs = arena_array(&e->arena, m * steps, sizeof(*e->links.outputs));
		e->links.all = arena_array(&e->arena, n * n, sizeof(*e->links.all));
	}
	e->release_s = arena_array(&e->arena, m, sizeof(*e->release_s));
	e->arrival_s = arena_array(&e->arena, m * steps, sizeof(*e->arrival_s));
	e->start_s = arena_array(&e->arena, m * steps, sizeof(*e->start_s));
	e->booked = arena_array(&e->arena, m * steps, sizeof(*e->booked));
	e->kept.arrival_s = arena_array(&e->arena, m * steps, sizeof(*e->kept.arrival_s));
	e->kept.start_s = arena_array(&e->arena, m * steps, sizeof(*e->kept.start_s));
	e->kept.booked = arena_array(&e->arena, m * steps, sizeof(*e->kept.booked));
	e->finish_s = arena_array(&e->arena, m, sizeof(*e->finish_s));
	e->event = arena_array(&e->arena, m, sizeof(*e->event));
	e->nodes = arena_array(&e->arena, n, sizeof(*e->nodes));
	e->batch = arena_array(&e->arena, m, sizeof(*e->batch));
	e->bucket = arena_array(&e->arena, buckets, sizeof(*e->bucket));
	e->filled = arena_array(&e->arena, buckets / 64 + 1, sizeof(*e->filled));
	e->work = work = arena_array(&e->arena, n, sizeof(*work));
	for (int i = 0; i < p->n_nodes; i++) {
		e->nodes[i].memory = p->c->nodes[i].memory;
		work[i] = cluster_work(p->c, p->c->nodes[i].stage);
	}
	e->filled[buckets / 64] = 1;
}

void fast_simulate_fini(struct fast_simulate *e)
{
	arena_free(&e->arena);
	*e = (struct fast_simulate){ 0 };
}
