/* Tests the emulated network and the emulated computing times with complete agents. Tasks and
 * transfers must take the configured times, also with injected slowness, losses and cuts. */

#include <stdlib.h>

#include "agent/execution/tasks.h"
#include "agent/shared/job.h"
#include "agent/tests/cluster.h"
#include "agent/tests/lone_agent.h"
#include "base/clock.h"
#include "base/tests/test.h"

static const struct msg_task_event *find_event(const struct cluster *c, uint8_t type, uint32_t m,
					       uint32_t position)
{
	const struct route *r = &c->now.routes[m];

	for (uint32_t i = 0; i < c->now.n_events; i++)
		if (c->now.events[i].type == type && c->now.events[i].microbatch == m &&
		    c->now.events[i].kind == route_kind(r, position) &&
		    c->now.events[i].node == route_node(r, position))
			return &c->now.events[i];
	fail_msg("no event %u of microbatch %u at position %u", type, m, position);
	return NULL;
}

/* Checks that no event is earlier than the emulated times allow. Later events are accepted, because
 * the test's machine may be slow. */
static void check_times(const struct cluster *c, double factor)
{
	int64_t task_us = (int64_t)(c->options.task_s * c->options.time_scale * 1e6);

	for (uint32_t m = 0; m < c->now.n_batches; m++)
		for (uint32_t t = 0; t <= 2 * c->now.routes[m].n_hops; t++) {
			const struct msg_task_event *s = find_event(c, WORK_STARTS, m, t);
			const struct msg_task_event *e = find_event(c, WORK_ENDS, m, t);
			int64_t back = route_kind(&c->now.routes[m], t) == TASK_BACKWARD ? 2 : 1;
			uint16_t at = route_node(&c->now.routes[m], t), to;
			int64_t delay_us;

			assert_true(e->at_us - s->at_us >= back * task_us);
			assert_true(s->at_us >= s->arrived_us);
			if (t == 2 * c->now.routes[m].n_hops)
				break;
			to = route_node(&c->now.routes[m], t + 1);
			delay_us = to == at ? 0
					    : (int64_t)((double)c->options.delay_s[to] *
							c->options.time_scale * factor * 1e6);
			s = find_event(c, WORK_STARTS, m, t + 1);
			assert_true(s->arrived_us >= e->at_us + delay_us);
		}
}

/* Checks that each node runs one task at a time. Also checks that a node reports each waiting task
 * once, with the microbatch that delays it. */
static void check_order(const struct cluster *c)
{
	for (uint16_t node = 0; node < c->n_nodes; node++) {
		int64_t free_at = 0;

		for (uint32_t i = 0; i < c->now.n_events; i++) {
			const struct msg_task_event *e = &c->now.events[i];

			if (e->node != node || e->type == WORK_WAITS)
				continue;
			assert_true(e->at_us >= free_at);
			free_at = e->at_us;
			if (e->type == WORK_ENDS)
				free_at += (int64_t)(c->options.overhead_s * c->options.time_scale *
						     1e6);
		}
	}
	for (uint32_t i = 0; i < c->now.n_events; i++) {
		const struct msg_task_event *e = &c->now.events[i], *w;

		if (e->type == WORK_WAITS)
			assert_true(e->blocker != UINT32_MAX);
		if (e->type != WORK_STARTS || e->blocker == UINT32_MAX)
			continue;
		for (w = c->now.events; w < e; w++)
			if (w->type == WORK_WAITS && w->node == e->node && w->kind == e->kind &&
			    w->microbatch == e->microbatch)
				break;
		assert_true(w < e);
		assert_true(w->blocker == e->blocker && w->at_us == e->arrived_us);
	}
}

