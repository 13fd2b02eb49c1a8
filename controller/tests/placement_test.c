/* placement_test.c - which stage a joining node gets, and which nodes are near enough to take part
 * in the stage's sums. */

#include <stdlib.h>

#include "base/tests/test.h"
#include "controller/controller.h"
#include "controller/setup.h"
#include "controller/weights/placement.h"

enum { NODES = 6 };

/* Returns a controller that node 5 is about to join. Stage 0 has nodes 0 and 1, stage 1 has nodes 2
 * and 3, and stage 2 has node 4. An exchange of a sum takes 10 s between two nodes, but 1,000 s
 * between nodes 3 and 5. */
static struct controller *made(double iteration_s, double sync_s)
{
	static const int stages[NODES] = { 0, 0, 1, 1, 2, 1 };
	struct controller *c = controller_new();

	assert_non_null(c);
	c->run.cluster = cluster_alloc(NODES, 3, true);
	c->members.list = calloc(NODES, sizeof(*c->members.list));
	c->run.plan = calloc(1, sizeof(*c->run.plan));
	assert_true(c->run.cluster && c->members.list && c->run.plan);
	c->run.plan->plan = plan_alloc(3, NODES, 1, 2);
	assert_non_null(c->run.plan->plan);
	c->run.plan->plan->predicted.iteration_s = iteration_s;
	c->run.plan->plan->predicted.sync_s = sync_s;
	c->members.n = NODES;
	for (int i = 0; i < NODES * NODES; i++)
		c->run.cluster->sync_pair_s[i] = 10;
	c->run.cluster->sync_pair_s[5 * NODES + 3] = 1000;
	for (int i = 0; i < NODES; i++) {
		c->members.list[i].id = (uint16_t)i;
		c->members.list[i].peer = (post_peer_id)i + 1;
		c->members.list[i].move.home = i < 5 ? stages[i] : -1;
		c->members.list[i].state = i < 5 ? MEMBER_LIVE : MEMBER_JOINING;
		c->run.cluster->nodes[i].stage = stages[i];
	}
	return c;
}

static void unmake(struct controller *c)
{
	plan_free(c->run.plan->plan);
	free(c->run.plan);
	free(c->members.list);
	cluster_free(c->run.cluster);
	free(c);
}

TEST(a_distant_replica_is_not_near)
{
	struct controller *c = made(20, 10);
	struct member *m;

	m = &c->members.list[5];
	assert_false(placement_near(&c->members, m, 1));
	assert_true(placement_near(&c->members, m, 0) && placement_near(&c->members, m, 2));
	assert_int_equal(placement_for(&c->members, m, 2), 2);
	/* Stage 1 is too distant, and no node is absent whose stage node 5 could get instead */
	assert_int_equal(placement_for(&c->members, m, 1), -1);
	/* Node 3 is not a replica now, so it does not delay sums */
	c->members.list[3].state = MEMBER_JOINING;
	assert_true(placement_near(&c->members, m, 1));
	unmake(c);
}

TEST(places_of_the_first_plan_are_near)
{
	struct controller *c = made(20, 10);
	struct member *m = &c->members.list[5];

	c->run.cluster->sync_pair_s[5 * NODES + 3] = 15;
	/* The limit is 15 s. It is the mean of two times: an iteration takes 20 s, and the
	 * slowest exchange between two nodes that the first plan puts into one stage takes 10
	 * s */
	assert_true(placement_near(&c->members, m, 1));
	c->run.cluster->sync_pair_s[5 * NODES + 3] = 16;
	assert_false(placement_near(&c->members, m, 1));
	/* The limit does not depend on the predicted time of sums. If nodes 0 and 1, which the
	 * first plan puts into one stage, are 16 s apart, the limit becomes 18 s */
	c->run.plan->plan->predicted.sync_s = 1000;
	assert_false(placement_near(&c->members, m, 1));
	c->run.cluster->sync_pair_s[0 * NODES + 1] = 16;
	assert_true(placement_near(&c->members, m, 1));
	/* The time of a sum is unknown, so the delay of an activation counts */
	c->run.cluster->sync_pair_s[3 * NODES + 5] = -1;
	c->run.cluster->delay_s[3 * NODES + 5] = 0.1;
	assert_true(placement_near(&c->members, m, 1));
	c->run.cluster->delay_s[3 * NODES + 5] = -1; /* there is no link to the node */
	assert_false(placement_near(&c->members, m, 1));
	unmake(c);
}
