/* A stage without a replica: who has its weights after all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "controller/iteration/commit.h"
#include "controller/loop.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/node_state.h"
#include "controller/tests/under_way.h"
#include "controller/weights/copies.h"
#include "controller/weights/recover.h"
#include "controller/weights/restore.h"

enum { COMMITTED = 7, X = 3 /* of the second stage, as n04 and n05 */, K = 0 /* of the first */ };

static void dies(struct controller *c, int node)
{
	members_gone(c, &c->members[node], "was killed");
	loop_act(c);
}

static void beats(struct controller *c, int node, uint8_t stage, uint64_t committed)
{
	struct msg_heartbeat h = { .stage = stage, .committed = committed };

	c->now_us += 100000;
	members_heartbeat(c, &c->members[node], &h);
	loop_act(c);
}

static void keeps(struct controller *c, int node, int stage, uint64_t holds)
{
	c->members[node].keeps = stage;
	c->members[node].kept = true;
	c->members[node].kept_holds = holds;
}

/* All of the second stage are dead; n03 died last. */
static struct controller *lost(void **state)
{
	struct controller *c = *state;

	c->committed = COMMITTED;
	c->iteration = COMMITTED + 1;
	for (int i = 0; i < NODES; i++) {
		c->members[i].held_stage = (uint8_t)(i / DATA);
		c->members[i].holds = COMMITTED;
	}
	dies(c, 5);
	dies(c, 4);
	dies(c, X);
	c->members[4].holds = c->members[5].holds = COMMITTED - 1;
	assert_int_equal(c->phase, PHASE_STALLED);
	return c;
}

static bool is_back(const struct controller *c)
{
	return c->members[X].replica && member_stage(c, &c->members[X]) == 1;
}

static void who_slept_goes_on(void **state)
{
	struct controller *c = lost(state);

	beats(c, X, 1, COMMITTED);
	assert_true(is_back(c));
}

/* The one that took its stage over, from a copy, had its place in exchange, and is gone too. */
static void also_when_its_place_was_given_away(void **state)
{
	struct controller *c = lost(state);

	c->cluster->nodes[X].stage = 0;
	c->cluster->nodes[K].stage = 1;
	dies(c, K);
	beats(c, X, 1, COMMITTED);
	assert_true(is_back(c));
	assert_int_equal(member_stage(c, &c->members[K]), 0);
	recover_turn(c);
	loop_act(c);
	assert_true(c->redo); /* it may have done what its place was to do */
}

/* Its beats tell what it has: the last commit is on its way to it. */
static void once_it_has_heard_of_the_commit(void **state)
{
	struct controller *c = lost(state);

	beats(c, X, 1, COMMITTED - 1);
	recover_turn(c);
	loop_act(c);
	assert_false(is_back(c));
	assert_int_equal(c->members[X].state, NODE_JOINING);
	beats(c, X, 1, COMMITTED);
	recover_turn(c);
	loop_act(c);
	assert_true(is_back(c));
}

static void but_not_with_other_weights(void **state)
{
	struct controller *c = lost(state);

	beats(c, X, MSG_NO_STAGE, COMMITTED); /* it loads something */
	recover_turn(c);
	loop_act(c);
	assert_false(is_back(c));
	beats(c, X, 0, COMMITTED);
	recover_turn(c);
	loop_act(c);
	assert_false(is_back(c));
	c->members[X].held_stage = 0; /* it was told to load something since it said so */
	beats(c, X, 1, COMMITTED);
	recover_turn(c);
	loop_act(c);
	assert_false(is_back(c));
}

/* ---- who kept a copy ---- */

static void a_copy_that_slept_takes_the_stage_over(void **state)
{
	struct controller *c = *state;

	c->committed = COMMITTED;
	keeps(c, K, 1, COMMITTED);
	dies(c, K);
	lost(state);
	for (int i = DATA; i < NODES; i++) { /* nobody waits for these */
		c->members[i].state = NODE_FAILED;
		c->members[i].marked = true;
	}
	recover_turn(c);
	loop_act(c);
	assert_int_equal(stage_replicas(c, 0, NULL), 2); /* of which one would go, to begin anew without it */
	assert_int_equal(member_stage(c, &c->members[1]) + member_stage(c, &c->members[2]), 0);
	c->members[K].held_stage = MSG_NO_STAGE;
	beats(c, K, 0, COMMITTED);
	assert_int_equal(c->members[K].keeps, 1);
	recover_turn(c);
	loop_act(c);
	assert_int_equal(member_stage(c, &c->members[K]), 1);
	assert_int_equal(c->members[K].state, NODE_SYNCING);
	assert_int_equal(c->members[K].held_stage, 1);
}

