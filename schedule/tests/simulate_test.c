/* Tests the execution model: cases worked out by hand, published schedules, and rules that hold for
 * any trace. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tests/test.h"
#include "schedule/execution/check.h"
#include "schedule/execution/simulate.h"
#include "schedule/tests/fixture.h"

static struct simulation *run(const struct cluster *c, const struct plan *p)
{
	struct simulation *s = NULL;
	struct error err = { "" };

	if (simulate(c, p, &s, &err) != 0)
		fail_msg("%s", err.text);
	return s;
}

TEST(published_schedules_take_the_published_times)
{
	static const struct {
		const char *name;
		double seconds;
	} published[] = { { "published_ca.json", 33.03 }, { "published_nonca.json", 35.89 },
			  { "published_random.json", 48.76 } };
	struct cluster *c = fixture_cluster("shipped20.json");

	c->dispatch_overhead_s = 0.11;
	for (int i = 0; i < 3; i++) {
		struct plan *p = fixture_plan(published[i].name);
		struct simulation *s = run(c, p);
		struct check_report report;

		assert_true(fabs(s->iteration_s - published[i].seconds) < 0.005);
		check_plan(c, p, s, NULL, &report);
		assert_int_equal(report.n_breaches, 0);
		check_report_fini(&report);
		simulation_free(s);
		plan_free(p);
	}
	cluster_free(c);
}

/* Returns a cluster of two nodes, each with a stage of its own, for times that are worked out by
 * hand. each: number of microbatches. */
static struct cluster *pair(int memory, int each)
{
	struct cluster *c = cluster_alloc(2, 2, false);

	assert_non_null(c);
	c->stages[0] = c->stages[1] = 1;
	for (int i = 0; i < 2; i++) {
		c->nodes[i] = (struct cluster_node){
			.location = c->nodes[i].location,
			.stage = i,
			.forward_s = 1,
			.backward_s = 2,
			.loss_s = 0.5,
			.memory = memory,
		};
	}
	c->delay_s[1] = 0.25;
	c->delay_s[2] = 0.75;
	c->microbatches_per_data_node = each;
	c->dispatch_overhead_s = 0.125;
	return c;
}

static struct plan *pair_plan(int n)
{
	struct plan *p = plan_alloc(2, 2, n, 2);

	assert_non_null(p);
	p->stage_start[1] = 1;
	p->assigned[1] = 1;
	for (int i = 0; i < n; i++)
		p->microbatches[i].path[1] = 1;
	return p;
}

TEST(one_microbatch_by_hand)
{
	struct cluster *c = pair(1, 1);
	struct plan *p = pair_plan(1);
	struct simulation *s = run(c, p);

	/* Times by hand, in s: F 0-1, travel .25, F 1.25-2.25, travel .75, L 3-3.5, travel .25, B
	 * 3.75-5.75, travel .75, B 6.5-8.5 */
	assert_int_equal(s->n_tasks, 5);
	assert_true(s->iteration_s == 8.5);
	assert_true(s->tasks[2].start_s == 3 && s->tasks[2].kind == TASK_LOSS);
	assert_int_equal(s->collisions, 0);
	simulation_free(s);
	plan_free(p);
	cluster_free(c);
}

/* Two microbatches leave together and share a link. The second waits only for the time of the
 * first one's bytes, not for its whole delay. */
TEST(a_link_carries_one_activation_after_the_other)
{
	struct cluster *c = pair(2, 2);
	struct plan *p = pair_plan(2);
	struct simulation *s;

	c->dispatch_overhead_s = 0;
	c->nodes[1].forward_s = 0.125;
	c->delay_s[1] = c->delay_s[2] = 4;
	c->bytes_s = alloc_array(4, sizeof(*c->bytes_s));
	c->bytes_s[1] = 3; /* on the link back, the bytes take no time */
	/* Times by hand, in s, of microbatches 0 and 1. Node 0 runs F at 0-1 and 1-2. The link
	 * carries the bytes at 1-4 and 4-7, so the activations arrive at 5 and 8. Node 1 runs F for
	 * 0.125, and node 0 gets the outputs at 9.125 and 12.125. It runs L at 9.125-9.625 and
	 * 12.125-12.625. Node 1 runs B at 13.625-15.625 and 16.625-18.625, and node 0 B at
	 * 19.625-21.625 and 22.625-24.625. */
	s = run(c, p);
	assert_true(s->tasks[2].arrival_s == 5 && s->tasks[3].arrival_s == 8);
	assert_int_equal(s->collisions, 0);
	assert_true(s->iteration_s == 24.625);
	simulation_free(s);
	c->formats.wire = FORMAT_BF16; /* half of the bytes occupy the link for 1.5 s */
	s = run(c, p);
	assert_true(s->tasks[2].arrival_s == 5 && s->tasks[3].arrival_s == 6.5);
	simulation_free(s);
	free(c->bytes_s);
	c->bytes_s = NULL;
	s = run(c, p);
	assert_true(s->tasks[3].arrival_s == 6);
	simulation_free(s);
	plan_free(p);
	cluster_free(c);
}

