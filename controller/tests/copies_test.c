/* Who moves to a stage that is down to one replica. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "controller/loop.h"
#include "controller/tests/under_way.h"
#include "controller/weights/standbys.h"
#include "controller/weights/stage_moves.h"

/* n03 alone is left of the second stage, and n00 has a copy of it. */
static struct controller *down_to_one(void **state)
{
	struct controller *c = *state;

	c->committed = 7;
	for (int i = 4; i < NODES; i++) {
		c->members[i].replica = false;
		c->members[i].state = NODE_DEAD;
	}
	c->members[0].keeps = 1;
	c->members[0].kept = true;
	c->members[0].kept_holds = c->committed;
	return c;
}

static void who_keeps_its_copy_moves_there(void **state)
{
	struct controller *c = down_to_one(state);

	stage_moves_balance(c);
	assert_int_equal(c->cluster->nodes[0].stage, 1);
}

/* It would be far from the one that kept the copy, for all that anybody knows. */
static void nobody_moves_when_another_is_about_to_join(void **state)
{
	struct controller *c = down_to_one(state);

	c->members[4].state = NODE_SYNCING;
	c->members[4].ready = true;
	c->members[4].holds = c->committed;
	stage_moves_balance(c);
	assert_int_equal(c->cluster->nodes[0].stage, 0);
	c->members[4].holds = c->committed - 1; /* not yet */
	stage_moves_balance(c);
	assert_int_equal(c->cluster->nodes[0].stage, 1);
}

/* So many tenths of a second until the copy that all wait for is left behind. */
static int left_behind_after(struct controller *c)
{
	int n = 0;

	c->members[0].copies = true;
	c->members[0].copy_reduced = false;
	c->phase = PHASE_REDUCING;
	for (int i = 0; i < NODES; i++)
		c->members[i].reduced = true;
	for (c->standbys.looks = 0; c->members[0].keeps == 1 && n < 10000; n++) {
		c->now_us += 100000;
		standbys_turn(c);
		loop_act(c);
	}
	return n;
}

/* Its sum takes 400,000 bytes at 20,000 a second. */
static void a_copy_behind_a_slow_link_has_time(void **state)
{
	struct controller *c = down_to_one(state);

	c->current->plan->predicted.sync_s = 0;
	c->progress.reduced_us = c->progress.reduce_us;
	c->stage_parameters[1] = 100000;
	assert_in_range(left_behind_after(c), 19, 22);
	down_to_one(state);
	c->links = link_table_new(NODES);
	assert_non_null(c->links);
	*link_table_at(c->links, 3, 0) = (struct link_seen){ .known = true, .bandwidth = 20000 };
	assert_in_range(left_behind_after(c), 615, 625);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, under_way_begin, under_way_end)
		TEST(who_keeps_its_copy_moves_there),
		TEST(nobody_moves_when_another_is_about_to_join),
		TEST(a_copy_behind_a_slow_link_has_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