TEST(test_emulation)
{
	struct cluster *c = cluster_make(6, cluster_six);
	uint32_t waits = 0;

	c->options.time_scale = 0.01;
	c->options.task_s = 0.3;
	c->options.overhead_s = 0.1;
	for (uint32_t i = 0; i < 6; i++) {
		c->options.delay_s[i] = 0.2f + 0.1f * (float)i;
		c->options.sync_s[i] = 0.5f;
	}
	cluster_gather(c);
	cluster_route_six(c);
	cluster_iterate(c);
	check_times(c, 1);
	check_order(c);
	for (uint32_t i = 0; i < c->now.n_events; i++)
		waits += c->now.events[i].type == WORK_WAITS;
	assert_true(waits > 0);
	/* All links are twice as slow, some tensors are lost, and transfers do not overlap. */
	for (uint32_t i = 0; i < 6; i++) {
		cluster_fault(c, i, 1, FAULT_SLOW_LINK, -1, 2);
		cluster_fault(c, i, 2, FAULT_LOSS, -1, 0.05f);
	}
	cluster_iterate(c);
	check_times(c, 2);
	check_order(c);
	for (uint32_t i = 0; i < 6; i++) {
		cluster_fault(c, i, 1, FAULT_NONE, -1, 0);
		cluster_fault(c, i, 2, FAULT_NONE, -1, 0);
	}
	assert_int_equal(cluster_troubles(c), 0);
	cluster_unmake(c);
}

/* Returns the sum of the prescribed times of the node's tasks, us. */
static uint64_t given_us(const struct cluster *c, uint32_t node)
{
	int64_t task_us = (int64_t)(c->options.task_s * c->options.time_scale * 1e6);
	int64_t sum = 0;

	for (uint32_t i = 0; i < c->now.n_events; i++)
		if (c->now.events[i].type == WORK_ENDS && c->now.events[i].node == node)
			sum += c->now.events[i].kind == TASK_BACKWARD ? 2 * task_us : task_us;
	return (uint64_t)sum;
}

/* Sends a PING. is_measured: true if the PING has the offset between the clocks of the agent and
 * the controller. The offset is 0 here. */
static void send_clock(struct cluster *c, bool is_measured)
{
	struct msg m = { .type = MSG_PING };

	m.u.ping.is_measured = is_measured;
	for (uint32_t i = 0; i < c->n_nodes; i++)
		cluster_send(c, i, &m);
	cluster_turns(c, 5);
}

/* A node's device counts as busy for the prescribed times of its tasks. While a tensor is on its
 * way, the device counts as waiting for the network. To compute the time of this wait, the node
 * must know the controller's clock. */
TEST(test_times_of_devices)
{
	struct cluster *c = cluster_make(6, cluster_six);

	c->options.time_scale = 0.01;
	c->options.task_s = 0.3;
	for (uint32_t i = 0; i < 6; i++)
		c->options.delay_s[i] = 0.5f;
	cluster_gather(c);
	cluster_route_six(c);
	for (int k = 0; k < 3; k++) {
		int64_t began_us = clock_monotonic_us();

		send_clock(c, k > 0);
		cluster_iterate(c);
		for (uint32_t i = 0; i < 6; i++) {
			const struct device_time *t = &c->nodes[i].committed.spent;

			assert_int_equal(t->us[DEVICE_BUSY], given_us(c, i));
			assert_true(t->us[DEVICE_HOST] > 0); /* adding the sums of gradients */
			/* In the first iteration the clock of the controller is not known. */
			assert_true(k == 0 ? t->us[DEVICE_NETWORK] == 0
					   : t->us[DEVICE_NETWORK] > 0);
			assert_true(k > 0 || device_time_total_us(t) <=
						     (uint64_t)(clock_monotonic_us() - began_us));
		}
	}
	assert_int_equal(cluster_troubles(c), 0);
	cluster_unmake(c);
}

/* If a task starts later than it could, the delay counts as time of the host. While the task waits
 * for its planned end, the loop may ask for another job. This must change nothing. */