static void one_of_an_older_commit_is_forgotten(void **state)
{
	struct controller *c = *state;

	c->committed = COMMITTED;
	keeps(c, K, 1, COMMITTED - 1);
	dies(c, K);
	lost(state);
	c->members[K].held_stage = MSG_NO_STAGE;
	beats(c, K, 0, COMMITTED);
	assert_int_not_equal(c->members[K].keeps, 1);
}

/* Another has the stage: it joins as everybody does. */
static void so_is_one_that_nobody_needs(void **state)
{
	struct controller *c = *state;

	c->committed = COMMITTED;
	keeps(c, K, 1, COMMITTED);
	dies(c, K);
	beats(c, K, 0, COMMITTED);
	assert_int_not_equal(c->members[K].keeps, 1);
}

/* ---- whose word is still on its way ---- */

/* There is a checkpoint to go back to, and new processes stand for all of the lost stage: nobody sleeps. */
static struct controller *replaced(void **state)
{
	struct store_shard shard = { .iteration = COMMITTED - 2, .host = "here", .hash = 5, .bytes = 9 };
	struct controller *c = lost(state);

	for (shard.stage = 0; shard.stage < 2; shard.stage++)
		assert_int_equal(store_shard(c->store, &shard, NULL), 0);
	for (int i = DATA; i < NODES; i++) {
		members_set(c, &c->members[i], NODE_JOINING, "");
		c->members[i].held_stage = MSG_NO_STAGE;
		c->members[i].holds = 0;
	}
	return c;
}

static bool goes_back(struct controller *c)
{
	recover_turn(c);
	loop_act(c);
	return stage_replicas(c, 0, NULL) == 0;
}

static void else_it_goes_back_at_once(void **state)
{
	assert_true(goes_back(replaced(state)));
}

/* After a takeover: its successor tells it the commit again, and it steps. */
static void who_was_told_the_commit_again(void **state)
{
	struct msg_committed done = { COMMITTED, 1, 77, 0 };
	struct controller *c = replaced(state);

	c->members[X].held_stage = 1;
	c->members[X].holds = COMMITTED - 1;
	c->members[X].commit_told = COMMITTED;
	assert_false(goes_back(c));
	iteration_committed(c, &c->members[X], &done);
	beats(c, X, 1, COMMITTED);
	assert_false(goes_back(c));
	assert_true(is_back(c));
}

/* It was told while it was cut off, and passed for dead before it heard that: to its controller it holds the commit, and
 * its first beat says that it does not. */
static void who_was_told_when_it_was_cut_off(void **state)
{
	struct controller *c = replaced(state);

	c->members[X].held_stage = 1;
	c->members[X].holds = c->members[X].commit_told = COMMITTED;
	beats(c, X, 1, COMMITTED - 1);
	assert_false(goes_back(c));
	c->now_us += recover_patience_us(c) + 1;
	assert_true(goes_back(c));
}

/* What it holds is being overwritten: the order cannot be taken back. */
static void not_who_was_told_to_restore_its_stage(void **state)
{
	struct controller *c = lost(state);

	c->members[X].restoring = true;
	beats(c, X, 1, COMMITTED);
	assert_false(is_back(c));
	c->members[X].restoring = false;
	assert_true(iteration_resumes(c, &c->members[X]));
}

static void is_not_waited_for_for_ever(void **state)
{
	struct controller *c = replaced(state);

	c->members[X].held_stage = 1;
	c->members[X].holds = COMMITTED - 1;
	c->members[X].commit_told = COMMITTED;
	assert_false(goes_back(c));
	c->now_us += recover_patience_us(c) + 1;
	assert_true(goes_back(c));
}

static void a_copy_that_was_told_the_commit(void **state)
{
	struct msg_committed done = { COMMITTED, 1, 77, 1 };
	struct controller *c = replaced(state);

	keeps(c, K, 1, COMMITTED - 1);
	c->members[K].copy_told = COMMITTED;
	assert_false(goes_back(c));
	iteration_committed(c, &c->members[K], &done);
	assert_false(goes_back(c));
	assert_true(copies_holder(c, 1, NULL) == &c->members[K]);
}

