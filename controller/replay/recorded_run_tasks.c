/* recorded_run_tasks.c - reads an iteration's tasks, its plan and its cluster.
 *
 * Most rows of a recorded run are tasks. They are therefore read one iteration at a time, when a
 * cursor reaches the iteration. The store has one row for each task, but a console expects the
 * events of a live run. Therefore each row is split into three events, wait, start and end, and the
 * slots in use are counted again. */
#include "controller/replay/recorded_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Task events read so far. */
struct gathering {
	const struct recorded_run *r;
	LIST(struct msg_task_event) events;
	int64_t shift_us;
};

/* Appends the events of a task. For a task that never ended, the store has the start time as the
 * end time. */
static int see_task(void *context, const struct store_task *t)
{
	struct gathering *g = context;
	enum task_kind kind = TASK_FORWARD;
	bool known = task_kind_parse(t->kind, &kind);
	struct msg_task_event e = {
		.kind = (uint8_t)kind, .node = t->node, .blocker_node = t->node,
		.microbatch = t->microbatch, .attempt = t->attempt,
		.blocker = t->waited_for < 0 ? UINT32_MAX : (uint32_t)t->waited_for,
		.arrived_us = t->arrived_us + g->shift_us,
	};

	if (!known || t->node >= g->r->n_nodes || t->microbatch >= MSG_MICROBATCHES)
		return -EBADMSG;
	if (t->waited_for >= 0 && t->arrived_us < t->start_us) {
		e.type = WORK_WAITS;
		e.at_us = e.arrived_us;
		*LIST_ADD(&g->events) = e;
	}
	e.type = WORK_STARTS;
	e.at_us = t->start_us + g->shift_us;
	*LIST_ADD(&g->events) = e;
	if (t->end_us > t->start_us) {
		e.type = WORK_ENDS;
		e.at_us = t->end_us + g->shift_us;
		e.blocker = UINT32_MAX;
		e.counted = t->counted;
		*LIST_ADD(&g->events) = e;
	}
	return 0;
}

/* Compares two events by time. For events of a node at the same time, ends come first, then
 * waits, then starts. */
static int by_time(const void *a, const void *b)
{
	static const int turn[] = { [WORK_WAITS] = 1, [WORK_STARTS] = 2, [WORK_ENDS] = 0 };
	const struct msg_task_event *x = a, *y = b;

	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->type != y->type)
		return turn[x->type] - turn[y->type];
	if (x->microbatch != y->microbatch)
		return x->microbatch < y->microbatch ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

/* Counts the slots in use on a node after each event. A microbatch takes a slot from the start of
 * its forward task to the end of its backward task. If a node starts the same forward task again,
 * the microbatch was restarted, which frees its slots on all nodes. */
static int count_slots(const struct recorded_run *r, struct msg_task_event *events, uint32_t n)
{
	size_t microbatches = r->n_microbatches;
	uint8_t *held = alloc_array(microbatches * r->n_nodes, 1);
	uint8_t *slots = alloc_array(r->n_nodes, 1);
	bool *begun = alloc_array(microbatches * r->n_nodes, sizeof(*begun));
	int rc = 0;

	for (uint32_t i = 0; i < n && rc == 0; i++) {
		struct msg_task_event *e = &events[i];
		uint8_t *row;
		bool *first, again;

		if (e->microbatch >= microbatches) {
			rc = -EBADMSG;
			break;
		}
		row = &held[e->microbatch * (size_t)r->n_nodes];
		first = &begun[e->microbatch * (size_t)r->n_nodes];
		again = e->kind == TASK_FORWARD && e->type == WORK_STARTS && first[e->node];
		for (uint32_t k = 0; again && k < r->n_nodes; k++) {
			slots[k] = (uint8_t)(slots[k] - row[k]);
			row[k] = first[k] = 0;
		}
		if (e->kind == TASK_FORWARD && e->type == WORK_STARTS)
			first[e->node] = true;
		if (e->kind == TASK_FORWARD && e->type == WORK_STARTS && !row[e->node]) {
			row[e->node] = 1;
			slots[e->node]++;
		} else if (e->kind == TASK_BACKWARD && e->type == WORK_ENDS && row[e->node]) {
			row[e->node] = 0;
			slots[e->node]--;
		}
		e->slots = slots[e->node];
	}
	free(held);
	free(begun);
	free(slots);
	return rc;
}