TEST(waits_are_collisions_and_name_the_cause)
{
	struct cluster *c = pair(1, 2);
	struct plan *p = pair_plan(2);
	struct simulation *s = run(c, p);

	/* With one slot, the second microbatch starts after the first has finished at 8.5 s and
	 * after the overhead of 0.125 s. */
	assert_true(s->iteration_s == 8.625 + 8.5);
	assert_int_equal(s->collisions, 0); /* waiting for the first forward task is no collision */
	simulation_free(s);
	c->nodes[0].memory = 2;
	s = run(c, p);
	/* The forward task of the second microbatch arrives at node 1 at 1.125 + 1 + 0.25 s.
	 * Node 1 is idle then, but its one slot is held until the first microbatch's backward task
	 * ends. */
	assert_int_equal(s->peak_slots[0], 2);
	assert_int_equal(s->peak_slots[1], 1);
	for (int i = 0; i < s->n_tasks; i++) {
		const struct sim_task *t = &s->tasks[i];

		if (t->microbatch == 1 && t->node == 1 && t->kind == TASK_FORWARD) {
			assert_true(t->collided);
			assert_true(t->arrival_s == 2.375);
			assert_true(t->start_s == 3.75 + 2 + 0.125);
			assert_int_equal(s->tasks[t->waited_for].microbatch, 0);
		}
	}
	simulation_free(s);
	plan_free(p);
	cluster_free(c);
}

/* Each stage begins its sum when its own last task ends. The times for two replicas in stage 1 are
 * worked out by hand. */
TEST(sums_overlap_the_last_tasks)
{
	struct cluster *c = cluster_alloc(3, 2, true);
	struct plan *p = plan_alloc(2, 3, 1, 2);
	struct simulation *s;

	assert_true(c && p);
	c->stages[0] = 1;
	c->stages[1] = 2;
	for (int i = 0; i < 9; i++)
		c->delay_s[i] = c->sync_pair_s[i] = 0.5;
	for (int i = 0; i < 3; i++)
		c->nodes[i].forward_s = c->nodes[i].backward_s = c->nodes[i].loss_s = 1;
	memcpy(p->stage_start, (int[]){ 0, 1, 3 }, 3 * sizeof(int));
	memcpy(p->assigned, (int[]){ 0, 1, 2 }, 3 * sizeof(int));
	p->microbatches[0].path[1] = 2;
	/* Times in s: F 0-1, F 1.5-2.5, L 3-4, B 4.5-5.5, B 6-7. The sum of stage 1 takes 0.5 s. */
	s = run(c, p);
	assert_true(s->iteration_s == 7 && s->sync_s == 0.5 && s->total_s == 7);
	simulation_free(s);
	c->sync_pair_s[1 * 3 + 2] = 4; /* now the sum takes 4 s, from 5.5 on */
	s = run(c, p);
	assert_true(s->iteration_s == 7 && s->sync_s == 4 && s->total_s == 9.5);
	simulation_free(s);
	p->assigned[1] = 9;
	assert_int_equal(simulate(c, p, &s, NULL), -EINVAL);
	plan_free(p);
	cluster_free(c);
}

/* Microbatch A holds a slot of stage 1 and waits for a slot of stage 2; B holds a slot of stage 2
 * and waits for one of stage 1. */
