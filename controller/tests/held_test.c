/* held_test.c - a stage has lost all its replicas. Tests which other nodes still have its weights,
 * and when the run goes back to a checkpoint instead. */

#include <stdio.h>

#include "base/tests/test.h"
#include "controller/iteration/commit.h"
#include "controller/iteration/recover.h"
#include "controller/joining/agents.h"
#include "controller/loop.h"
#include "controller/members/lifecycle.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/tests/under_way.h"
#include "controller/weights/copies.h"
#include "controller/weights/restore.h"

enum { COMMITTED = 7, X = 3 /* X is in stage 1, like n04 and n05 */, K = 0 /* K is in stage 0 */ };

static void dies(struct controller *c, int node)
{
	member_apply(&c->run, &c->members.list[node], EVENT_LOST, "was killed");
	loop_act(&c->iteration);
}

static void beats(struct controller *c, int node, uint8_t stage, uint64_t committed)
{
	struct msg_heartbeat h = { .stage = stage, .committed = committed };

	c->run.now_us += 100000;
	members_heartbeat(&c->iteration, &c->members.list[node], &h);
	loop_act(&c->iteration);
}

static void keeps(struct controller *c, int node, int stage, uint64_t holds)
{
	c->members.list[node].copy.stage = stage;
	c->members.list[node].copy.state = COPY_WHOLE;
	c->members.list[node].copy.iterations = holds;
}

/* Returns a controller that has lost all nodes of the second stage. n03 died last. */
static struct controller *lost(void **state)
{
	struct controller *c = *state;

	c->run.committed = COMMITTED;
	c->run.iteration = COMMITTED + 1;
	for (int i = 0; i < NODES; i++) {
		c->members.list[i].weights.stage = (uint8_t)(i / DATA);
		c->members.list[i].weights.iterations = COMMITTED;
	}
	dies(c, 5);
	dies(c, 4);
	dies(c, X);
	c->members.list[4].weights.iterations = c->members.list[5].weights.iterations =
		COMMITTED - 1;
	assert_int_equal(c->run.phase, PHASE_STALLED);
	return c;
}