/* Its way to the copy is cut, or it has no room: it does not even fetch. */
static void who_does_not_fetch_a_copy_is_not_waited_for(void **state)
{
	struct controller *c = replaced(state);

	keeps(c, K, 1, COMMITTED);
	assert_false(goes_back(c));
	assert_int_equal(member_stage(c, &c->members[K]), 0); /* it fetches from there, as far as is known */
	c->members[X].keeps = 1;
	c->now_us += 3600ll * SECOND;
	assert_false(goes_back(c));
	assert_int_equal(member_stage(c, &c->members[K]), 0);
	c->members[X].keeps = -1;
	c->members[1].marked = c->members[2].marked = true; /* it would leave its own without any */
	assert_false(goes_back(c));
	assert_int_equal(member_stage(c, &c->members[K]), 0);
	c->members[1].marked = c->members[2].marked = false;
	assert_false(goes_back(c)); /* they may have died with the others */
	assert_int_equal(member_stage(c, &c->members[K]), 0);
	beats(c, 1, 0, COMMITTED);
	assert_false(goes_back(c));
	assert_int_equal(member_stage(c, &c->members[K]), 1);
}

/* Nobody was there to be told when it had its weights again; they are the ones that the record has. */
static void who_is_as_the_record_says(void **state)
{
	const struct store_hash told = { COMMITTED, 77, X, 1 };
	struct controller *c = replaced(state);
	struct msg_heartbeat h = { .stage = 1, .committed = COMMITTED, .hash = 78 };

	assert_int_equal(store_hashes(c->store, &told, 1, NULL), 0);
	c->members[4].beat = h;
	h.hash = 77;
	c->members[X].beat = h;
	assert_false(goes_back(c));
	assert_true(is_back(c));
	assert_false(c->members[4].replica);
}

/* What it said before it tried may not be so any more. */
static void who_could_not_read_says_what_it_has(void **state)
{
	struct msg_unready failed = { .assignment = 9, .text = "it is cut short" };
	struct controller *c = replaced(state);
	struct member *m = &c->members[X];

	m->held_stage = 1;
	m->holds = COMMITTED;
	m->beat.stage = 1;
	m->beat.committed = COMMITTED;
	m->assignment = 9;
	m->restoring = true;
	restore_failed(c, m, &failed);
	assert_false(goes_back(c));
	assert_false(is_back(c));
	beats(c, X, 1, COMMITTED);
	assert_false(goes_back(c));
	assert_true(is_back(c));
}

/* ---- what the run has gone back from ---- */

static void what_will_not_have_been_is_held_by_nobody(void **state)
{
	struct controller *c = replaced(state);

	for (int i = 0; i < NODES; i++) {
		c->members[i].hello.saves = 1;
		snprintf(c->members[i].hello.host, sizeof(c->members[i].hello.host), "here");
	}
	dies(c, 2);
	assert_true(goes_back(c));
	for (int round = 0; round < 2; round++) { /* of the stage that was lost, then of the other */
		for (int i = 0; i < NODES; i++) {
			struct member *m = &c->members[i];
			struct msg_ready read = { .assignment = m->assignment, .iteration = COMMITTED - 2, .hash = 5,
						  .stage = (uint8_t)member_stage(c, m) };

			if (m->restoring)
				members_ready(c, m, &read);
		}
		recover_turn(c);
	}
	assert_int_equal(c->committed, COMMITTED - 2);
	c->committed = COMMITTED; /* again */
	beats(c, 2, 0, COMMITTED);
	assert_false(member_holds(c, &c->members[2], 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, under_way_begin, under_way_end)
		TEST(who_slept_goes_on),
		TEST(also_when_its_place_was_given_away),
		TEST(once_it_has_heard_of_the_commit),
		TEST(but_not_with_other_weights),
		TEST(a_copy_that_slept_takes_the_stage_over),
		TEST(one_of_an_older_commit_is_forgotten),
		TEST(so_is_one_that_nobody_needs),
		TEST(else_it_goes_back_at_once),
		TEST(who_was_told_the_commit_again),
		TEST(who_was_told_when_it_was_cut_off),
		TEST(not_who_was_told_to_restore_its_stage),
		TEST(is_not_waited_for_for_ever),
		TEST(a_copy_that_was_told_the_commit),
		TEST(who_does_not_fetch_a_copy_is_not_waited_for),
		TEST(who_is_as_the_record_says),
		TEST(who_could_not_read_says_what_it_has),
		TEST(what_will_not_have_been_is_held_by_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
