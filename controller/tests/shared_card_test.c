/* shared_card_test.c - predictions for agents that share a GPU. The planner's prediction is
 * compared with an independent simulation, in which the running tasks of a GPU progress at equal
 * shares of its speed. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tests/test.h"
#include "controller/planning/drift.h"
#include "controller/tests/bare.h"

enum { MOST = 6 };

/* The stages of a run's agents, and the GPU of each. */
struct layout {
	/* microbatches: number of each data node's microbatches */
	int agents, stages, microbatches;
	int card_of[MOST]; /* number of each agent's GPU; -1: a CPU */
	uint32_t cores;
	double delay_s;
};

static struct cluster *cluster_of(const struct layout *l)
{
	struct cluster *c = cluster_alloc(l->agents, l->stages, false);
	int each = l->agents / l->stages;

	assert_non_null(c);
	c->microbatches_per_data_node = l->microbatches;
	for (int s = 0; s < l->stages; s++)
		c->stages[s] = each;
	for (int i = 0; i < l->agents * l->agents; i++)
		c->delay_s[i] = l->delay_s;
	for (int i = 0; i < l->agents; i++) {
		c->nodes[i].forward_s = 0.005;
		c->nodes[i].backward_s = 0.009;
		c->nodes[i].loss_s = 0.003;
		c->nodes[i].stage = i / each;
		c->nodes[i].memory = 4;
	}
	return c;
}

static struct controller *controller_of(const struct layout *l)
{
	struct controller *c = bare_controller(cluster_of(l), (uint32_t)l->stages);

	for (int i = 0; i < l->agents; i++) {
		struct member *m = &c->members.list[i];

		strcpy(m->hello.machine, "one");
		m->hello.cores = l->cores;
		if (l->card_of[i] >= 0)
			snprintf(m->hello.card, sizeof(m->hello.card), "0000:%02d:00.0",
				 l->card_of[i]);
		m->compute.alone_forward_s = c->run.cluster->nodes[i].forward_s;
		m->compute.pace = 1;
	}
	return c;
}

/* ---- the independent simulation ---- */

struct task {
	/* before: previous task of the microbatch; node_before: previous task of the node; -1:
	 * none. The task can only start when both have ended */
	int before, node_before;
	int node, microbatch, position;
	double left_s, ready_s;
	bool runs, has_ended;
};

static int find_position(const struct plan *p, const struct sim_task *t)
{
	int hops = p->microbatches[t->microbatch].length;

	return t->kind == TASK_FORWARD ? t->hop : t->kind == TASK_LOSS ? hops : 2 * hops - t->hop;
}

/* Makes the tasks in the order of the trace, with the times from the cluster. */
static struct task *tasks_of(const struct cluster *c, const struct plan *p,
			     const struct simulation *s)
{
	struct task *tasks = alloc_array((size_t)s->n_tasks, sizeof(*tasks));

	for (int i = 0; i < s->n_tasks; i++) {
		const struct sim_task *t = &s->tasks[i];

		tasks[i] = (struct task){ -1, -1, t->node, t->microbatch, find_position(p, t),
					  cluster_task_s(c, t->node, c->nodes[t->node].stage,
							 t->kind),
					  0, false, false };
	}
	for (int i = 0; i < s->n_tasks; i++)
		for (int k = 0; k < s->n_tasks; k++) {
			if (tasks[k].microbatch == tasks[i].microbatch &&
			    tasks[k].position + 1 == tasks[i].position)
				tasks[i].before = k;
			if (k < i && tasks[k].node == tasks[i].node)
				tasks[i].node_before = k;
		}
	return tasks;
}

static bool may_run(const struct task *tasks, const struct task *t)
{
	return !t->has_ended && (t->before < 0 || tasks[t->before].has_ended) &&
	       (t->node_before < 0 || tasks[t->node_before].has_ended);
}

/* Returns the speed of a task: its share of the GPU. */
static double speed_of(const struct layout *l, const struct task *tasks, int n,
		       const struct task *t)
{
	int on_card = 0;

	for (int i = 0; i < n; i++)
		on_card += tasks[i].runs && l->card_of[tasks[i].node] == l->card_of[t->node];
	return l->card_of[t->node] < 0 ? 1 : 1.0 / on_card;
}