static bool is_back(const struct controller *c)
{
	return member_is_replica(&c->members.list[X]) &&
	       member_stage(&c->run, &c->members.list[X]) == 1;
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

FIXTURE_TEST(a_node_that_slept_continues)
{
	struct controller *c = lost(state);

	beats(c, X, 1, COMMITTED);
	assert_true(is_back(c));
}

/* While X was dead, K took over the stage of X, and X was assigned the stage that K had left. Then
 * K died, too. X returns with the weights of its old stage, and gets that stage back. */
FIXTURE_TEST(a_returning_node_continues_although_its_place_was_reassigned)
{
	struct controller *c = lost(state);

	c->run.cluster->nodes[X].stage = 0;
	c->run.cluster->nodes[K].stage = 1;
	dies(c, K);
	beats(c, X, 1, COMMITTED);
	assert_true(is_back(c));
	assert_int_equal(member_stage(&c->run, &c->members.list[K]), 0);
	recover_turn(&c->iteration);
	loop_act(&c->iteration);
	/* The iteration restarts, because X may have worked for its other stage */
	assert_true(c->iteration.redo);
}

/* The heartbeats of X report its weights. The last commit is still on its way to X. */
FIXTURE_TEST(a_node_continues_once_it_has_the_last_commit)
{
	struct controller *c = lost(state);

	beats(c, X, 1, COMMITTED - 1);
	recover_turn(&c->iteration);
	loop_act(&c->iteration);
	assert_false(is_back(c));
	assert_int_equal(c->members.list[X].state, MEMBER_JOINING);
	beats(c, X, 1, COMMITTED);
	recover_turn(&c->iteration);
	loop_act(&c->iteration);
	assert_true(is_back(c));
}

FIXTURE_TEST(a_node_with_other_weights_does_not_continue)
{
	struct controller *c = lost(state);

	beats(c, X, MSG_NO_STAGE, COMMITTED); /* X is loading weights, so it holds none */
	recover_turn(&c->iteration);
	loop_act(&c->iteration);
	assert_false(is_back(c));
	beats(c, X, 0, COMMITTED);
	recover_turn(&c->iteration);
	loop_act(&c->iteration);
	assert_false(is_back(c));
	/* after that heartbeat, X received an order to load weights */
	c->members.list[X].weights.stage = 0;
	beats(c, X, 1, COMMITTED);
	recover_turn(&c->iteration);
	loop_act(&c->iteration);
	assert_false(is_back(c));
}

/* ---- nodes with a standby copy ---- */

FIXTURE_TEST(a_copy_that_slept_takes_the_stage_over)
{
	struct controller *c = *state;

	c->run.committed = COMMITTED;
	keeps(c, K, 1, COMMITTED);
	dies(c, K);
	lost(state);
	for (int i = DATA; i < NODES; i++) { /* the run does not wait for these nodes */
		c->members.list[i].state = MEMBER_FAILED;
		c->members.list[i].is_marked = true;
	}
	recover_turn(&c->iteration);
	loop_act(&c->iteration);
	/* The controller waits for K, which has the only copy. Meanwhile nodes 1 and 2 must not
	 * move to the lost stage */
	assert_int_equal(stage_replicas(&c->members, 0, NULL), 2);
	assert_int_equal(member_stage(&c->run, &c->members.list[1]) +
				 member_stage(&c->run, &c->members.list[2]),
			 0);
	c->members.list[K].weights.stage = MSG_NO_STAGE;
	beats(c, K, 0, COMMITTED);
	assert_int_equal(c->members.list[K].copy.stage, 1);
	recover_turn(&c->iteration);
	loop_act(&c->iteration);
	assert_int_equal(member_stage(&c->run, &c->members.list[K]), 1);
	assert_int_equal(c->members.list[K].state, MEMBER_SYNCING);
	assert_int_equal(c->members.list[K].weights.stage, 1);
}

FIXTURE_TEST(weights_of_an_older_commit_are_ignored)
{
	struct controller *c = *state;

	c->run.committed = COMMITTED;
	keeps(c, K, 1, COMMITTED - 1);
	dies(c, K);
	lost(state);
	c->members.list[K].weights.stage = MSG_NO_STAGE;
	beats(c, K, 0, COMMITTED);
	assert_int_not_equal(c->members.list[K].copy.stage, 1);
}

/* Another node already has the stage, so the returning node joins like any other node. */
FIXTURE_TEST(weights_that_no_stage_needs_are_ignored)
{
	struct controller *c = *state;

	c->run.committed = COMMITTED;
	keeps(c, K, 1, COMMITTED);
	dies(c, K);
	beats(c, K, 0, COMMITTED);
	assert_int_not_equal(c->members.list[K].copy.stage, 1);
}

/* ---- nodes whose reports are still travelling ---- */

/* A checkpoint exists. New processes have replaced all nodes of the lost stage, so no suspended
 * node can return with the stage's weights. */
static struct controller *replaced(void **state)
{
	struct store_shard shard = {
		.iteration = COMMITTED - 2, .host = "here", .hash = 5, .bytes = 9
	};
	struct controller *c = lost(state);

	for (shard.stage = 0; shard.stage < 2; shard.stage++)
		assert_int_equal(store_shard(c->run.record.store, &shard, NULL), 0);
	for (int i = DATA; i < NODES; i++) {
		member_apply(&c->run, &c->members.list[i], EVENT_HELLO, "");
		c->members.list[i].weights.stage = MSG_NO_STAGE;
		c->members.list[i].weights.iterations = 0;
	}
	return c;
}

static bool loses_last_replica(struct controller *c)
{
	recover_turn(&c->iteration);
	loop_act(&c->iteration);
	return stage_replicas(&c->members, 0, NULL) == 0;
}

FIXTURE_TEST(without_weights_the_run_returns_to_a_checkpoint_at_once)
{
	assert_true(loses_last_replica(replaced(state)));
}

/* A restarted controller announces the last commit to the node again, and the node applies it. */
FIXTURE_TEST(a_node_with_a_repeated_commit_is_awaited)
{
	struct msg_committed done = { COMMITTED, 1, 77, 0, { { 0 } } };
	struct controller *c = replaced(state);

	c->members.list[X].weights.stage = 1;
	c->members.list[X].weights.iterations = COMMITTED - 1;
	c->members.list[X].weights.last_commit_sent = COMMITTED;
	assert_false(loses_last_replica(c));
	iteration_committed(&c->members, &c->members.list[X], &done);
	beats(c, X, 1, COMMITTED);
	assert_false(loses_last_replica(c));
	assert_true(is_back(c));
}

/* The node was cut off when the commit was announced, and counted as dead. The controller assumes
 * that the node holds the commit, unless the node's first heartbeat shows the contrary. */
FIXTURE_TEST(a_node_cut_off_at_the_commit_is_awaited)
{
	struct controller *c = replaced(state);

	c->members.list[X].weights.stage = 1;
	c->members.list[X].weights.iterations = c->members.list[X].weights.last_commit_sent =
		COMMITTED;
	beats(c, X, 1, COMMITTED - 1);
	assert_false(loses_last_replica(c));
	c->run.now_us += recover_patience_us(&c->run) + 1;
	assert_true(loses_last_replica(c));
}

/* The node has been ordered to overwrite its weights, and the controller cannot withdraw this
 * order. */
FIXTURE_TEST(a_node_that_restores_its_stage_is_not_awaited)
{
	struct controller *c = lost(state);

	c->members.list[X].state = MEMBER_RESTORING;
	beats(c, X, 1, COMMITTED);
	assert_false(is_back(c));
	c->members.list[X].state = MEMBER_JOINING;
	assert_true(iteration_readmit(&c->iteration, &c->members.list[X]));
}

FIXTURE_TEST(the_wait_for_a_node_ends)
{
	struct controller *c = replaced(state);

	c->members.list[X].weights.stage = 1;
	c->members.list[X].weights.iterations = COMMITTED - 1;
	c->members.list[X].weights.last_commit_sent = COMMITTED;
	assert_false(loses_last_replica(c));
	c->run.now_us += recover_patience_us(&c->run) + 1;
	assert_true(loses_last_replica(c));
}

FIXTURE_TEST(a_copy_with_the_commit_is_awaited)
{
	struct msg_committed done = { COMMITTED, 1, 77, 1, { { 0 } } };
	struct controller *c = replaced(state);

	keeps(c, K, 1, COMMITTED - 1);
	c->members.list[K].copy.last_commit_sent = COMMITTED;
	assert_false(loses_last_replica(c));
	iteration_committed(&c->members, &c->members.list[K], &done);
	assert_false(loses_last_replica(c));
	assert_true(copies_holder(&c->members, 1, NULL) == &c->members.list[K]);
}

/* X cannot begin to fetch the copy from K, because their link is cut or the disk of X is full. */
FIXTURE_TEST(a_node_that_does_not_fetch_its_copy_is_not_awaited)
{
	struct controller *c = replaced(state);

	keeps(c, K, 1, COMMITTED);
	assert_false(loses_last_replica(c));
	/* The controller believes that X fetches from K, so K stays in its stage */
	assert_int_equal(member_stage(&c->run, &c->members.list[K]), 0);
	c->members.list[X].copy.stage = 1;
	c->run.now_us += 3600ll * SECOND;
	assert_false(loses_last_replica(c));
	assert_int_equal(member_stage(&c->run, &c->members.list[K]), 0);
	c->members.list[X].copy.stage = -1;
	/* If K left its stage, that stage would have no replica */
	c->members.list[1].is_marked = c->members.list[2].is_marked = true;
	assert_false(loses_last_replica(c));
	assert_int_equal(member_stage(&c->run, &c->members.list[K]), 0);
	c->members.list[1].is_marked = c->members.list[2].is_marked = false;
	/* The controller has not heard nodes 1 and 2 since the stage was lost. If they are dead,
	 * too, K is the last node of its stage and must stay */
	assert_false(loses_last_replica(c));
	assert_int_equal(member_stage(&c->run, &c->members.list[K]), 0);
	beats(c, 1, 0, COMMITTED);
	assert_false(loses_last_replica(c));
	assert_int_equal(member_stage(&c->run, &c->members.list[K]), 1);
}

/* X and n04 loaded weights while no controller ran, and report them in heartbeats. The record has
 * the hash of X's weights, so X returns. The hash of n04's weights is not in the record. */
FIXTURE_TEST(weights_that_the_record_names_are_held)
{
	const struct store_hash recorded = { COMMITTED, 77, X, 1 };
	struct controller *c = replaced(state);
	struct msg_heartbeat h = { .stage = 1, .committed = COMMITTED, .hash = 78 };

	assert_int_equal(store_hashes(c->run.record.store, &recorded, 1, NULL), 0);
	c->members.list[4].beat = h;
	h.hash = 77;
	c->members.list[X].beat = h;
	assert_false(loses_last_replica(c));
	assert_true(is_back(c));
	assert_false(member_is_replica(&c->members.list[4]));
}

/* A node that could not read a checkpoint may have lost its old weights. Its reports from before
 * the attempt do not count. */
FIXTURE_TEST(a_node_that_could_not_read_reports_its_weights)
{
	struct msg_unready failed = { .assignment = 9, .text = "it is cut short" };
	struct controller *c = replaced(state);
	struct member *m = &c->members.list[X];

	m->weights.stage = 1;
	m->weights.iterations = COMMITTED;
	m->beat.stage = 1;
	m->beat.committed = COMMITTED;
	m->assigned.number = 9;
	m->state = MEMBER_RESTORING;
	restore_failed(&c->backups, m, &failed);
	assert_false(loses_last_replica(c));
	assert_false(is_back(c));
	beats(c, X, 1, COMMITTED);
	assert_false(loses_last_replica(c));
	assert_true(is_back(c));
}

/* ---- weights from before the run went back ---- */

FIXTURE_TEST(no_node_holds_a_commit_that_was_undone)
{
	struct controller *c = replaced(state);

	for (int i = 0; i < NODES; i++) {
		c->members.list[i].hello.saves = 1;
		snprintf(c->members.list[i].hello.host, sizeof(c->members.list[i].hello.host),
			 "here");
	}
	dies(c, 2);
	assert_true(loses_last_replica(c));
	/* In each round, the nodes that were ordered to read a file report that they have read it.
	 * A node that alone holds a stage gets its order after the first round */
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < NODES; i++) {
			struct member *m = &c->members.list[i];
			struct msg_ready read = { .assignment = m->assigned.number,
						  .iteration = COMMITTED - 2,
						  .hash = 5,
						  .stage = (uint8_t)member_stage(&c->run, m) };

			if (member_is_restoring(m))
				members_ready(&c->members, m, &read);
		}
		recover_turn(&c->iteration);
	}
	assert_int_equal(c->run.committed, COMMITTED - 2);
	c->run.committed = COMMITTED; /* the run commits another iteration with that number */
	beats(c, 2, 0, COMMITTED);
	assert_false(member_holds(&c->run, &c->members.list[2], 0));
}
