/* Tests that the result keeps all its bits if a node dies in mid-iteration and another node
 * joins. */
#include "agent/tests/cluster.h"
#include "base/tests/test.h"

static bool three_is_back(struct cluster *c)
{
	return c->nodes[3].said_hello;
}

static void join_three(struct cluster *c)
{
	cluster_start_agent(c, 3);
	cluster_until(c, three_is_back, "hello of the new node 3");
	assert_int_equal(c->nodes[3].hello.run, 0);
	cluster_welcome(c, 3);
	cluster_peers(c);
	cluster_assign(c, 3, 2);
	cluster_until(c, cluster_three_is_ready, "node 3 to have node 2's weights");
	assert_int_equal(c->nodes[3].ready_said.iteration, c->nodes[2].committed.iteration);
	assert_true(c->nodes[3].ready_said.hash == c->nodes[2].committed.hash);
}

/* Checks that no node has run the same task of a microbatch twice. */
static void nothing_was_done_twice(const struct cluster *c)
{
	for (uint32_t i = 0; i < c->now.n_events; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct msg_task_event *a = &c->now.events[i], *b = &c->now.events[k];

			assert_false(a->type == WORK_ENDS && b->type == WORK_ENDS &&
				     a->node == b->node && a->microbatch == b->microbatch &&
				     a->kind == b->kind);
		}
}

/* Node 3 dies after it has counted gradients. The microbatches of node 3 in this iteration run
 * again on node 2. */
static void finish_without_three(struct cluster *c)
{
	cluster_start(c);
	cluster_until(c, cluster_three_has_counted, "node 3 to count");
	cluster_kill(c, 3);
	cluster_reroute(c, cluster_without_three(c), 3);
	cluster_finish(c);
}

static void check_death_and_join(enum tensor_format wire, enum tensor_format sum_wire)
{
	struct cluster *c = cluster_make(6, cluster_six);

	c->options.wire = wire;
	c->options.sum_wire = sum_wire;
	cluster_gather(c);
	cluster_route_six(c);
	cluster_iterate(c);
	finish_without_three(c);
	nothing_was_done_twice(c);
	cluster_iterate(c);
	join_three(c);
	/* The joined node gets no microbatches in the first iteration and takes part in the
	 * reduction only. In the next iteration the joined node gets microbatches. */
	cluster_start(c);
	cluster_finish(c);
	cluster_route_six(c);
	cluster_iterate(c);
	cluster_unmake(c);
}

TEST(test_death_and_join)
{
	check_death_and_join(FORMAT_FP32, FORMAT_FP32);
}

/* The formats round numbers. A substitute must receive the same bits that the dead node
 * received. */
TEST(test_death_and_join_in_other_formats)
{
	check_death_and_join(FORMAT_BF16, FORMAT_FP32);
	check_death_and_join(FORMAT_Q6, FORMAT_Q6);
}

/* A node joins in mid-iteration and learns of the iteration from a reduction or a reroute. */
TEST(test_join_in_between)
{
	struct cluster *c = cluster_of_six();

	cluster_iterate(c);
	cluster_kill(c, 3);
	cluster_without_three(c);
	cluster_start(c);
	join_three(c);
	cluster_until(c, cluster_all_through, "all microbatches");
	cluster_reduce(c, 1);
	/* Node 2 dies before the commit, and node 3 repeats the tasks of node 2. */
	cluster_kill(c, 2);
	for (uint32_t m = 0; m < c->now.n_batches; m++)
		for (uint32_t i = 0; i < c->now.routes[m].n_hops; i++)
			if (c->now.routes[m].nodes[i] == 2)
				c->now.routes[m].nodes[i] = 3;
	cluster_reroute(c, 0xff & ~(1u << 1) & ~(1u << 5), 2);
	cluster_until(c, cluster_all_through, "the rerun");
	cluster_reduce(c, 2);
	cluster_check_twins(c);
	cluster_commit(c, 2);
	cluster_iterate(c);
	cluster_unmake(c);
}
