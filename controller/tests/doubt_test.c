/* Who is left out where two contradict each other, and who comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "controller/tests/under_way.h"

/* A pair of which one is left out. */
static void contradict(struct controller *c, uint16_t bad, uint16_t other)
{
	doubt_pair(c, bad, other);
	doubt_left_out(c, &c->members[bad], &c->members[other], "contradicts another");
}

static void are_out(const struct controller *c, const char *expected)
{
	for (int i = 0; i < NODES; i++)
		if (c->members[i].marked != (expected[i] == 'x'))
			fail_msg("n%02d is %s, not as in %s", i, c->members[i].marked ? "out" : "in", expected);
}

static void whoever_was_left_out_on_a_liars_word_comes_back(void **state)
{
	struct controller *c = *state;

	contradict(c, 0, 2);
	are_out(c, "x.....");
	contradict(c, 2, 5);
	are_out(c, "..x...");
	contradict(c, 0, 5); /* of the liar's pairs none counts: n00 is not found out */
	are_out(c, "x.x...");
	contradict(c, 5, 4); /* it stands in two that count, so n02 is not one */
	are_out(c, ".....x");
}

/* n01 and n02 lie, and n05 stands in as many pairs as n02. */
static void who_is_out_as_well_had_no_right_to_accuse(void **state)
{
	struct controller *c = *state;

	contradict(c, 0, 2);
	doubt_pair(c, 1, 5);
	contradict(c, 2, 5);
	are_out(c, "..x...");
	contradict(c, 1, 3);
	are_out(c, ".xx...");
}

/* n00 comes back when n02 is out, which stands in no more pairs than n05, and then lies to n03. */
static void who_lies_again_when_back_is_found_out(void **state)
{
	struct controller *c = *state;

	contradict(c, 0, 2);
	doubt_pair(c, 1, 5);
	contradict(c, 2, 5);
	are_out(c, "..x...");
	contradict(c, 0, 3);
	are_out(c, "x.x...");
	contradict(c, 3, 4);
	are_out(c, "x.xx..");
}

/* n02 stands in as many pairs as n05, until n05 turns out to have been accused by a liar. */
static void who_is_out_may_be_found_out_later(void **state)
{
	struct controller *c = *state;

	doubt_pair(c, 0, 2);
	doubt_pair(c, 1, 5);
	contradict(c, 2, 5);
	contradict(c, 1, 3);
	are_out(c, ".xx...");
	contradict(c, 5, 4); /* found out, n02 is not believed: it does not come back */
	are_out(c, ".xx..x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, under_way_begin, under_way_end)
		TEST(whoever_was_left_out_on_a_liars_word_comes_back),
		TEST(who_is_out_as_well_had_no_right_to_accuse),
		TEST(who_lies_again_when_back_is_found_out),
		TEST(who_is_out_may_be_found_out_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
