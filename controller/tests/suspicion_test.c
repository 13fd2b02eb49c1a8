/* Who is left out where two contradict each other, and who comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/rng.h"
#include "controller/loop.h"
#include "controller/members/node_state.h"
#include "controller/operator/command.h"
#include "controller/tests/under_way.h"
#include "controller/trust/suspicion.h"

/* A pair of which one is left out. */
static void contradict(struct controller *c, uint16_t bad, uint16_t other)
{
	suspicion_pair(c, bad, other);
	suspicion_left_out(c, &c->members[bad], &c->members[other], "contradicts another");
	loop_act(c);
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
}

/* n01 and n02 lie about n00, and it would be found out, and then about n03 and n05. */
static void whoever_two_liars_blame_comes_back(void **state)
{
	struct controller *c = *state;

	suspicion_pair(c, 0, 1);
	contradict(c, 0, 2);
	contradict(c, 1, 3);
	are_out(c, "xx....");
	contradict(c, 2, 5);
	are_out(c, ".xx...");
}

/* n01 and n02 lie, and n05 stands in as many pairs as n02. */
static void who_is_out_as_well_had_no_right_to_accuse(void **state)
{
	struct controller *c = *state;

	contradict(c, 0, 2);
	suspicion_pair(c, 1, 5);
	contradict(c, 2, 5);
	are_out(c, "..x...");
	contradict(c, 1, 3);
	are_out(c, ".xx...");
}

/* n00 lies, comes back when n02 is out, which may be the liar, and lies to n03. */
static void who_lies_again_stays_out(void **state)
{
	struct controller *c = *state;

	contradict(c, 0, 2);
	suspicion_pair(c, 1, 5);
	contradict(c, 2, 5);
	are_out(c, "..x...");
	contradict(c, 0, 3);
	are_out(c, "x.x...");
	contradict(c, 5, 4); /* n02 contradicts none that is in */
	are_out(c, "x....x");
}

/* All that it contradicted are out, which need not be for that. */
static void who_must_be_wrong_stays_out(void **state)
{
	struct controller *c = *state;

	suspicion_pair(c, 0, 1);
	contradict(c, 0, 2);
	members_mark(c, &c->members[1], true);
	members_mark(c, &c->members[2], true);
	contradict(c, 3, 4);
	are_out(c, "xxxx..");
}

/* n00's pair says nothing of n02 any more, which then need not be wrong. */
static void who_is_found_out_by_itself_explains_its_pairs(void **state)
{
	struct controller *c = *state;

	suspicion_pair(c, 2, 0);
	contradict(c, 2, 5);
	suspicion_proven(c, &c->members[0], "lies");
	loop_act(c);
	are_out(c, "x.x...");
	members_mark(c, &c->members[5], true);
	contradict(c, 3, 4);
	are_out(c, "x..x.x");
}

/* Four that are bad one after another, and are repaired. */
static void whom_the_operator_takes_back_harms_no_accuser(void **state)
{
	static const uint16_t bad[] = { 0, 3, 4, 5 };
	struct controller *c = *state;

	for (int i = 0; i < 4; i++) {
		const struct scripted_act recover = { .verb = COMMAND_RECOVER, .node = bad[i] };

		suspicion_accused(c, &c->members[bad[i]], &c->members[2]);
		loop_act(c);
		assert_true(c->members[bad[i]].marked);
		c->options.acts[0] = recover;
		c->options.n_acts = 1;
		command_scripted(c);
		assert_false(c->members[bad[i]].marked);
		assert_false(c->members[2].marked);
	}
}

static void no_more_than_must_be_are_taken_to_be_wrong(void **state)
{
	struct controller *c = *state;

	for (int of = 1; of < 4; of++)
		suspicion_pair(c, 0, (uint16_t)of);
	assert_int_equal(contradictions_guilt(&c->contradictions, 0), 2); /* one, or three */
	assert_int_equal(contradictions_guilt(&c->contradictions, 1), -1);
	assert_int_equal(contradictions_guilt(&c->contradictions, 4), 0);
	suspicion_pair(c, 2, 1);
	assert_int_equal(contradictions_guilt(&c->contradictions, 1), 0); /* it or n02 */
	c->iteration += 200;
	suspicion_pair(c, 4, 5);
	assert_int_equal(contradictions_guilt(&c->contradictions, 0), 0); /* so long ago */
}

/* ---- against plain enumeration ---- */

enum { FEW = 9 };

static int members_of(unsigned set)
{
	int n = 0;

	for (; set; set &= set - 1)
		n++;
	return n;
}

/* The size of the smallest set that holds one of each pair, with or without that one. */
static int smallest(const struct contradictions *p, uint16_t id, bool with)
{
	int best = FEW + 1;

	for (unsigned set = 0; set < 1u << FEW; set++) {
		bool holds = (set >> id & 1) == with;

		for (uint32_t i = 0; i < p->n; i++)
			holds = holds && (p->of[i].explained || (set >> p->of[i].ids[0] & 1) ||
					  (set >> p->of[i].ids[1] & 1));
		if (holds && members_of(set) < best)
			best = members_of(set);
	}
	return best;
}

static bool in_any(const struct contradictions *p, uint16_t id)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (!p->of[i].explained && contradiction_is_of(&p->of[i], id))
			return true;
	return false;
}

static void guilt_is_as_enumerated(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 3);
	for (int round = 0; round < 1500; round++) {
		struct contradictions p = { NULL, 0, 0 };

		for (uint32_t n = rng_below(&rng, 24); n > 0; n--) {
			uint16_t a = (uint16_t)rng_below(&rng, FEW), b = (uint16_t)rng_below(&rng, FEW);

			if (a != b)
				contradictions_add(&p, a, b, 1)->explained = rng_below(&rng, 8) == 0;
		}
		for (uint16_t id = 0; id < FEW; id++)
			assert_int_equal(contradictions_guilt(&p, id), in_any(&p, id) ? smallest(&p, id, false) -
										    smallest(&p, id, true)
									     : 0);
		free(p.of);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, under_way_begin, under_way_end)
		TEST(whoever_was_left_out_on_a_liars_word_comes_back),
		TEST(whoever_two_liars_blame_comes_back),
		TEST(who_is_out_as_well_had_no_right_to_accuse),
		TEST(who_lies_again_stays_out),
		TEST(who_must_be_wrong_stays_out),
		TEST(who_is_found_out_by_itself_explains_its_pairs),
		TEST(whom_the_operator_takes_back_harms_no_accuser),
		TEST(no_more_than_must_be_are_taken_to_be_wrong),
		cmocka_unit_test(guilt_is_as_enumerated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
