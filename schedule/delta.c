#include "schedule/delta.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ARRIVES, MISSES, LOOKS, FORKS };
/* ARRIVES: microbatch `who` reaches its next task. MISSES: at node `who` something does not
 * arrive that the base has. LOOKS: node `who` may have to choose. FORKS: microbatch `who` starts
 * the last task before its path changes. */

bool delta_usable(const struct problem *p)
{
	if (p->q->split_backward)
		return false;
	for (int i = 0; i < p->n_nodes; i++) {
		const struct cluster_node *n = &p->c->nodes[i];

		if (!(n->forward_s > 0 && n->backward_s > 0 && n->loss_s > 0))
			return false;
	}
	return true;
}

static void push(struct delta *d, double at_s, int kind, int who)
{
	int i = d->n_heap;

	if (d->n_heap == d->room) {
		int room = 2 * d->room + 64;
		struct delta_event *more = realloc(d->heap, (size_t)room * sizeof(*more));

		if (!more) {
			d->failed = true;
			return;
		}
		d->heap = more;
		d->room = room;
	}
	d->n_heap++;
	for (; i > 0 && d->heap[(i - 1) / 2].at_s > at_s; i = (i - 1) / 2)
		d->heap[i] = d->heap[(i - 1) / 2];
	d->heap[i] = (struct delta_event){ at_s, kind, who };
}

static struct delta_event pop(struct delta *d)
{
	struct delta_event top = d->heap[0], last = d->heap[--d->n_heap];
	int i = 0;

	for (int child; (child = 2 * i + 1) < d->n_heap; i = child) {
		if (child + 1 < d->n_heap && d->heap[child + 1].at_s < d->heap[child].at_s)
			child++;
		if (d->heap[child].at_s >= last.at_s)
			break;
		d->heap[i] = d->heap[child];
	}
	d->heap[i] = last;
	return top;
}

static bool is_changed(const struct delta *d, int mb)
{
	return d->changed_stamp[mb] == d->trial;
}

static const struct engine_step *step_of(const struct delta *d, int mb, int step)
{
	const struct engine_step *chain = is_changed(d, mb) ? d->chain : d->e->chain;

	return &chain[mb * d->steps + step];
}

/* The first step that is not the base's; `steps` while it follows the base. It stays while the
 * microbatch strays, also when that is home already: the base's later steps do not happen. */
static int stray_of(const struct delta *d, int mb)
{
	return d->mb_stamp[mb] == d->trial ? d->stray[mb] : d->steps;
}

static void set_stray(struct delta *d, int mb, int step)
{
	int was = stray_of(d, mb);

	d->mb_stamp[mb] = d->trial;
	d->stray[mb] = step;
	d->n_live_mb += (step < d->steps) - (was < d->steps);
}

/* The base's task at place i of the node ends its time there at: */
static double base_free_s(const struct delta *d, const struct delta_node *n, int i)
{
	int task = n->by_start[i];
	double end_s = d->e->start_s[task] + d->e->chain[task].duration_s;

	return end_s + d->e->overhead_s;
}