TEST(a_late_start_is_time_of_the_host)
{
	enum { SECOND = 1000000, LATE_US = 300000 };
	/* The route has one hop, so the next task runs on this node too. */
	const struct route r = { .n_hops = 1 };
	struct agent *a = lone_agent_new(0, 1);
	struct tasks *tasks = a->modules.tasks;
	struct device_clock *clock = a->modules.device_clock;
	struct device_time t;
	struct error err;
	struct job job;

	assert_int_equal(model_preset("tiny", &a->run.config, NULL, &err), 0);
	a->held.standing = STAND_READY;
	a->run.welcome.time_scale = 1;
	a->run.welcome.forward_s = 0.5;
	assert_int_equal(tasks_begin_run(tasks, 1), 0);
	device_clock_begin(clock, SECOND);
	tasks_arrive(tasks, &r, 0, false, (struct tensor_bytes){ 0 }, SECOND);
	assert_true(tasks_next_job(tasks, &job, SECOND + LATE_US));
	job.began_us = SECOND + LATE_US;
	job.ended_us = job.began_us + 1;
	job.task.out.at = malloc(sizeof(float));
	tasks_job_done(tasks, &job, job.ended_us);
	assert_false(tasks_next_job(tasks, &job, job.ended_us + 1));
	tasks_end_due(tasks, 9 * SECOND);
	assert_int_equal(tasks_done(tasks), 1);
	device_clock_end(clock, 9 * SECOND);
	t = device_clock_last(clock);
	assert_int_equal(t.us[DEVICE_HOST], LATE_US);
	assert_true(t.us[DEVICE_BUSY] > LATE_US);
	tasks_end_run(tasks);
	lone_agent_free(a);
}

TEST(test_slow_node_and_ranks)
{
	struct cluster *c = cluster_make(6, cluster_six);
	uint32_t last = UINT32_MAX;

	c->options.time_scale = 0.01;
	c->options.task_s = 0.3;
	cluster_gather(c);
	cluster_route_six(c);
	/* Data node 0 has four microbatches and two slots. The ranks decide in which order the
	 * microbatches start. */
	for (uint32_t i = 0; i < 8; i++)
		c->now.ranks[c->now.n_ranks++] = (struct msg_rank){ 7 - i, TASK_FORWARD };
	cluster_fault(c, 0, 1, FAULT_SLOW_NODE, -1, 3);
	cluster_iterate(c);
	for (uint32_t i = 0; i < c->now.n_events; i++) {
		const struct msg_task_event *e = &c->now.events[i], *s = e;

		if (e->node != 0)
			continue;
		if (e->type == WORK_STARTS && e->kind == TASK_FORWARD) {
			assert_true(e->microbatch < last);
			last = e->microbatch;
		}
		if (e->type != WORK_ENDS)
			continue;
		while (s->node != 0 || s->type != WORK_STARTS || s->kind != e->kind ||
		       s->microbatch != e->microbatch)
			s--;
		assert_true(e->at_us - s->at_us >= 9000 * (e->kind == TASK_BACKWARD ? 2 : 1));
	}
	assert_int_equal(last, 0);
	cluster_unmake(c);
}

TEST(test_partition)
{
	struct cluster *c = cluster_of_six();

	/* Node 2 cannot send to its data nodes until the fault is healed. */
	cluster_fault(c, 2, 8, FAULT_PARTITION, -1, 0);
	cluster_start(c);
	cluster_turns(c, 200);
	assert_false(cluster_through(c, 0));
	assert_false(cluster_through(c, 3));
	assert_true(c->nodes[2].beat.in_flight > 0);
	/* Node 2 reports the stuck link until the link is healed. */
	for (int i = 0; i < 4000 && c->nodes[2].beat.n_stuck == 0; i++)
		cluster_turns(c, 1);
	assert_true(c->nodes[2].beat.n_stuck > 0);
	assert_int_equal(c->nodes[1].beat.n_stuck, 0);
	cluster_fault(c, 2, 8, FAULT_NONE, -1, 0);
	cluster_finish(c);
	for (int i = 0; i < 4000 && c->nodes[2].beat.n_stuck > 0; i++)
		cluster_turns(c, 1);
	assert_int_equal(c->nodes[2].beat.n_stuck, 0);
	cluster_unmake(c);
}