TEST(circular_waits_are_a_standstill)
{
	struct cluster *c = cluster_alloc(4, 3, false);
	struct plan *p = plan_alloc(3, 4, 2, 3);
	struct simulation *s = NULL;
	struct error err = { "" };

	assert_true(c && p);
	c->stages[0] = 2;
	c->stages[1] = c->stages[2] = 1;
	for (int i = 0; i < 16; i++)
		c->delay_s[i] = 0.5;
	for (int i = 0; i < 4; i++)
		c->nodes[i].forward_s = c->nodes[i].backward_s = 1;
	memcpy(p->stage_start, (int[]){ 0, 2, 3, 4 }, 4 * sizeof(int));
	memcpy(p->assigned, (int[]){ 0, 1, 2, 3 }, 4 * sizeof(int));
	memcpy(p->visits, (int[]){ 0, 2, 3, 1, 3, 2 }, 6 * sizeof(int));
	p->microbatches[1].data_node = 1;
	assert_int_equal(simulate(c, p, &s, &err), -EDEADLK);
	assert_non_null(strstr(err.text, "standstill"));
	c->nodes[2].memory = 2;
	assert_int_equal(simulate(c, p, &s, &err), 0);
	simulation_free(s);
	plan_free(p);
	cluster_free(c);
}

TEST(impossible_plans_are_refused)
{
	struct cluster *c = pair(1, 1);
	struct plan *p = pair_plan(1);
	struct simulation *s = NULL;
	struct error err = { "" };

	p->microbatches[0].path[1] = 9;
	assert_int_equal(simulate(c, p, &s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "9"));
	p->microbatches[0].path[1] = 1;
	p->assigned[0] = 9; /* no path visits this node, but the sum of gradients uses it */
	assert_int_equal(simulate(c, p, &s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "unknown node 9"));
	p->assigned[0] = 0;
	c->delay_s[2] = -1;
	assert_int_equal(simulate(c, p, &s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "no link from node 1 to node 0"));
	plan_free(p);
	cluster_free(c);
}

/* Finds the task for which task t waits: the task that keeps the node busy when t arrives, or
 * otherwise the oldest forward task whose slot has not been given back. Returns its index. */
static int find_cause(const struct cluster *c, const struct simulation *s, const struct sim_task *t)
{
	int oldest = -1;

	for (int i = 0; i < s->n_tasks && s->tasks[i].start_s <= t->arrival_s; i++) {
		const struct sim_task *f = &s->tasks[i], *b = f;

		if (f->node != t->node)
			continue;
		if (f->end_s + c->dispatch_overhead_s > t->arrival_s)
			return i;
		while (b->microbatch != f->microbatch || b->hop != f->hop ||
		       b->kind != TASK_BACKWARD)
			b++;
		if (oldest < 0 && f->kind == TASK_FORWARD && b->start_s > t->arrival_s)
			oldest = i;
	}
	return oldest;
}

/* Checks the rules of the model task by task, on traces of random plans. */
TEST(traces_keep_the_model)
{
	struct rng r;

	rng_init(&r, 11);
	for (int round = 0; round < 300; round++) {
		struct fixture_shape shape = { .most_stages = 5, .most_replicas = 3,
					       .most_microbatches = 9, .most_memory = 3,
					       .grid = round % 2 };
		struct cluster *c = fixture_random_cluster(&r, &shape);
		int length = 1 + (int)rng_below(&r, (uint32_t)c->n_stages);
		struct plan *p = fixture_random_plan(&r, c, length);
		struct simulation *s = NULL;
		double last = 0;
		int rc;

		rc = simulate(c, p, &s, NULL);
		assert_true(rc == 0 || rc == -EDEADLK);
		for (int i = 0; rc == 0 && i < s->n_tasks; i++) {
			const struct sim_task *t = &s->tasks[i];

			assert_true(t->start_s >= t->arrival_s && t->start_s >= last);
			last = t->start_s;
			for (int k = i + 1; k < s->n_tasks; k++) {
				if (s->tasks[k].node == t->node) {
					assert_true(s->tasks[k].start_s >=
						    t->end_s + c->dispatch_overhead_s);
					break;
				}
			}
			if (t->start_s > t->arrival_s)
				assert_in_range(t->waited_for, 0, s->n_tasks - 1);
			/* If times lie on a grid, the node can become free just when t arrives.
			 * find_cause does not handle this case. */
			if (t->start_s > t->arrival_s && !shape.grid)
				assert_int_equal(t->waited_for, find_cause(c, s, t));
		}
		simulation_free(s);
		plan_free(p);
		cluster_free(c);
	}
}
