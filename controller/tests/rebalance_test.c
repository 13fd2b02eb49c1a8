/* rebalance_test.c - nodes return to the stages of the first plan. Tests which pair moves, when,
 * and what prevents a move. */

#include "base/tests/test.h"
#include "controller/iteration/iteration.h"
#include "controller/tests/under_way.h"
#include "controller/weights/rebalance.h"

enum { COMMITTED = 7 };

/* By the first plan, n00 belongs to the second stage and n03 to the first stage. Now each is in the
 * other's stage. */
static int begin(void **state)
{
	struct controller *c = *state = under_way_of(NODES, EACH, 2);

	c->run.committed = COMMITTED;
	for (int i = 0; i < NODES; i++) {
		c->members.list[i].move.home = i / DATA;
		under_way_keep_messages(c, &c->members.list[i]);
	}
	c->members.list[0].move.home = 1;
	c->members.list[3].move.home = 0;
	return 0;
}

static bool are_chosen(const struct controller *c, const struct member *one,
		       const struct member *other)
{
	return c->backups.rebalance.pair[0] == one && c->backups.rebalance.pair[1] == other;
}

/* Completes the node's copy of the stage, with the state of the last commit. */
static void has_fetched(struct controller *c, struct member *m, int stage)
{
	assert_int_equal(m->copy.stage, stage);
	m->copy.state = COPY_WHOLE;
	m->copy.iterations = c->run.committed;
}

static int stage_of(const struct controller *c, int node)
{
	return c->run.cluster->nodes[node].stage;
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, under_way_end)

FIXTURE_TEST(two_displaced_nodes_exchange_places)
{
	struct controller *c = *state;
	struct member *one = &c->members.list[0], *other = &c->members.list[3];

	rebalance_turn(&c->backups);
	assert_true(are_chosen(c, one, other));
	assert_true(one->move.is_returning && other->move.is_returning);
	rebalance_turn(&c->backups);
	assert_true(are_chosen(c, one, other));
	has_fetched(c, one, 1);
	rebalance_awaited(&c->backups);
	/* n00 does not move, because the copy of n03 is incomplete */
	assert_int_equal(stage_of(c, 0), 0);
	has_fetched(c, other, 0);
	rebalance_awaited(&c->backups);
	assert_int_equal(stage_of(c, 0), 1);
	assert_int_equal(stage_of(c, 3), 0);
	assert_true(one->move.is_loading && other->move.is_loading);
	assert_null(c->backups.rebalance.pair[0]);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(member_is_replica(&c->members.list[i]), i != 0 && i != 3);
}

/* In a pause, as at any time between two iterations, nodes may exchange stages. */
FIXTURE_TEST(nodes_exchange_places_in_a_pause)
{
	struct controller *c = *state;

	rebalance_turn(&c->backups);
	has_fetched(c, &c->members.list[0], 1);
	has_fetched(c, &c->members.list[3], 0);
	c->run.wanted.pause = true;
	c->run.phase = PHASE_PLANNING;
	iteration_boundary(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_PAUSED);
	assert_int_equal(stage_of(c, 0), 1);
	assert_int_equal(stage_of(c, 3), 0);
}

/* A node does not move if it is in its own stage, or if it would displace another node without a
 * gain. */
FIXTURE_TEST(a_node_in_its_own_stage_stays)
{
	struct controller *c = *state;

	c->members.list[0].move.home = 0;
	c->members.list[3].move.home = 1;
	rebalance_turn(&c->backups);
	assert_null(c->backups.rebalance.pair[0]);
	/* n03 now belongs to the first stage, but no node there would gain by leaving it */
	c->members.list[3].move.home = 0;
	rebalance_turn(&c->backups);
	assert_null(c->backups.rebalance.pair[0]);
}

/* If the last replica of a stage moved, no other node would hold the stage. */
FIXTURE_TEST(the_last_replica_of_a_stage_stays)
{
	struct controller *c = *state;

	for (int i = 4; i < NODES; i++)
		c->members.list[i].state = MEMBER_JOINING;
	rebalance_turn(&c->backups);
	assert_null(c->backups.rebalance.pair[0]);
	c->members.list[5].state = MEMBER_LIVE;
	rebalance_turn(&c->backups);
	assert_true(are_chosen(c, &c->members.list[0], &c->members.list[3]));
	c->members.list[5].state = MEMBER_JOINING; /* node 5 dies while n00 and n03 fetch */
	rebalance_turn(&c->backups);
	assert_null(c->backups.rebalance.pair[0]);
}

/* A single node exchanges stages with an absent node, if its own stage has enough other
 * replicas. */
FIXTURE_TEST(one_node_moves_to_an_empty_place)
{
	struct controller *c = *state;

	c->members.list[3].state = MEMBER_DEAD;
	rebalance_turn(&c->backups);
	assert_true(are_chosen(c, &c->members.list[0], NULL));
	has_fetched(c, &c->members.list[0], 1);
	rebalance_turn(&c->backups);
	assert_true(are_chosen(c, &c->members.list[0], NULL));
	rebalance_awaited(&c->backups);
	assert_int_equal(stage_of(c, 0), 1);
	/* The absent node n03 got the stage that n00 has left */
	assert_int_equal(stage_of(c, 3), 0);
}

FIXTURE_TEST(no_node_leaves_a_stage_of_two)
{
	struct controller *c = *state;

	c->members.list[3].state = c->members.list[2].state = MEMBER_DEAD;
	rebalance_turn(&c->backups);
	assert_null(c->backups.rebalance.pair[0]);
}

FIXTURE_TEST(a_busy_node_is_not_removed)
{
	struct controller *c = *state;

	c->members.list[3].links.ratio = 2; /* the links of n03 take twice as long as planned */
	rebalance_turn(&c->backups);
	assert_null(c->backups.rebalance.pair[0]);
	c->members.list[3].links.ratio = 1;
	/* n03 already has a copy that another stage may need */
	c->members.list[3].copy.stage = 0;
	rebalance_turn(&c->backups);
	assert_null(c->backups.rebalance.pair[0]);
	c->members.list[3].copy.stage = -1;
	rebalance_turn(&c->backups);
	assert_true(are_chosen(c, &c->members.list[0], &c->members.list[3]));
}

/* If one node fails, the copy of the other node is released, and the controller tries the exchange
 * again later. */
FIXTURE_TEST(a_failure_ends_the_exchange)
{
	struct controller *c = *state;

	rebalance_turn(&c->backups);
	has_fetched(c, &c->members.list[0], 1);
	c->members.list[3].copy.stage = -1; /* n03 refused to keep the copy */
	rebalance_turn(&c->backups);
	assert_null(c->backups.rebalance.pair[0]);
	assert_false(c->members.list[0].move.is_returning);
	assert_int_equal(c->members.list[0].copy.stage, -1);
	rebalance_turn(&c->backups);
	assert_null(c->backups.rebalance.pair[0]);
	c->run.now_us = c->backups.rebalance.next_us;
	rebalance_turn(&c->backups);
	assert_true(are_chosen(c, &c->members.list[0], &c->members.list[3]));
}
