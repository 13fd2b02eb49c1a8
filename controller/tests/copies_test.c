/* copies_test.c - which nodes move to a stage that has one replica, and when standby copies are
 * used and released. */

#include "base/tests/test.h"
#include "controller/loop.h"
#include "controller/network/link_table.h"
#include "controller/tests/under_way.h"
#include "controller/weights/copies.h"
#include "controller/weights/standbys.h"
#include "controller/weights/stage_moves.h"

/* Returns a controller in which n03 is the last replica of the second stage, and n00 has a copy of
 * that stage. */
static struct controller *down_to_one(void **state)
{
	struct controller *c = *state;

	c->run.committed = 7;
	for (int i = 4; i < NODES; i++)
		c->members.list[i].state = MEMBER_DEAD;
	c->members.list[0].copy.stage = 1;
	c->members.list[0].copy.state = COPY_WHOLE;
	c->members.list[0].copy.iterations = c->run.committed;
	return c;
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

FIXTURE_TEST(the_holder_of_a_copy_moves_to_its_stage)
{
	struct controller *c = down_to_one(state);

	stage_moves_balance(&c->planning);
	assert_int_equal(c->run.cluster->nodes[0].stage, 1);
}

/* A node that is marked failed works until a plan excludes it, because the mark may be removed
 * again. */
FIXTURE_TEST(a_marked_node_that_still_works_is_not_replaced)
{
	struct controller *c = down_to_one(state);

	for (int i = 4; i < NODES; i++) {
		c->members.list[i].is_marked = true;
		c->members.list[i].state = MEMBER_LIVE;
	}
	stage_moves_balance(&c->planning);
	assert_int_equal(c->run.cluster->nodes[0].stage, 0);
	assert_int_equal(c->run.cluster->nodes[4].stage, 1);
	/* a plan that excludes this node has taken effect */
	c->members.list[4].state = MEMBER_FAILED;
	stage_moves_balance(&c->planning);
	assert_int_equal(c->run.cluster->nodes[0].stage, 1);
	assert_int_equal(c->run.cluster->nodes[4].stage, 0);
}

/* An operator's mark says nothing about a node's weights, so they may be used. The weights of a
 * node that the controller excluded may be used only if a second node reported the same hash. */
FIXTURE_TEST(weights_of_an_excluded_node_need_a_second_report)
{
	struct controller *c = *state;
	struct member *m = &c->members.list[4];

	c->run.committed = 7;
	for (int i = DATA; i < NODES; i++)
		c->members.list[i].weights.stage = 1;
	m->is_marked = true;
	m->weights.iterations = m->beat.committed = c->run.committed;
	m->weights.hash = 77;
	assert_true(copy_of_excluded(&c->members, m, 1));
	assert_true(copies_holder(&c->members, 1, NULL) == m);
	m->peers.is_excluded = true;
	assert_false(copy_of_excluded(&c->members, m, 1));
	c->members.list[5].weights.iterations = c->run.committed;
	c->members.list[5].weights.hash = 77;
	assert_true(copy_of_excluded(&c->members, m, 1));
	c->members.list[5].weights.hash = 78;
	assert_false(copy_of_excluded(&c->members, m, 1));
	m->peers.is_excluded = false;
	m->beat.committed--; /* this node has not yet applied the last commit */
	assert_false(copy_of_excluded(&c->members, m, 1));
}

/* A joiner has the last commit and will be the stage's second replica in the next iteration. The
 * node with the copy therefore stays in its own stage. */
FIXTURE_TEST(no_node_moves_if_a_joiner_is_about_to_fill_the_place)
{
	struct controller *c = down_to_one(state);

	c->members.list[4].state = MEMBER_READY;
	c->members.list[4].weights.iterations = c->run.committed;
	stage_moves_balance(&c->planning);
	assert_int_equal(c->run.cluster->nodes[0].stage, 0);
	/* The joiner lacks the last commit, so it cannot join yet */
	c->members.list[4].weights.iterations = c->run.committed - 1;
	stage_moves_balance(&c->planning);
	assert_int_equal(c->run.cluster->nodes[0].stage, 1);
}

/* Returns after how many tenths of a second the controller drops a copy for which all replicas
 * wait. */
static int copy_is_dropped_after(struct controller *c)
{
	int n = 0;

	c->members.list[0].copy.sum_state = COPY_SUM_ORDERED;
	c->run.phase = PHASE_REDUCING;
	for (int i = 0; i < NODES; i++)
		c->members.list[i].sum.is_done = true;
	for (c->backups.standbys.looks = 0;
	     c->members.list[0].copy.state != COPY_DROPPED && n < 10000; n++) {
		c->run.now_us += 100000;
		standbys_turn(&c->backups, iteration_sums_took_s(&c->iteration));
		loop_act(&c->iteration);
	}
	return n;
}

/* The sum of 400,000 bytes takes 20 s on a link of 20,000 bytes/s. The controller waits 62 s for
 * the copy: three times 20 s, plus the 2 s for which it would wait if the link were unknown. */
FIXTURE_TEST(a_copy_over_a_slow_link_has_more_time)
{
	struct controller *c = down_to_one(state);

	c->run.plan->plan->predicted.sync_s = 0;
	c->iteration.progress.reduced_us = c->iteration.progress.reduce_us;
	c->run.training.stage_parameters[1] = 100000;
	assert_in_range(copy_is_dropped_after(c), 19, 22);
	down_to_one(state);
	c->members.links = link_table_new(NODES);
	assert_non_null(c->members.links);
	*link_table_at(c->members.links, 3, 0) =
		(struct link_seen){ .known = true, .bandwidth = 20000 };
	assert_in_range(copy_is_dropped_after(c), 615, 625);
}

static void look(struct controller *c)
{
	c->run.now_us += 100000;
	c->run.phase = PHASE_COMPUTING;
	standbys_turn(&c->backups, iteration_sums_took_s(&c->iteration));
	loop_act(&c->iteration);
}

/* The node keeps a dropped copy until the next commit, because the only replica may die in the same
 * iteration. */
FIXTURE_TEST(a_dropped_copy_lasts_until_the_next_commit)
{
	struct controller *c = down_to_one(state);
	uint16_t nodes[NODES];

	copies_refuse(&c->members, &c->members.list[0], "is cut off from its stage");
	look(c);
	assert_true(copy_usable(&c->run, &c->members.list[0], 1));
	for (uint32_t i = copies_of(&c->members, 1, nodes); i-- > 0;)
		assert_int_not_equal(nodes[i], 0); /* node 0 receives no sum for its dropped copy */
	assert_false(copies_awaited(&c->members.list[0]));
	c->run.committed++;
	look(c);
	assert_int_equal(c->members.list[0].copy.stage, -1);
}

FIXTURE_TEST(the_slower_of_two_copies_is_dropped_at_once)
{
	struct controller *c = down_to_one(state);

	c->members.list[1].copy.stage = 1;
	c->members.list[1].copy.state = COPY_WHOLE;
	c->members.list[1].copy.iterations = c->run.committed;
	copies_refuse(&c->members, &c->members.list[0], "is cut off from its stage");
	look(c);
	assert_int_equal(c->members.list[0].copy.stage, -1);
	assert_int_equal(c->members.list[1].copy.stage, 1);
	assert_int_not_equal(c->members.list[1].copy.state, COPY_DROPPED);
}

/* If a stage has two replicas, its copy is not needed. The copy is kept until the next commit,
 * because one replica may have died without being noticed. If a replica has died, the copy is
 * used again. */
FIXTURE_TEST(an_unneeded_copy_lasts_until_the_next_commit)
{
	struct controller *c = down_to_one(state);

	for (int replica = 1; replica >= 0; replica--) {
		c->members.list[4].state = replica ? MEMBER_LIVE : MEMBER_DEAD;
		look(c);
		assert_true(copy_usable(&c->run, &c->members.list[0], 1));
		assert_int_equal(c->members.list[0].copy.state == COPY_DROPPED, replica);
	}
	c->members.list[4].state = MEMBER_LIVE;
	c->run.committed++;
	look(c);
	assert_int_equal(c->members.list[0].copy.stage, -1);
}

/* A node whose copy was dropped reports that the copy missed a commit. This is expected: no warning
 * follows, and the node may keep another copy. */
FIXTURE_TEST(the_report_of_a_dropped_copy_is_ignored)
{
	struct controller *c = down_to_one(state);
	struct msg_kept k = { .assignment = c->members.list[0].copy.order,
			      .stage = 1,
			      .text = "it missed a commit" };

	copies_refuse(&c->members, &c->members.list[0], "its copy was overdue");
	standbys_kept(&c->members, &c->members.list[0], &k);
	assert_int_equal(c->members.list[0].copy.stage, -1);
	/* The controller dropped the copy once, as overdue. The node's report is not counted as a
	 * second refusal */
	assert_int_equal(c->members.list[0].copy.n_refused, 1);
}
