/* Tests an agent that misses a commit or receives it late. */

#include <string.h>

#include "agent/tests/cluster.h"
#include "base/tests/test.h"

static bool three_complains(struct cluster *c)
{
	return c->nodes[3].troubles > 0;
}

/* Node 3 receives no message of an iteration, as if its link were cut. The node keeps its older
 * weights and refuses to start the next iteration with them. Then the node gets the present
 * weights from the other replica. */
TEST(test_missed_commit)
{
	struct cluster *c = cluster_of_six();
	uint64_t old;

	cluster_iterate(c);
	old = c->nodes[3].committed.hash;
	cluster_without_three(c);
	c->nodes[3].ready = false;
	cluster_iterate(c);
	assert_true(c->nodes[2].committed.hash != old);
	c->nodes[3].ready = true;
	cluster_start(c);
	cluster_until(c, three_complains, "node 3 to say what it holds");
	assert_non_null(strstr(c->nodes[3].trouble, "iteration 1 is committed here"));
	c->nodes[3].ready = false;
	cluster_finish(c);
	/* Node 3 is assigned its own stage without a fetch, so node 3 keeps its old weights. */
	cluster_send(
		c, 3,
		&(struct msg){ .type = MSG_ASSIGN, .u.assign = { ++c->assignments, 1, 1 } });
	cluster_until(c, cluster_three_is_ready, "node 3 with its own weights");
	assert_int_equal(c->nodes[3].ready_said.iteration, 1);
	assert_true(c->nodes[3].ready_said.hash == old);
	cluster_assign(c, 3, 2);
	cluster_until(c, cluster_three_is_ready, "node 3 to have node 2's weights");
	assert_int_equal(c->nodes[3].ready_said.iteration, 3);
	assert_true(c->nodes[3].ready_said.hash == c->nodes[2].committed.hash);
	cluster_route_six(c);
	cluster_iterate(c);
	cluster_iterate(c);
	cluster_unmake(c);
}

static bool all_but_three_committed(struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (i != 3 && c->nodes[i].committed.iteration != c->now.iteration)
			return false;
	return true;
}

static bool three_has_committed(struct cluster *c)
{
	return c->nodes[3].committed.iteration == c->now.iteration;
}

/* The controller dies while it sends a commit, before the commit reaches node 3. Node 3 still has
 * the sum, and makes the step when the next controller sends the commit again. */
TEST(test_commit_announced_again)
{
	struct cluster *c = cluster_of_six();
	struct msg m = { .type = MSG_COMMIT };

	cluster_iterate(c);
	cluster_start(c);
	cluster_until(c, cluster_all_through, "all microbatches");
	cluster_reduce(c, 1);
	cluster_check_twins(c);
	m.u.commit = (struct msg_commit){ .iteration = c->now.iteration,
					  .attempt = 1,
					  .scale = 1.0f / (float)c->now.n_batches,
					  .lr = 0.01f,
					  .beta1 = 0.9f,
					  .beta2 = 0.99f,
					  .eps = 1e-8f,
					  .weight_decay = 0.1f };
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (i != 3)
			cluster_send(c, i, &m);
	cluster_until(c, all_but_three_committed, "all others to commit");
	cluster_restart_controller(c);
	cluster_until(c, cluster_all_sent_hello, "hello to the new controller");
	assert_int_equal(c->nodes[3].hello.committed + 1, c->nodes[2].hello.committed);
	for (uint32_t i = 0; i < c->n_nodes; i++)
		cluster_welcome(c, i);
	cluster_peers(c);
	cluster_send(c, 3, &m);
	cluster_until(c, three_has_committed, "node 3 to commit");
	assert_true(c->nodes[3].committed.hash == c->nodes[2].committed.hash);
	cluster_iterate(c);
	cluster_unmake(c);
}
