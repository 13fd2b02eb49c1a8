/* Tests that a new controller can restart the iteration, because agents report their state. */

#include <stdio.h>
#include <string.h>

#include "agent/state.h"
#include "agent/tests/cluster.h"
#include "base/tests/test.h"

TEST(test_controller_restart)
{
	struct cluster *c = cluster_of_six();

	cluster_iterate(c);
	cluster_start(c);
	cluster_until(c, cluster_three_has_counted, "some work");
	/* Cuts all links between agents, so that tensors sent from now on arrive after the
	 * restart. */
	for (uint32_t i = 0; i < c->n_nodes; i++)
		cluster_fault(c, i, 1, FAULT_PARTITION, -1, 0);
	cluster_turns(c, 20);
	cluster_restart_controller(c);
	cluster_until(c, cluster_all_sent_hello, "hello to the new controller");
	for (uint32_t i = 0; i < c->n_nodes; i++) {
		assert_true(c->nodes[i].hello.run == 77);
		assert_int_equal(c->nodes[i].hello.committed, 1);
		assert_int_equal(c->nodes[i].hello.stage, cluster_six[i]);
		assert_true(c->nodes[i].hello.hash == c->nodes[i].committed.hash);
		cluster_welcome(c, i);
	}
	cluster_peers(c);
	/* Restarts the iteration. The new attempts are higher than the attempts of all messages
	 * in flight. */
	c->now.iteration--;
	for (uint32_t m = 0; m < c->now.n_batches; m++)
		c->now.routes[m].attempt += 1 << 16;
	cluster_start(c);
	cluster_turns(c, 20);
	for (uint32_t i = 0; i < c->n_nodes; i++)
		cluster_fault(c, i, 1, FAULT_NONE, -1, 0);
	cluster_finish(c);
	cluster_iterate(c);
	cluster_unmake(c);
}

static bool third_is_ready(struct cluster *c)
{
	return c->nodes[2].ready;
}

static bool third_has_started(struct cluster *c)
{
	return c->nodes[2].beat.iteration == c->now.iteration;
}

/* Orders node 2 to make stage 1 as an average of neighbouring stages. The average has a single
 * source, stage 2 of node 4. */
static void make_of_neighbours(struct cluster *c)
{
	static const uint16_t from[] = { 4 };
	static const uint8_t stages[] = { 2 };
	static const float weights[] = { 1 };
	static const uint64_t hashes[] = { 0 };
	struct msg m = { .type = MSG_RESTORE };

	m.u.restore = (struct msg_restore){ .assignment = ++c->assignments,
					    .stage = 1,
					    .kind = RESTORE_AVERAGE,
					    .iteration = 1,
					    .n_from = 1,
					    .nodes = from,
					    .stages = stages,
					    .weights = weights,
					    .hashes = hashes };
	c->nodes[2].ready = false;
	cluster_send(c, 2, &m);
	cluster_until(c, third_is_ready, "a stage made of another");
}

/* A controller may die before it records a restored stage, whose weights belong to no commit. A
 * new controller would then not know these weights. Therefore an agent reports restored weights
 * to a new controller only after an iteration has started with these weights. */
TEST(test_restored_weights_are_reported_once_used)
{
	for (int used = 0; used < 2; used++) {
		struct cluster *c = cluster_of_six();

		cluster_iterate(c);
		make_of_neighbours(c);
		if (used) {
			cluster_start(c);
			cluster_until(c, third_has_started, "the next iteration");
		}
		cluster_restart_controller(c);
		cluster_until(c, cluster_all_sent_hello, "hello to the new controller");
		assert_int_equal(c->nodes[2].hello.run, used ? 77 : 0);
		assert_int_equal(c->nodes[3].hello.run, 77);
		cluster_unmake(c);
	}
}

/* Injects a fault that makes the node `faulty` send invalid numbers. Checks that all reports name
 * this node. */
static void check_report(enum tensor_format wire, uint32_t faulty)
{
	struct cluster *c = cluster_make(6, cluster_six);
	char name[16];

	c->options.wire = wire;
	snprintf(name, sizeof(name), "n%02u", faulty);
	cluster_gather(c);
	cluster_route_six(c);
	cluster_fault(c, faulty, 5, FAULT_CORRUPT, -1, 0);
	cluster_start(c);
	cluster_until(c, cluster_any_trouble, "a report");
	cluster_turns(c, 100);
	for (uint32_t i = 0; i < 6; i++)
		if (c->nodes[i].troubles > 0)
			assert_non_null(strstr(c->nodes[i].trouble, name));
	cluster_unmake(c);
}

TEST(test_impossible_numbers_are_reported)
{
	check_report(FORMAT_FP32, 2);
}

/* Node 2 sends NaN, and node 3 sends absurdly large numbers. */
TEST(test_impossible_numbers_in_other_formats_are_found)
{
	check_report(FORMAT_BF16, 2);
	check_report(FORMAT_BF16, 3);
	check_report(FORMAT_Q6, 2);
	check_report(FORMAT_Q6, 3);
}

static bool data_node_is_through(struct cluster *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->now.n_events; i++)
		n += c->now.events[i].node == 0 && c->now.events[i].type == WORK_ENDS;
	return n >= 1;
}

/* Node 0 sends invalid activations to node 3, which does not read them yet. The microbatches of
 * node 0 are then rerouted to node 2. Node 3 does not use the activations, so it must not report
 * their sender. The sender may have been repaired meanwhile. */
TEST(test_numbers_of_a_replaced_attempt_are_not_reported)
{
	struct cluster *c = cluster_of_six();
	struct agent *third;
	uint32_t changed;

	cluster_iterate(c); /* one iteration, which opens the sessions between the nodes */
	for (uint32_t m = 0; m < 8; m += 2)
		cluster_route(c, m, 2, (uint16_t[]){ 0, 3 });
	cluster_fault(c, 0, 5, FAULT_CORRUPT, -1, 0);
	cluster_start(c);
	third = c->nodes[3].agent;
	c->nodes[3].agent = NULL; /* node 3 runs no turn, so its messages wait */
	cluster_until(c, data_node_is_through, "a forward pass of node 0");
	c->nodes[3].agent = third;
	changed = cluster_without_three(c);
	cluster_reroute(c, changed, -1);
	c->nodes[3].agent = NULL;
	cluster_turns(c, 100); /* the new routes and the tensor now wait at node 3 */
	c->nodes[3].agent = third;
	cluster_turns(c, 200);
	assert_int_equal(c->nodes[3].troubles, 0);
	cluster_unmake(c);
}

/* An agent that continues after a suspension must wait for its controller as long as a new agent
 * would. In this test no message of the controller arrives. */
TEST(test_a_suspended_agent_waits_for_its_controller)
{
	struct cluster *c = cluster_of_six();
	struct agent *a = c->nodes[0].agent;
	int64_t now_us = a->tell.now_us + (int64_t)3600 * 1000000;

	agent_send(a, now_us);
	assert_false(a->tell.end.leaving);
	for (int second = 0; second < 59; second++) {
		now_us += 1000000;
		agent_send(a, now_us);
		assert_false(a->tell.end.leaving);
	}
	now_us += 1000000;
	agent_send(a, now_us);
	assert_true(a->tell.end.leaving);
	cluster_unmake(c);
}