/* Advances the time until a task ends or an input arrives. Returns the new time. */
static double step(const struct layout *l, struct task *tasks, int n, double now_s)
{
	double least_s = INFINITY, speeds[1024];

	for (int i = 0; i < n; i++) {
		tasks[i].runs = may_run(tasks, &tasks[i]) && tasks[i].ready_s <= now_s + 1e-12;
		if (!tasks[i].runs && may_run(tasks, &tasks[i]))
			least_s = fmin(least_s, tasks[i].ready_s - now_s);
	}
	for (int i = 0; i < n; i++) {
		speeds[i] = tasks[i].runs ? speed_of(l, tasks, n, &tasks[i]) : 0;
		if (tasks[i].runs)
			least_s = fmin(least_s, tasks[i].left_s / speeds[i]);
	}
	now_s += least_s;
	for (int i = 0; i < n; i++) {
		tasks[i].left_s -= least_s * speeds[i];
		if (!tasks[i].runs || tasks[i].left_s > 1e-12)
			continue;
		tasks[i].has_ended = true;
		for (int k = 0; k < n; k++)
			if (tasks[k].before == i)
				tasks[k].ready_s = now_s + (tasks[k].node == tasks[i].node
								    ? 0
								    : l->delay_s);
	}
	return now_s;
}

static double shared_s(const struct layout *l, const struct cluster *c, const struct plan *p,
		       const struct simulation *s)
{
	struct task *tasks = tasks_of(c, p, s);
	double now_s = 0;

	assert_true(s->n_tasks <= 1024);
	for (int ended = 0; ended < s->n_tasks;) {
		now_s = step(l, tasks, s->n_tasks, now_s);
		ended = 0;
		for (int i = 0; i < s->n_tasks; i++)
			ended += tasks[i].has_ended;
	}
	free(tasks);
	return now_s;
}

/* ---- tests ---- */

/* Predicts the iteration time in three ways. alone_s: planned as if each agent had its own GPU.
 * planned_s: planned with the shared GPUs. really_s: by the independent simulation. */
static void predict_all(const struct layout *l, double *alone_s, double *planned_s,
			double *really_s)
{
	struct controller *c = controller_of(l);
	struct cluster *alone = cluster_copy(c->run.cluster);
	struct plan_request q;
	struct plan *p;
	struct simulation *s;
	struct error err;

	c->run.options.cluster.time_scale = 0;
	plan_request_init(&q);
	q.path_length = l->stages;
	q.evaluations = 100;
	assert_int_equal(plan_search(alone, &q, &p, &err), 0);
	assert_int_equal(simulate(alone, p, &s, &err), 0);
	*alone_s = s->iteration_s;
	*really_s = shared_s(l, alone, p, s);
	simulation_free(s);
	drift_guess_pace(&c->planning, p);
	assert_int_equal(simulate(c->run.cluster, p, &s, &err), 0);
	*planned_s = s->iteration_s;
	simulation_free(s);
	plan_free(p);
	cluster_free(alone);
	bare_free(c);
}

static const struct layout shared[] = {
	{ 2, 2, 8, { 0, 0 }, 48, 0.001 },
	{ 2, 2, 8, { 0, 0 }, 48, 0.02 },
	{ 3, 3, 12, { 0, 0, 0 }, 48, 0.002 },
	{ 4, 2, 6, { 0, 0, 1, 1 }, 48, 0.002 },
	{ 4, 2, 6, { 0, 1, 0, 1 }, 48, 0.002 },
	{ 6, 3, 6, { 0, 0, 0, 0, 0, 0 }, 48, 0.0005 },
};

TEST(agents_on_one_card_are_planned_as_sharing_it)
{
	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
		double alone_s, planned_s, really_s;

		predict_all(&shared[i], &alone_s, &planned_s, &really_s);
		assert_true(planned_s > 0.85 * really_s && planned_s < 1.15 * really_s);
		assert_true(planned_s > alone_s);
	}
}

TEST(agents_with_cards_of_their_own_share_nothing)
{
	struct layout own = { 4, 2, 6, { 0, 1, 2, 3 }, 2, 0.002 };
	double alone_s, planned_s, really_s;

	predict_all(&own, &alone_s, &planned_s, &really_s);
	assert_true(planned_s == alone_s && fabs(really_s - alone_s) < 1e-9);
}