int recorded_run_tasks(const struct recorded_run *r, uint64_t iteration,
		       struct msg_task_event **out, uint32_t *n, struct error *err)
{
	struct gathering g = { .r = r };
	int rc = 0;

	if (iteration >= 1 && iteration <= r->iterations.n) {
		g.shift_us = r->shifts[iteration - 1];
		rc = store_each_task(r->store, iteration, see_task, &g, err);
	}
	if (rc == 0 && g.events.n > 0) {
		qsort(g.events.list, g.events.n, sizeof(*g.events.list), by_time);
		rc = count_slots(r, g.events.list, (uint32_t)g.events.n);
	}
	if (rc != 0) {
		free(g.events.list);
		return rc == -EBADMSG
			       ? error_set(err, rc, "the tasks of iteration %llu are damaged",
					   (unsigned long long)iteration)
			       : rc;
	}
	*out = g.events.list;
	*n = (uint32_t)g.events.n;
	return 0;
}

/* ---- plans ---- */

static void believe_recorded(struct cluster *c, const struct recorded_belief *b)
{
	struct cluster_node *n = &c->nodes[b->node];

	if (b->to >= 0) {
		c->delay_s[b->node * c->n_nodes + b->to] = b->forward_s;
		return;
	}
	n->forward_s = b->forward_s;
	n->backward_s = b->backward_s;
	n->loss_s = b->loss_s;
}

struct tensor_formats recorded_run_formats(const struct recorded_run *r, size_t n_committed)
{
	const struct msg_see_iteration *last =
		r->iterations.n == 0
			? NULL
			: &r->iterations.list[n_committed < r->iterations.n ? n_committed
									    : r->iterations.n - 1];

	return last ? (struct tensor_formats){ (enum tensor_format)last->wire,
					       (enum tensor_format)last->sum_wire }
		    : r->run->formats;
}

/* Each controller starts from the cluster as described, without the corrections of earlier
 * controllers. */
struct cluster *recorded_run_cluster(const struct recorded_run *r, size_t upto)
{
	struct cluster *c = cluster_copy(r->parts.list[0].cluster);
	struct tensor_formats formats = recorded_run_formats(r, 0);

	cluster_reformat(c, &formats);

	for (size_t i = 0; i < upto; i++) {
		const struct happening *h = &r->happenings.list[i];

		if (h->kind == HAPPENED_BELIEF)
			believe_recorded(c, &r->beliefs.list[h->index]);
		if (h->kind == HAPPENED_COMMIT) {
			formats = recorded_run_formats(r, h->index + 1);
			cluster_reformat(c, &formats);
		}
		if (h->kind != HAPPENED_CONTROLLER)
			continue;
		cluster_free(c);
		c = cluster_copy(r->parts.list[h->index].cluster);
		cluster_reformat(c, &formats);
	}
	return c;
}

/* Returns the index of the happening with which the plan took effect. */
static size_t when_planned(const struct recorded_run *r, size_t plan)
{
	size_t i = 0;

	while (i < r->happenings.n &&
	       (r->happenings.list[i].kind != HAPPENED_PLAN || r->happenings.list[i].index != plan))
		i++;
	return i;
}

int recorded_run_planned(const struct recorded_run *r, size_t plan, struct planned **out,
		      struct error *err)
{
	const struct recorded_plan *from = &r->plans.list[plan];
	struct planned *p = alloc_new(sizeof(*p));
	struct cluster *c = recorded_run_cluster(r, when_planned(r, plan));
	int rc = plan_parse(from->text, strlen(from->text), &p->plan, err);

	if (rc == 0)
		rc = simulate(c, p->plan, &p->trace, err);
	cluster_free(c);
	if (rc != 0) {
		planned_free(p);
		return error_prefix(err, rc, "plan %llu", (unsigned long long)from->epoch);
	}
	p->epoch = from->epoch;
	p->iteration = from->iteration;
	p->elapsed_s = p->plan->search.elapsed_s;
	snprintf(p->reason, sizeof(p->reason), "%s", from->reason);
	*out = p;
	return 0;
}