static int count_before(const int32_t *tasks, int n, const double *when_s, double t)
{
	int low = 0, high = n;

	while (low < high) {
		int middle = (low + high) / 2;

		if (when_s[tasks[middle]] < t)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void wait_at(struct delta *d, struct delta_node *n, int mb, int step, double arrival_s)
{
	d->step[mb] = step;
	d->due_s[mb] = arrival_s;
	d->next[mb] = n->waiting;
	n->waiting = mb;
	n->n_waiting++;
}

static void look_next(struct delta *d, int node)
{
	const struct delta_node *n = &d->nodes[node];

	if (n->arrived < n->n)
		push(d, d->e->arrival_s[n->by_arrival[n->arrived]], LOOKS, node);
	if (n->started < n->n)
		push(d, d->e->start_s[n->by_start[n->started]], LOOKS, node);
}

/* The node's state just before t, from the base. */
static void bring_to_life(struct delta *d, int node, double t)
{
	struct delta_node *n = &d->nodes[node];
	const struct engine *e = d->e;

	n->live = true;
	if (!n->touched) {
		n->touched = true;
		d->touched[d->n_touched++] = node;
	}
	n->started = count_before(n->by_start, n->n, e->start_s, t);
	n->arrived = count_before(n->by_arrival, n->n, e->arrival_s, t);
	n->slots = e->nodes[node].memory;
	for (int i = 0; i < n->started; i++)
		n->slots -= e->chain[n->by_start[i]].slots;
	n->base_slots = n->slots;
	n->free_s = n->started > 0 ? base_free_s(d, n, n->started - 1) : 0;
	n->waiting = -1;
	n->n_waiting = 0;
	for (int i = n->arrived - 1, left = n->arrived - n->started; left > 0; i--) {
		int task = n->by_arrival[i];

		if (e->start_s[task] >= t) {
			wait_at(d, n, task / d->steps, task % d->steps, e->arrival_s[task]);
			left--;
		}
	}
	look_next(d, node);
}

static void mark(struct delta *d, int node, double t)
{
	struct delta_node *n = &d->nodes[node];

	if (!n->live)
		bring_to_life(d, node, t);
	if (!n->dirty) {
		n->dirty = true;
		d->dirty[d->n_dirty++] = node;
	}
}

/* From its step on the microbatch goes its own way: to be at node(step) at arrival_s, and not
 * where and when the base has it. */
static void stray(struct delta *d, int mb, int step, double arrival_s, double now_s)
{
	int task = mb * d->steps + step;

	if (d->e->arrival_s[task] > now_s) /* else it was missed already */
		push(d, d->e->arrival_s[task], MISSES, d->e->chain[task].node);
	if (stray_of(d, mb) > step)
		set_stray(d, mb, step);
	d->step[mb] = step;
	d->due_s[mb] = arrival_s;
	d->late = d->late || arrival_s + step_of(d, mb, step)->rest_s > d->limit_s;
	push(d, arrival_s, ARRIVES, mb);
}

static void start_task(struct delta *d, struct delta_node *n, int mb, double now_s)
{
	int step = d->step[mb], task = mb * d->steps + step;
	const struct engine_step *s = step_of(d, mb, step);
	double end_s = now_s + s->duration_s;
	const struct engine_step *base = &d->e->chain[task];
	bool as_base = now_s == d->e->start_s[task] && s->duration_s == base->duration_s &&
		       s->travel_s == base->travel_s &&
		       (!is_changed(d, mb) || step < d->first_changed[mb] - 1 ||
			step >= d->last_changed[mb]);

	if (d->task_stamp[task] != d->trial) {
		d->task_stamp[task] = d->trial;
		d->tasks[d->n_tasks++] = task;
	}
	d->arrival_s[task] = d->due_s[mb];
	d->start_s[task] = now_s;
	n->slots -= s->slots;
	n->free_s = end_s + d->e->overhead_s;
	if (step + 1 == d->steps) {
		d->finish_stamp[mb] = d->trial;
		d->finish_s[mb] = end_s;
		d->late = d->late || end_s > d->limit_s;
		d->n_live_mb -= stray_of(d, mb) < d->steps;
	} else if (as_base) {
		set_stray(d, mb, d->steps);
	} else {
		stray(d, mb, step + 1, end_s + s->travel_s, now_s);
	}
}

static void choose(struct delta *d, int node, double now_s)
{
	struct delta_node *n = &d->nodes[node];
	int *best = NULL;

	for (int *at = &n->waiting; *at >= 0; at = &d->next[*at]) {
		int mb = *at;

		if (n->slots <= 0 && step_of(d, mb, d->step[mb])->slots > 0)
			continue;
		if (!best || d->due_s[mb] < d->due_s[*best] ||
		    (mb < *best && d->due_s[mb] == d->due_s[*best]))
			best = at;
	}
	if (best) {
		int mb = *best;

		*best = d->next[mb];
		n->n_waiting--;
		start_task(d, n, mb, now_s);
	}
	if (n->waiting >= 0 && n->free_s > now_s)
		push(d, n->free_s, LOOKS, node);
}

/* What arrives at this instant as in the base. */
static void take_base_arrivals(struct delta *d, int node, double t)
{
	struct delta_node *n = &d->nodes[node];
	int first = n->arrived;

	while (n->arrived < n->n && d->e->arrival_s[n->by_arrival[n->arrived]] <= t) {
		int task = n->by_arrival[n->arrived++], mb = task / d->steps;

		/* One started in this instant at another node, as the base has it, is back on course
		 * but does not come here. */
		if (stray_of(d, mb) > task % d->steps && d->task_stamp[task] != d->trial)
			wait_at(d, n, mb, task % d->steps, d->e->arrival_s[task]);
	}
	if (n->arrived > first && n->arrived < n->n)
		push(d, d->e->arrival_s[n->by_arrival[n->arrived]], LOOKS, node);
}

/* What starts at this instant in the base: those that have not started here stray. */
static void pass_base_starts(struct delta *d, int node, double t)
{
	struct delta_node *n = &d->nodes[node];
	int first = n->started;

	while (n->started < n->n && d->e->start_s[n->by_start[n->started]] <= t) {
		int task = n->by_start[n->started++], mb = task / d->steps, step = task % d->steps;

		n->base_slots -= d->e->chain[task].slots;
		if (d->task_stamp[task] == d->trial)
			continue; /* started already, here or elsewhere: that has been seen to */
		if (step + 1 == d->steps) { /* late home, if at all */
			if (stray_of(d, mb) > step)
				set_stray(d, mb, step);
			continue;
		}
		if (stray_of(d, mb) > step + 1)
			set_stray(d, mb, step + 1);
		push(d, d->e->arrival_s[task + 1], MISSES, d->e->chain[task + 1].node);
	}
	if (n->started > first && n->started < n->n)
		push(d, d->e->start_s[n->by_start[n->started]], LOOKS, node);
}

/* Does the node stand as in the base? Then those that wait follow it again. */
static bool is_as_base(const struct delta *d, const struct delta_node *n, double t)
{
	double base_s = n->started > 0 ? base_free_s(d, n, n->started - 1) : 0;

	if (n->n_waiting != n->arrived - n->started || n->slots != n->base_slots ||
	    (n->free_s != base_s && (n->free_s > t || base_s > t)))
		return false;
	for (int mb = n->waiting; mb >= 0; mb = d->next[mb]) {
		int task = mb * d->steps + d->step[mb];

		if (d->e->chain[task].node != (int)(n - d->nodes) ||
		    d->e->arrival_s[task] != d->due_s[mb] || d->e->start_s[task] <= t)
			return false;
		if (is_changed(d, mb) && d->step[mb] <= d->last_changed[mb])
			return false;
	}
	return true;
}

static void settle(struct delta *d, int node, double t)
{
	struct delta_node *n = &d->nodes[node];

	n->dirty = false;
	take_base_arrivals(d, node, t);
	if (n->free_s <= t)
		choose(d, node, t);
	else if (n->waiting >= 0)
		push(d, n->free_s, LOOKS, node);
	pass_base_starts(d, node, t);
	if (!is_as_base(d, n, t))
		return;
	for (int mb = n->waiting; mb >= 0; mb = d->next[mb])
		set_stray(d, mb, d->steps);
	n->live = false;
}

static void take_in(struct delta *d, struct delta_event e)
{
	switch (e.kind) {
	case ARRIVES: {
		int node = step_of(d, e.who, d->step[e.who])->node;

		mark(d, node, e.at_s);
		wait_at(d, &d->nodes[node], e.who, d->step[e.who], e.at_s);
		break;
	}
	case MISSES:
		mark(d, e.who, e.at_s);
		break;
	case LOOKS:
		if (d->nodes[e.who].live)
			mark(d, e.who, e.at_s);
		break;
	default:
		d->forks[d->n_forks++] = e.who;
	}
}

/* The last task before the change started as in the base, at a node that is not followed: its
 * output goes another way. */
static void fork_off(struct delta *d, int mb)
{
	int before = d->first_changed[mb] - 1, task = mb * d->steps + before;
	const struct engine_step *s = step_of(d, mb, before);
	double end_s;

	if (d->nodes[s->node].live || stray_of(d, mb) < d->steps ||
	    d->task_stamp[task] == d->trial)
		return;
	end_s = d->e->start_s[task] + s->duration_s;
	stray(d, mb, before + 1, end_s + s->travel_s, d->e->start_s[task]);
}

static void run(struct delta *d)
{
	while (d->n_heap > 0 && !d->late && !d->failed) {
		double t = d->heap[0].at_s;

		d->n_dirty = d->n_forks = 0;
		while (d->n_heap > 0 && d->heap[0].at_s == t)
			take_in(d, pop(d));
		/* Forks first: a node that was just left alone would have started the task. */
		for (int i = 0; i < d->n_forks; i++)
			fork_off(d, d->forks[i]);
		for (int i = 0; i < d->n_dirty; i++)
			settle(d, d->dirty[i], t);
	}
}

/* The steps whose node, duration or way there differ. */
static void find_change(struct delta *d, int mb)
{
	const struct engine_step *was = d->e->chain + mb * d->steps;
	const struct engine_step *is = d->chain + mb * d->steps;

	d->first_changed[mb] = d->steps;
	d->last_changed[mb] = -1;
	for (int s = 0; s < d->steps; s++) {
		bool same = was[s].node == is[s].node && was[s].duration_s == is[s].duration_s &&
			    (s == 0 || was[s - 1].travel_s == is[s - 1].travel_s);

		if (same)
			continue;
		if (s < d->first_changed[mb])
			d->first_changed[mb] = s;
		d->last_changed[mb] = s;
	}
}

static void forget_trial(struct delta *d)
{
	for (int i = 0; i < d->n_touched; i++) {
		d->nodes[d->touched[i]].touched = false;
		d->nodes[d->touched[i]].live = false;
		d->nodes[d->touched[i]].dirty = false;
	}
	d->n_touched = d->n_tasks = d->n_changed = d->n_heap = d->n_live_mb = 0;
	d->trial++;
}

double delta_finish_s(const struct delta *d, int mb)
{
	return d->finish_stamp[mb] == d->trial ? d->finish_s[mb] : d->e->finish_s[mb];
}

bool delta_try(struct delta *d, const int *mbs, int n, const struct solution *s, double limit_s)
{
	forget_trial(d);
	d->late = d->failed = false;
	d->limit_s = limit_s * (1 + 1e-9);
	for (int i = 0; i < n; i++) {
		int mb = mbs[i];

		engine_fill_chain(d->p, s->path + (size_t)mb * (size_t)d->p->length,
				  d->chain + mb * d->steps);
		find_change(d, mb);
		if (d->last_changed[mb] < 0)
			continue;
		d->changed_stamp[mb] = d->trial;
		d->changed[d->n_changed++] = mb;
		push(d, d->e->start_s[mb * d->steps + d->first_changed[mb] - 1], FORKS, mb);
	}
	run(d);
	d->makespan_s = INFINITY;
	if (d->late || d->failed || d->n_live_mb > 0)
		return false;
	d->makespan_s = 0;
	for (int mb = 0; mb < d->p->n_mb; mb++)
		d->makespan_s = fmax(d->makespan_s, delta_finish_s(d, mb));
	return true;
}

static bool grow(struct delta_node *n, int room)
{
	int32_t *a, *b;

	if (room <= n->room)
		return true;
	a = realloc(n->by_start, 2 * (size_t)room * sizeof(*a));
	if (a)
		n->by_start = a;
	b = realloc(n->by_arrival, 2 * (size_t)room * sizeof(*b));
	if (b)
		n->by_arrival = b;
	if (!a || !b)
		return false;
	n->room = 2 * room;
	return true;
}

/* Insertion: the lists are nearly in order. */
static void sort_tasks(int32_t *tasks, int n, const double *when_s)
{
	for (int i = 1; i < n; i++) {
		int32_t task = tasks[i];
		int at = i;

		for (; at > 0 && when_s[tasks[at - 1]] > when_s[task]; at--)
			tasks[at] = tasks[at - 1];
		tasks[at] = task;
	}
}

static void drop_task(int32_t *tasks, int n, int task)
{
	int at = 0;

	while (at < n && tasks[at] != task)
		at++;
	if (at < n)
		memmove(tasks + at, tasks + at + 1, (size_t)(n - at - 1) * sizeof(*tasks));
}

static void touch(struct delta *d, int node)
{
	if (!d->nodes[node].touched) {
		d->nodes[node].touched = true;
		d->touched[d->n_touched++] = node;
	}
}

static int move_task(struct delta *d, int task, int from, int to)
{
	struct delta_node *a = &d->nodes[from], *b = &d->nodes[to];

	drop_task(a->by_start, a->n, task);
	drop_task(a->by_arrival, a->n, task);
	a->n--;
	if (!grow(b, b->n + 1))
		return -ENOMEM;
	b->by_start[b->n] = b->by_arrival[b->n] = task;
	b->n++;
	touch(d, from);
	touch(d, to);
	return 0;
}

int delta_commit(struct delta *d)
{
	struct engine *e = d->e;

	for (int i = 0; i < d->n_tasks; i++) {
		int task = d->tasks[i];

		e->arrival_s[task] = d->arrival_s[task];
		e->start_s[task] = d->start_s[task];
	}
	for (int i = 0; i < d->n_changed; i++) {
		int mb = d->changed[i];

		for (int s = 0; s < d->steps; s++) {
			int task = mb * d->steps + s, from = e->chain[task].node;

			if (from != d->chain[task].node &&
			    move_task(d, task, from, d->chain[task].node) != 0)
				return -ENOMEM;
			e->chain[task] = d->chain[task];
		}
	}
	for (int mb = 0; mb < d->p->n_mb; mb++)
		e->finish_s[mb] = delta_finish_s(d, mb);
	for (int i = 0; i < d->n_touched; i++) {
		struct delta_node *n = &d->nodes[d->touched[i]];

		sort_tasks(n->by_start, n->n, e->start_s);
		sort_tasks(n->by_arrival, n->n, e->arrival_s);
	}
	e->makespan_s = d->makespan_s;
	forget_trial(d);
	return 0;
}

int delta_rebase(struct delta *d)
{
	const struct engine *e = d->e;
	int tasks = d->p->n_mb * d->steps;

	forget_trial(d);
	for (int i = 0; i < d->p->n_nodes; i++)
		d->nodes[i].n = 0;
	for (int task = 0; task < tasks; task++) {
		struct delta_node *n = &d->nodes[e->chain[task].node];

		if (!grow(n, n->n + 1))
			return -ENOMEM;
		n->by_start[n->n] = n->by_arrival[n->n] = task;
		n->n++;
	}
	for (int i = 0; i < d->p->n_nodes; i++) {
		sort_tasks(d->nodes[i].by_start, d->nodes[i].n, e->start_s);
		sort_tasks(d->nodes[i].by_arrival, d->nodes[i].n, e->arrival_s);
	}
	return 0;
}

int delta_init(struct delta *d, struct engine *e)
{
	size_t m = (size_t)e->n_mb, n = (size_t)e->n_nodes, tasks = m * (size_t)e->steps;

	*d = (struct delta){ .p = e->p, .e = e, .steps = e->steps };
	d->nodes = calloc(n, sizeof(*d->nodes));
	d->task_stamp = calloc(tasks, sizeof(*d->task_stamp));
	d->mb_stamp = calloc(m, sizeof(*d->mb_stamp));
	d->finish_stamp = calloc(m, sizeof(*d->finish_stamp));
	d->changed_stamp = calloc(m, sizeof(*d->changed_stamp));
	d->arrival_s = calloc(tasks, sizeof(*d->arrival_s));
	d->start_s = calloc(tasks, sizeof(*d->start_s));
	d->finish_s = calloc(m, sizeof(*d->finish_s));
	d->due_s = calloc(m, sizeof(*d->due_s));
	d->step = calloc(m, sizeof(*d->step));
	d->stray = calloc(m, sizeof(*d->stray));
	d->next = calloc(m, sizeof(*d->next));
	d->chain = calloc(tasks, sizeof(*d->chain));
	d->first_changed = calloc(m, sizeof(*d->first_changed));
	d->last_changed = calloc(m, sizeof(*d->last_changed));
	d->changed = calloc(m, sizeof(*d->changed));
	d->tasks = calloc(tasks, sizeof(*d->tasks));
	d->touched = calloc(n, sizeof(*d->touched));
	d->dirty = calloc(n, sizeof(*d->dirty));
	d->forks = calloc(m, sizeof(*d->forks));
	if (d->nodes && d->task_stamp && d->mb_stamp && d->finish_stamp && d->changed_stamp &&
	    d->arrival_s && d->start_s && d->finish_s && d->due_s && d->step && d->stray &&
	    d->next && d->chain && d->first_changed && d->last_changed && d->changed &&
	    d->tasks && d->touched && d->dirty && d->forks && delta_rebase(d) == 0)
		return 0;
	delta_fini(d);
	return -ENOMEM;
}

void delta_fini(struct delta *d)
{
	for (int i = 0; d->nodes && i < d->p->n_nodes; i++) {
		free(d->nodes[i].by_start);
		free(d->nodes[i].by_arrival);
	}
	free(d->nodes);
	free(d->task_stamp);
	free(d->mb_stamp);
	free(d->finish_stamp);
	free(d->changed_stamp);
	free(d->arrival_s);
	free(d->start_s);
	free(d->finish_s);
	free(d->due_s);
	free(d->step);
	free(d->stray);
	free(d->next);
	free(d->chain);
	free(d->first_changed);
	free(d->last_changed);
	free(d->changed);
	free(d->tasks);
	free(d->touched);
	free(d->dirty);
	free(d->forks);
	free(d->heap);
	*d = (struct delta){ 0 };
}
