/* The reference simulator, written to be plain; fast_simulate.c is written to be fast.
 *
 * A heap holds the events: a microbatch reaches its next task, or a node becomes free. All events
 * of an instant are handled first; each of them marks the node that it concerns as dirty. Then
 * each dirty node that is free starts the best of its waiting tasks that may start.
 *
 * A node keeps its waiting tasks in two heaps: forward tasks (F), which need a slot, and all
 * others. In a large plan thousands of F wait at a data node. A waiting task remembers the task
 * that delayed it, for the report of collisions. */
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

/* A binary heap of microbatches or events. */
struct heap {
	int n;
	int *list;
};

/* State of a microbatch: its next task, which waits at its node or is still on its way there. */
struct microbatch_state {
	int step; /* index of the task in the chain, 0 to 2 * length */
	double arrival_s;
	/* Index of the task that delays this one (see sim_task.waited_for); -1: not known yet. */
	int delayed_by;
	int next_arrived; /* the next microbatch in the node's list `arrived`; -1: none */
};

struct node_state {
	bool busy, dirty; /* dirty: an event of the present instant concerns the node */
	double free_s;    /* time at which the node's present task and its overhead end */
	int last;         /* the task that the node is running, or that it ran last; -1: none yet */
	/* Microbatches whose task waits here, the best first: forward tasks, which need a slot, and
	 * all others. */
	struct heap forwards, others;
	/* List, linked by next_arrived, of the microbatches that have arrived at this instant and
	 * found the node free; -1: none. */
	int arrived;
	int n_holding; /* number of microbatches that hold a slot */
	/* Forward tasks that have started here, oldest first. The microbatches of tasks before the
	 * index `oldest` have all given back their slot; some microbatches of later tasks may have
	 * done so too. */
	int *started, n_started, oldest;
};

struct simulated_run {
	const struct cluster *c;
	const struct plan *p;
	struct simulation *s;
	double now_s;
	struct arena arena; /* owns the arrays below */
	struct node_state *nodes;
	struct microbatch_state *microbatches;
	/* Events. A number m >= 0: microbatch m reaches its next task. A number e < 0: node -1 - e
	 * becomes free. */
	struct heap events;
	int *dirty, n_dirty;
	int steps;         /* largest number of tasks of one microbatch */
	int32_t *priority; /* array of (n_microbatches, steps); NULL: first come, first served */
	/* Array of (n_nodes, n_nodes): time at which each link becomes free; NULL: transfers do
	 * not wait for one another */
	double *link_free_s;
	int done;
	int *stage_of; /* array of n_nodes; -1: no stage */
};

/* A microbatch has a chain of tasks, numbered by `step` from 0 to 2 * length. Returns the hop of
 * one of them. */
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

/* Returns true if a leaves the heap before b. */
typedef bool order_function(const struct simulated_run *r, int a, int b);

