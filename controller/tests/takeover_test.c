/* Who goes on with an iteration when another controller takes over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "controller/iteration/takeover.h"
#include "controller/members/member.h"
#include "controller/tests/under_way.h"

enum { IDLE = 4 };

/* All are in the iteration under way, and n04 has no part in it. */
static struct controller *taken_over(void **state)
{
	struct controller *c = *state;

	for (uint32_t i = 0; i < c->routes.n; i++)
		if (c->routes.microbatches[i].nodes[1] == IDLE)
			c->routes.microbatches[i].nodes[1] = DATA;
	for (int i = 0; i < NODES; i++) {
		c->members[i].hello.iteration = c->iteration;
		c->members[i].hello.epoch = c->epoch;
	}
	c->takeover.plan = c->current;
	c->current = NULL;
	return c;
}

static void all_go_on_where_they_were(void **state)
{
	struct controller *c = taken_over(state);
	uint64_t assignments = c->assignments;

	assert_true(takeover_resume(c));
	for (int i = 0; i < NODES; i++)
		assert_true(c->members[i].replica && c->members[i].recalling);
	assert_int_equal(c->assignments, assignments);
}

/* What it has counted is another's now: its stage is told to it again, and its gradient begins at zero. */
static void who_began_it_by_another_plan_joins_anew(void **state)
{
	struct controller *c = taken_over(state);
	struct member *m = &c->members[IDLE];

	for (int begun = 1; begun >= 0; begun--) {
		uint64_t was = m->assignment;

		m->replica = true;
		m->hello.iteration = begun ? c->iteration : 0; /* 0: it has forgotten a part of it */
		m->hello.epoch = c->epoch - 1;
		assert_true(takeover_resume(c));
		assert_false(m->replica);
		assert_true(m->assignment > was);
		c->takeover.plan = c->current;
		c->current = NULL;
	}
	c->current = c->takeover.plan;
	c->takeover.plan = NULL;
}

static void it_begins_anew_where_that_one_has_a_part_in_it(void **state)
{
	struct controller *c = taken_over(state);

	c->members[DATA].hello.epoch = c->epoch - 1;
	assert_false(takeover_resume(c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, under_way_begin, under_way_end)
		TEST(all_go_on_where_they_were),
		TEST(who_began_it_by_another_plan_joins_anew),
		TEST(it_begins_anew_where_that_one_has_a_part_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
