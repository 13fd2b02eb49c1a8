/* The reference simulator.
 *
 * A heap holds the events: a microbatch reaches its next task, or a node becomes free. All events
 * of an instant are taken in before the nodes concerned (`dirty`) choose. Each starts the best
 * waiting task that may start. A waiting task remembers the task that delayed it, for the report of
 * collisions. The code is written to be plain; fast_simulate.c is written to be fast. */
#include "schedule/execution/simulate.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/arena.h"

#define NO_PRIORITY INT32_MAX

struct event {
	double at_s;
	/* At least 0: the microbatch that reaches its next task. Below 0: node -1 - what is
	 * free. */
	int what;
};

/* A task that has arrived. */
struct waiting {
	int mb, step;
	double arrival_s;
	/* Index of the task that delays this one, as sim_task.waited_for; -1: not known yet. */
	int delayed_by;
};

struct node_state {
	bool busy, dirty; /* dirty: an event of the present instant concerns the node */
	int last;         /* the task that the node runs or ran last; -1: none yet */
	int n_waiting;
	/* Tasks that wait here, in no order; a microbatch has at most one of them. */
	struct waiting *waiting;
	int n_holding;
	int *holding;      /* the F whose microbatches hold a slot, oldest first */
};

struct run {
	const struct cluster *c;
	const struct plan *p;
	struct simulation *s;
	double now_s;
	struct arena arena; /* owns the arrays below */
	struct node_state *nodes;
	int *step; /* (n_microbatches) the next task of each chain, 0 .. 2 * length */
	struct event *heap;
	int n_heap;
	int *dirty, n_dirty;
	int steps;         /* most tasks of one microbatch */
	int32_t *priority; /* (n_microbatches, steps); NULL: first come, first served */
	double *link_free_s; /* (n_nodes, n_nodes) NULL: transfers do not wait for one another */
	int done;
};

/* Returns the hop of a microbatch's task at a step of its chain, 0 .. 2 * length. */
static int step_hop(const struct plan_microbatch *m, int step)
{
	if (step < m->length)
		return step;
	return step == m->length ? 0 : 2 * m->length - step;
}

static enum task_kind step_kind(const struct plan_microbatch *m, int step)
{
	if (step < m->length)
		return TASK_FORWARD;
	return step == m->length ? TASK_LOSS : TASK_BACKWARD;
}

static int step_node(const struct plan_microbatch *m, int step)
{
	return m->path[step_hop(m, step)];
}

static double task_duration_s(const struct run *r, int node, enum task_kind kind)
{
	const struct cluster_node *n = &r->c->nodes[node];

	switch (kind) {
	case TASK_FORWARD:
		return n->forward_s;
	case TASK_LOSS:
		return n->loss_s;
	default:
		return n->backward_s;
	}
}

