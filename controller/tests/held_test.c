/* A stage without a replica: who has its weights after all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "controller/loop.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/node_state.h"
#include "controller/tests/under_way.h"
#include "controller/weights/recover.h"

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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