static void heap_push(const struct simulated_run *r, struct heap *h, int what,
		      order_function *goes_first)
{
	int i = h->n++;

	while (i > 0 && goes_first(r, what, h->list[(i - 1) / 2])) {
		h->list[i] = h->list[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->list[i] = what;
}

static int heap_pop(const struct simulated_run *r, struct heap *h, order_function *goes_first)
{
	int top = h->list[0], last = h->list[--h->n], i = 0;

	for (int child; (child = 2 * i + 1) < h->n; i = child) {
		if (child + 1 < h->n && goes_first(r, h->list[child + 1], h->list[child]))
			child++;
		if (!goes_first(r, h->list[child], last))
			break;
		h->list[i] = h->list[child];
	}
	h->list[i] = last;
	return top;
}

static double event_s(const struct simulated_run *r, int event)
{
	return event < 0 ? r->nodes[-1 - event].free_s : r->microbatches[event].arrival_s;
}

/* Returns true if event a happens before event b. */
static bool is_earlier(const struct simulated_run *r, int a, int b)
{
	return event_s(r, a) < event_s(r, b);
}

static int32_t priority_of(const struct simulated_run *r, int mb)
{
	return r->priority ? r->priority[mb * r->steps + r->microbatches[mb].step] : NO_PRIORITY;
}

/* Returns true if microbatch a's waiting task starts before b's. Microbatches are sorted by id, so
 * their indices compare like their ids. */
static bool is_served_first(const struct simulated_run *r, int a, int b)
{
	int32_t pa = priority_of(r, a), pb = priority_of(r, b);

	if (pa != pb)
		return pa < pb;
	if (r->microbatches[a].arrival_s != r->microbatches[b].arrival_s)
		return r->microbatches[a].arrival_s < r->microbatches[b].arrival_s;
	return a < b;
}

/* Returns the F (forward task) whose microbatch has held a slot longest; -1: no slot is held. A
 * slot is held until the microbatch is past its B on this node. */
static int oldest_holder(const struct simulated_run *r, struct node_state *n)
{
	for (; n->oldest < n->n_started; n->oldest++) {
		const struct sim_task *f = &r->s->tasks[n->started[n->oldest]];
		int b_step = 2 * r->p->microbatches[f->microbatch].length - f->hop;

		if (r->microbatches[f->microbatch].step <= b_step)
			return n->started[n->oldest];
	}
	return -1;
}

static void note_collision(struct simulated_run *r, struct sim_task *task, int delayed_by)
{
	bool counts = !(task->kind == TASK_FORWARD && task->hop == 0);

	task->waited_for = task->start_s > task->arrival_s ? delayed_by : -1;
	task->collided = task->start_s > task->arrival_s && counts;
	if (task->collided) {
		r->s->collisions++;
		r->s->collision_wait_s += task->start_s - task->arrival_s;
	}
}

/* Returns the time at which an output leaves the node `from`: end_s, or a later time if the link
 * to `to` is still busy. Outputs leave in the order in which the node starts its tasks, because
 * the node ends its tasks in that order. */
static double leave_s(struct simulated_run *r, int from, int to, double end_s)
{
	double *free_s;

	if (!r->link_free_s)
		return end_s;
	free_s = &r->link_free_s[(size_t)from * (size_t)r->c->n_nodes + (size_t)to];
	end_s = fmax(end_s, *free_s);
	*free_s = end_s + cluster_occupied_s(r->c, from, to);
	return end_s;
}

static void send_on(struct simulated_run *r, int mb, int node, double end_s)
{
	const struct plan_microbatch *m = &r->p->microbatches[mb];
	int next = ++r->microbatches[mb].step, to;

	if (next > 2 * m->length) {
		r->done++;
		return;
	}
	to = step_node(m, next);
	if (to != node)
		end_s = leave_s(r, node, to, end_s) +
			r->c->delay_s[(size_t)node * (size_t)r->c->n_nodes + (size_t)to];
	r->microbatches[mb].arrival_s = end_s;
	heap_push(r, &r->events, mb, is_earlier);
}

static void start_task(struct simulated_run *r, int node, int mb)
{
	const struct plan_microbatch *m = &r->p->microbatches[mb];
	const struct microbatch_state *w = &r->microbatches[mb];
	struct node_state *n = &r->nodes[node];
	struct sim_task *task = &r->s->tasks[r->s->n_tasks];

	*task = (struct sim_task){
		.microbatch = mb,
		.hop = step_hop(m, w->step),
		.kind = step_kind(m, w->step),
		.node = node,
		.arrival_s = w->arrival_s,
		.start_s = r->now_s,
	};
	task->end_s = task->start_s + cluster_task_s(r->c, node, r->stage_of[node], task->kind);
	note_collision(r, task, w->delayed_by);
	if (task->kind == TASK_FORWARD)
		n->started[n->n_started++] = r->s->n_tasks;
	/* Gives the slot back at the start of a backward task (B) instead of at its end. The node
	 * starts no other task before that end, so no task can notice the difference. */
	n->n_holding += (task->kind == TASK_FORWARD) - (task->kind == TASK_BACKWARD);
	if (n->n_holding > r->s->peak_slots[node])
		r->s->peak_slots[node] = n->n_holding;
	r->s->busy_s[node] += task->end_s - task->start_s;
	if (task->end_s > r->s->iteration_s)
		r->s->iteration_s = task->end_s;
	n->last = r->s->n_tasks++;
	n->busy = true;
	n->free_s = task->end_s + r->c->dispatch_overhead_s;
	heap_push(r, &r->events, -1 - node, is_earlier);
	send_on(r, mb, node, task->end_s);
}

/* Starts the best waiting task that may start, on a node that is free. The microbatches that have
 * just arrived record what delays them: the task that starts or, if no task may start, the
 * microbatch that has held a slot longest. */
static void start_best(struct simulated_run *r, int node)
{
	struct node_state *n = &r->nodes[node];
	bool has_slot = n->n_holding < r->c->nodes[node].memory;
	struct heap *from = &n->others;
	int why;

	if (n->forwards.n > 0 && has_slot &&
	    (n->others.n == 0 || is_served_first(r, n->forwards.list[0], n->others.list[0])))
		from = &n->forwards;
	if (from->n > 0)
		start_task(r, node, heap_pop(r, from, is_served_first));
	why = n->busy ? n->last : oldest_holder(r, n);
	for (; n->arrived >= 0; n->arrived = r->microbatches[n->arrived].next_arrived)
		r->microbatches[n->arrived].delayed_by = why;
}

static void mark_dirty(struct simulated_run *r, int node)
{
	if (!r->nodes[node].dirty) {
		r->nodes[node].dirty = true;
		r->dirty[r->n_dirty++] = node;
	}
}

static void take_microbatch_in(struct simulated_run *r, int mb)
{
	const struct plan_microbatch *path = &r->p->microbatches[mb];
	struct microbatch_state *m = &r->microbatches[mb];
	int node = step_node(path, m->step);
	struct node_state *n = &r->nodes[node];
	bool is_forward = step_kind(path, m->step) == TASK_FORWARD;

	heap_push(r, is_forward ? &n->forwards : &n->others, mb, is_served_first);
	m->delayed_by = n->busy ? n->last : -1;
	if (!n->busy) {
		m->next_arrived = n->arrived;
		n->arrived = mb;
	}
	mark_dirty(r, node);
}

static void take_in(struct simulated_run *r, int event)
{
	if (event < 0) {
		r->nodes[-1 - event].busy = false;
		mark_dirty(r, -1 - event);
	} else {
		take_microbatch_in(r, event);
	}
}

static void run_events(struct simulated_run *r)
{
	while (r->events.n > 0) {
		r->now_s = event_s(r, r->events.list[0]);
		r->n_dirty = 0;
		while (r->events.n > 0 && event_s(r, r->events.list[0]) == r->now_s)
			take_in(r, heap_pop(r, &r->events, is_earlier));
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

/* Fills in the priorities. An entry of the plan's order is ignored if its node has no such
 * task. */
static void fill_priorities(struct simulated_run *r)
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

/* Allocates a run. Each list of a node has room for every microbatch that visits the node: all of
 * these microbatches can wait there at once, and all of them start there. */
static void run_alloc(struct simulated_run *r)
{
	size_t n = (size_t)r->c->n_nodes, m = (size_t)r->p->n_microbatches, visits = 0;
	int *room;

	for (size_t i = 0; i < m; i++) {
		visits += (size_t)r->p->microbatches[i].length;
		if (task_count(&r->p->microbatches[i]) > r->steps)
			r->steps = task_count(&r->p->microbatches[i]);
	}
	r->nodes = arena_array(&r->arena, n, sizeof(*r->nodes));
	r->stage_of = arena_array(&r->arena, n, sizeof(*r->stage_of));
	plan_stages(r->p, (int)n, r->stage_of);
	r->microbatches = arena_array(&r->arena, m + 1, sizeof(*r->microbatches));
	room = arena_array(&r->arena, 3 * visits + 1, sizeof(*room));
	r->events.list = arena_array(&r->arena, m + n + 1, sizeof(*r->events.list));
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
			r->nodes[r->p->microbatches[i].path[h]].n_started++;
	}
	for (size_t i = 0; i < n; i++) {
		struct node_state *node = &r->nodes[i];
		int visits_here = node->n_started;

		*node = (struct node_state){ .last = -1,
					     .arrived = -1,
					     .forwards.list = room,
					     .others.list = room + visits_here,
					     .started = room + 2 * visits_here };
		room += 3 * visits_here;
	}
}

/* Writes to err the first few waiting microbatches, and the microbatches that hold the slots. */
static int report_standstill(const struct simulated_run *r, struct error *err)
{
	char who[400] = "";
	int named = 0, stuck = r->p->n_microbatches - r->done;

	for (int node = 0; node < r->c->n_nodes && named < 4; node++) {
		struct node_state *n = &r->nodes[node];
		size_t used = strlen(who);
		int holder = oldest_holder(r, n);

		if (n->forwards.n == 0)
			continue;
		snprintf(who + used, sizeof(who) - used,
			 "%s microbatch %d waits for a slot of node %d", named++ ? ";" : "",
			 r->p->microbatches[n->forwards.list[0]].id, node);
		used = strlen(who);
		if (holder >= 0)
			snprintf(who + used, sizeof(who) - used, " (held by %d)",
				 r->p->microbatches[r->s->tasks[holder].microbatch].id);
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

/* Computes the two results that include the sums of gradients. sync_s is the duration of the
 * longest sum; here all stages begin their sums after the iteration. total_s is the time at which
 * the last sum ends; here each stage begins its sum after its own last task. */
static void sum_gradients(const struct simulated_run *r)
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

/* Adds up the figures of a complete run. Exposure counts visits by the assigned stages; idle time
 * counts nodes that have a stage. */
static void sum_up_run(struct simulated_run *r)
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
	struct simulated_run r = { .c = c, .p = p };
	int rc = check_runnable(c, p, err);

	if (rc != 0)
		return rc;
	r.s = simulation_alloc(c, p);
	run_alloc(&r);
	for (int i = 0; i < p->n_microbatches; i++) {
		r.microbatches[i].arrival_s = p->microbatches[i].release_s;
		heap_push(&r, &r.events, i, is_earlier);
	}
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