static void heap_push(struct run *r, double at_s, int what)
{
	int i = r->n_heap++;

	while (i > 0 && r->heap[(i - 1) / 2].at_s > at_s) {
		r->heap[i] = r->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	r->heap[i] = (struct event){ at_s, what };
}

static struct event heap_pop(struct run *r)
{
	struct event top = r->heap[0], last = r->heap[--r->n_heap];
	int i = 0;

	for (int child; (child = 2 * i + 1) < r->n_heap; i = child) {
		if (child + 1 < r->n_heap && r->heap[child + 1].at_s < r->heap[child].at_s)
			child++;
		if (r->heap[child].at_s >= last.at_s)
			break;
		r->heap[i] = r->heap[child];
	}
	r->heap[i] = last;
	return top;
}

static int32_t priority_of(const struct run *r, const struct waiting *w)
{
	return r->priority ? r->priority[w->mb * r->steps + w->step] : NO_PRIORITY;
}

static enum task_kind kind_of(const struct run *r, const struct waiting *w)
{
	return step_kind(&r->p->microbatches[w->mb], w->step);
}

/* Microbatches are sorted by id, so their indices compare like their ids. */
static bool goes_first(const struct run *r, const struct waiting *a, const struct waiting *b)
{
	int32_t pa = priority_of(r, a), pb = priority_of(r, b);

	if (pa != pb)
		return pa < pb;
	if (a->arrival_s != b->arrival_s)
		return a->arrival_s < b->arrival_s;
	return a->mb < b->mb;
}

static bool may_start(const struct run *r, int node, const struct waiting *w)
{
	return kind_of(r, w) != TASK_FORWARD ||
	       r->nodes[node].n_holding < r->c->nodes[node].memory;
}

static void release_slot(struct node_state *n, const struct sim_task *tasks, int mb, int hop)
{
	for (int i = 0; i < n->n_holding; i++) {
		const struct sim_task *f = &tasks[n->holding[i]];

		if (f->microbatch == mb && f->hop == hop) {
			n->n_holding--;
			memmove(n->holding + i, n->holding + i + 1,
				(size_t)(n->n_holding - i) * sizeof(*n->holding));
			return;
		}
	}
}

static void note_collision(struct run *r, struct sim_task *task, int delayed_by)
{
	bool counts = !(task->kind == TASK_FORWARD && task->hop == 0);

	task->waited_for = task->start_s > task->arrival_s ? delayed_by : -1;
	task->collided = task->start_s > task->arrival_s && counts;
	if (task->collided) {
		r->s->collisions++;
		r->s->collision_wait_s += task->start_s - task->arrival_s;
	}
}

/* Returns the time when an output leaves, which is not before its link is free. A node's tasks end
 * one after another, so its outputs leave in the order in which their tasks start. */
static double leave_s(struct run *r, int from, int to, double end_s)
{
	double *free_s;

	if (!r->link_free_s)
		return end_s;
	free_s = &r->link_free_s[(size_t)from * (size_t)r->c->n_nodes + (size_t)to];
	end_s = fmax(end_s, *free_s);
	*free_s = end_s + cluster_occupied_s(r->c, from, to);
	return end_s;
}

static void send_on(struct run *r, int mb, int node, double end_s)
{
	const struct plan_microbatch *m = &r->p->microbatches[mb];
	int next = ++r->step[mb], to;

	if (next > 2 * m->length) {
		r->done++;
		return;
	}
	to = step_node(m, next);
	if (to != node)
		end_s = leave_s(r, node, to, end_s) +
			r->c->delay_s[(size_t)node * (size_t)r->c->n_nodes + (size_t)to];
	heap_push(r, end_s, mb);
}

static void start_task(struct run *r, int node, const struct waiting *w)
{
	const struct plan_microbatch *m = &r->p->microbatches[w->mb];
	struct node_state *n = &r->nodes[node];
	struct sim_task *task = &r->s->tasks[r->s->n_tasks];

	*task = (struct sim_task){
		.microbatch = w->mb,
		.hop = step_hop(m, w->step),
		.kind = step_kind(m, w->step),
		.node = node,
		.arrival_s = w->arrival_s,
		.start_s = r->now_s,
	};
	task->end_s = task->start_s + task_duration_s(r, node, task->kind);
	note_collision(r, task, w->delayed_by);
	if (task->kind == TASK_FORWARD)
		n->holding[n->n_holding++] = r->s->n_tasks;
	else if (task->kind == TASK_BACKWARD) /* no task starts here before the task ends */
		release_slot(n, r->s->tasks, w->mb, task->hop);
	if (n->n_holding > r->s->peak_slots[node])
		r->s->peak_slots[node] = n->n_holding;
	r->s->busy_s[node] += task->end_s - task->start_s;
	if (task->end_s > r->s->iteration_s)
		r->s->iteration_s = task->end_s;
	n->last = r->s->n_tasks++;
	n->busy = true;
	heap_push(r, task->end_s + r->c->dispatch_overhead_s, -1 - node);
	send_on(r, w->mb, node, task->end_s);
}

/* Starts the best waiting task that may start, on a node that is free. The others note what they
 * wait for: that task or, if none may start, the oldest holder of a slot. */
static void start_best(struct run *r, int node)
{
	struct node_state *n = &r->nodes[node];
	int best = -1, why;

	for (int i = 0; i < n->n_waiting; i++) {
		if (may_start(r, node, &n->waiting[i]) &&
		    (best < 0 || goes_first(r, &n->waiting[i], &n->waiting[best])))
			best = i;
	}
	if (best >= 0) {
		struct waiting w = n->waiting[best];

		n->waiting[best] = n->waiting[--n->n_waiting];
		start_task(r, node, &w);
	}
	why = best >= 0 ? n->last : n->n_holding > 0 ? n->holding[0] : -1;
	for (int i = 0; i < n->n_waiting; i++) {
		if (n->waiting[i].delayed_by < 0)
			n->waiting[i].delayed_by = why;
	}
}

static void mark_dirty(struct run *r, int node)
{
	if (!r->nodes[node].dirty) {
		r->nodes[node].dirty = true;
		r->dirty[r->n_dirty++] = node;
	}
}

static void take_in(struct run *r, struct event e)
{
	int node = e.what < 0 ? -1 - e.what
			      : step_node(&r->p->microbatches[e.what], r->step[e.what]);
	struct node_state *n = &r->nodes[node];

	if (e.what < 0) {
		n->busy = false;
	} else {
		n->waiting[n->n_waiting++] =
			(struct waiting){ .mb = e.what,
					  .step = r->step[e.what],
					  .arrival_s = e.at_s,
					  .delayed_by = n->busy ? n->last : -1 };
	}
	mark_dirty(r, node);
}

static void run_events(struct run *r)
{
	while (r->n_heap > 0) {
		r->now_s = r->heap[0].at_s;
		r->n_dirty = 0;
		while (r->n_heap > 0 && r->heap[0].at_s == r->now_s)
			take_in(r, heap_pop(r));
		for (int i = 0; i < r->n_dirty; i++) {
			int node = r->dirty[i];

			r->nodes[node].dirty = false;
			if (!r->nodes[node].busy)
				start_best(r, node);
		}
	}
}

static int check_hop(const struct cluster *c, const struct plan_microbatch *m, int from, int to,
		     struct error *err)
{
	if (from != to && c->delay_s[(size_t)from * (size_t)c->n_nodes + (size_t)to] < 0)
		return error_set(err, -EINVAL, "microbatch %d: no link from node %d to node %d",
				 m->id, from, to);
	return 0;
}

/* Refuses plans that cannot be run: unknown nodes, bad lengths, missing links. check.h checks the
 * rules. */
static int check_runnable(const struct cluster *c, const struct plan *p, struct error *err)
{
	if (p->n_stages != c->n_stages)
		return error_set(err, -EINVAL, "assignment: expected %d stages, found %d",
				 c->n_stages, p->n_stages);
	for (int i = 0; i < p->stage_start[p->n_stages]; i++) {
		if (p->assigned[i] < 0 || p->assigned[i] >= c->n_nodes)
			return error_set(err, -EINVAL, "assignment: unknown node %d",
					 p->assigned[i]);
	}
	for (int i = 0; i < p->n_microbatches; i++) {
		const struct plan_microbatch *m = &p->microbatches[i];
		int rc = 0;

		if (i > 0 && m->id <= p->microbatches[i - 1].id)
			return error_set(err, -EINVAL, "microbatches: ids must ascend");
		if (m->length < 1 || m->length > PLAN_MOST_PATH)
			return error_set(err, -EINVAL,
					 "microbatch %d: expected a path of 1 to %d nodes", m->id,
					 PLAN_MOST_PATH);
		for (int h = 0; h < m->length; h++) {
			if (m->path[h] < 0 || m->path[h] >= c->n_nodes)
				return error_set(err, -EINVAL, "microbatch %d: unknown node %d",
						 m->id, m->path[h]);
		}
		for (int step = 0; rc == 0 && step < 2 * m->length; step++)
			rc = check_hop(c, m, step_node(m, step), step_node(m, step + 1), err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int task_count(const struct plan_microbatch *m)
{
	return 2 * m->length + 1;
}

static int find_microbatch(const struct plan *p, int id)
{
	int low = 0, high = p->n_microbatches;

	while (low < high) {
		int middle = (low + high) / 2;

		if (p->microbatches[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < p->n_microbatches && p->microbatches[low].id == id ? low : -1;
}

/* Entries without a task of the plan on that node are ignored. */
static void fill_priorities(struct run *r)
{
	for (size_t i = 0; i < (size_t)r->p->n_microbatches * (size_t)r->steps; i++)
		r->priority[i] = NO_PRIORITY;
	for (int o = 0; o < r->p->n_orders; o++) {
		const struct plan_order *order = &r->p->orders[o];

		for (int t = 0; t < order->n_tasks; t++) {
			int mb = find_microbatch(r->p, order->tasks[t].microbatch);
			const struct plan_microbatch *m = &r->p->microbatches[mb < 0 ? 0 : mb];

			for (int step = 0; mb >= 0 && step < task_count(m); step++) {
				int32_t *at = &r->priority[mb * r->steps + step];

				if (step_kind(m, step) == order->tasks[t].kind &&
				    step_node(m, step) == order->node && *at == NO_PRIORITY)
					*at = t;
			}
		}
	}
}

/* A node has room for all microbatches that visit it to wait and to hold a slot. */
static void run_alloc(struct run *r)
{
	size_t n = (size_t)r->c->n_nodes, m = (size_t)r->p->n_microbatches, visits = 0;
	struct waiting *waiting;
	int *holding;

	for (size_t i = 0; i < m; i++) {
		visits += (size_t)r->p->microbatches[i].length;
		if (task_count(&r->p->microbatches[i]) > r->steps)
			r->steps = task_count(&r->p->microbatches[i]);
	}
	r->nodes = arena_array(&r->arena, n, sizeof(*r->nodes));
	r->step = arena_array(&r->arena, m + 1, sizeof(*r->step));
	waiting = arena_array(&r->arena, visits + 1, sizeof(*waiting));
	holding = arena_array(&r->arena, visits + 1, sizeof(*holding));
	r->heap = arena_array(&r->arena, m + n + 1, sizeof(*r->heap));
	r->dirty = arena_array(&r->arena, n, sizeof(*r->dirty));
	if (r->c->bytes_s)
		r->link_free_s = arena_array(&r->arena, n * n, sizeof(*r->link_free_s));
	if (r->p->n_orders > 0)
		r->priority = arena_array(&r->arena, m * (size_t)r->steps + 1,
					  sizeof(*r->priority));
	if (r->priority)
		fill_priorities(r);
	for (size_t i = 0; i < m; i++) {
		for (int h = 0; h < r->p->microbatches[i].length; h++)
			r->nodes[r->p->microbatches[i].path[h]].n_waiting++;
	}
	for (size_t i = 0; i < n; i++) {
		struct node_state *node = &r->nodes[i];
		int visits_here = node->n_waiting;

		*node = (struct node_state){ .last = -1,
					     .waiting = waiting,
					     .holding = holding };
		waiting += visits_here;
		holding += visits_here;
	}
}

/* Names the first few waiting microbatches and those that hold the slots. */
static int report_standstill(const struct run *r, struct error *err)
{
	char who[400] = "";
	int named = 0, stuck = r->p->n_microbatches - r->done;

	for (int node = 0; node < r->c->n_nodes && named < 4; node++) {
		const struct node_state *n = &r->nodes[node];
		size_t used = strlen(who);
		int holder = n->n_holding > 0 ? r->s->tasks[n->holding[0]].microbatch : -1;

		if (n->n_waiting == 0)
			continue;
		snprintf(who + used, sizeof(who) - used,
			 "%s microbatch %d waits for a slot of node %d", named++ ? ";" : "",
			 r->p->microbatches[n->waiting[0].mb].id, node);
		used = strlen(who);
		if (holder >= 0)
			snprintf(who + used, sizeof(who) - used, " (held by %d)",
				 r->p->microbatches[holder].id);
	}
	return error_set(err, -EDEADLK, "standstill: %d microbatches wait in a circle:%s", stuck,
			 who);
}

static struct simulation *simulation_alloc(const struct cluster *c, const struct plan *p)
{
	struct simulation *s = alloc_new(sizeof(*s));
	size_t tasks = 0;

	for (int i = 0; i < p->n_microbatches; i++)
		tasks += (size_t)task_count(&p->microbatches[i]);
	s->n_stages = c->n_stages;
	s->n_nodes = c->n_nodes;
	s->tasks = alloc_array(tasks, sizeof(*s->tasks));
	s->exposure = alloc_array((size_t)c->n_stages, sizeof(*s->exposure));
	s->peak_slots = alloc_array((size_t)c->n_nodes, sizeof(*s->peak_slots));
	s->busy_s = alloc_array((size_t)c->n_nodes, sizeof(*s->busy_s));
	return s;
}

void simulation_free(struct simulation *s)
{
	if (!s)
		return;
	free(s->tasks);
	free(s->exposure);
	free(s->peak_slots);
	free(s->busy_s);
	free(s);
}

double simulate_stage_sync_s(const struct cluster *c, const struct plan *p, int stage)
{
	const int *nodes = p->assigned + p->stage_start[stage];
	int r = p->stage_start[stage + 1] - p->stage_start[stage];
	double slowest = 0;

	for (int i = 0; c->sync_pair_s && i < r * r; i++) {
		int a = nodes[i / r], b = nodes[i % r];
		double t = a == b ? 0
				  : c->sync_pair_s[(size_t)a * (size_t)c->n_nodes + (size_t)b];

		if (t > slowest)
			slowest = t;
	}
	return r > 1 ? 2.0 * (r - 1) / r * slowest : 0;
}

/* Computes sync_s, for sums after the iteration, and total_s, for sums that follow each stage's
 * last task. */
static void sum_gradients(const struct run *r)
{
	for (int stage = 0; stage < r->p->n_stages; stage++) {
		double end_s = 0, sync_s = simulate_stage_sync_s(r->c, r->p, stage);

		for (int i = r->p->stage_start[stage]; i < r->p->stage_start[stage + 1]; i++) {
			int last = r->nodes[r->p->assigned[i]].last;

			if (last >= 0)
				end_s = fmax(end_s, r->s->tasks[last].end_s);
		}
		r->s->sync_s = fmax(r->s->sync_s, sync_s);
		r->s->total_s = fmax(r->s->total_s, end_s + sync_s);
	}
}

/* Adds up a complete run. Exposure counts visits by the assignment; idle time counts nodes with a
 * stage. */
static void sum_up_run(struct run *r)
{
	struct simulation *s = r->s;
	int *stage_of = alloc_array((size_t)r->c->n_nodes, sizeof(*stage_of));
	int assigned = 0;
	double busy = 0;

	plan_stages(r->p, r->c->n_nodes, stage_of);
	for (int i = 0; i < r->p->n_microbatches; i++) {
		for (int h = 0; h < r->p->microbatches[i].length; h++) {
			int stage = stage_of[r->p->microbatches[i].path[h]];

			if (stage >= 0)
				s->exposure[stage]++;
		}
	}
	for (int i = 0; i < r->c->n_nodes; i++) {
		busy += s->busy_s[i];
		assigned += stage_of[i] >= 0;
	}
	if (assigned > 0 && s->iteration_s > 0)
		s->idle_fraction = 1 - busy / (assigned * s->iteration_s);
	sum_gradients(r);
	free(stage_of);
}

int simulate(const struct cluster *c, const struct plan *p, struct simulation **out,
	     struct error *err)
{
	struct run r = { .c = c, .p = p };
	int rc = check_runnable(c, p, err);

	if (rc != 0)
		return rc;
	r.s = simulation_alloc(c, p);
	run_alloc(&r);
	for (int i = 0; i < p->n_microbatches; i++)
		heap_push(&r, p->microbatches[i].release_s, i);
	run_events(&r);
	if (r.done < p->n_microbatches) {
		rc = report_standstill(&r, err);
		simulation_free(r.s);
	} else {
		sum_up_run(&r);
		*out = r.s;
	}
	arena_free(&r.arena);
	return rc;
}

char *simulation_trace(const struct cluster *c, const struct plan *p,
		       const struct simulation *s)
{
	json_t *events = json_array(), *root = json_pack("{s:o, s:s}", "traceEvents", events,
							 "displayTimeUnit", "ms");
	char name[64], *text;

	for (int i = 0; i < c->n_nodes; i++)
		json_array_append_new(events,
			json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name",
				  "thread_name", "pid", 0, "tid", i, "args", "name",
				  c->nodes[i].location));
	for (int i = 0; i < s->n_tasks; i++) {
		const struct sim_task *t = &s->tasks[i];
		int id = p->microbatches[t->microbatch].id;

		snprintf(name, sizeof(name), "%s%d", task_kind_name(t->kind), id);
		json_array_append_new(events,
			json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:i, s:i, s:f}}", "ph",
				  "X", "name", name, "cat", task_kind_name(t->kind), "pid", 0,
				  "tid", t->node, "ts", t->start_s * 1e6, "dur",
				  (t->end_s - t->start_s) * 1e6, "args", "microbatch", id, "hop",
				  t->hop, "waited_s", t->start_s - t->arrival_s));
	}
	text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(root);
	return text;
}
