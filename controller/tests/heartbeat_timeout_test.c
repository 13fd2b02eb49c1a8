/* heartbeat_timeout_test.c - how long a node may be silent before it counts as dead, from its
 * round trips and the lateness of its earlier heartbeats. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controller/members/heartbeat_timeout.h"

#define LIMIT 450000
#define FAR   260000 /* round trip between Belgium and Australia */

static void punctual_agents_get_the_limit(void **state)
{
	int64_t longest = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		longest = timeout_learn(longest, 100000 + i % 7 * 1000, LIMIT);
	assert_true(longest > 95000 && longest < 107000);
	assert_int_equal(timeout_allowed(longest, longest, LIMIT, 0), LIMIT);
}

/* The last heartbeat needs at most one more: half a second and four round trips in all. */
static void and_three_round_trips(void **state)
{
	(void)state;
	assert_int_equal(timeout_allowed(100000, 100000, LIMIT, FAR), LIMIT + 3 * FAR);
	assert_int_equal(timeout_allowed(500000, 100000, LIMIT, FAR), 1000000 + 3 * FAR);
}

static void late_words_earn_patience_which_fades(void **state)
{
	int64_t longest = timeout_learn(100000, 400000, LIMIT);
	int words = 0;

	(void)state;
	assert_int_equal(longest, 400000);
	assert_int_equal(timeout_allowed(longest, 100000, LIMIT, 0), 800000);
	for (; timeout_allowed(longest, 100000, LIMIT, 0) > LIMIT; words++)
		longest = timeout_learn(longest, 100000, LIMIT);
	assert_in_range(words, 40, 80); /* about six seconds */
}

static void a_hang_teaches_nothing_and_patience_ends(void **state)
{
	(void)state;
	assert_true(timeout_learn(100000, 5000000, LIMIT) < 100000);
	assert_int_equal(timeout_allowed(1700000, 0, LIMIT, 0), TIMEOUT_PATIENCE * LIMIT);
}

/* Missing heartbeats were lost or are still on the network. They do not show that the machine
 * is late, because a late machine sends fewer. */
static void missing_words_are_no_lateness(void **state)
{
	(void)state;
	assert_int_equal(timeout_late(300000, 3), 100000);
	assert_int_equal(timeout_late(300000, 1), 300000);
	assert_int_equal(timeout_late(150000, 3), 0);
	assert_int_equal(timeout_late(0, UINT64_MAX), 0);
	assert_int_equal(timeout_late(300000, 0), 300000);
}

static void what_a_quarter_of_all_suffer_is_granted_to_each(void **state)
{
	int64_t five[] = { 900000, 100000, 500000, 100000, 600000 };
	int64_t nine[] = { 900000, 100000, 800000, 100000, 110000, 100000, 100000, 100000, 100000 };

	(void)state;
	assert_int_equal(timeout_usual(five, 5), 600000);
	/* two late values are less than a quarter */
	assert_int_equal(timeout_usual(nine, 9), 110000);
	assert_int_equal(timeout_usual(five, 0), 0);
	assert_int_equal(timeout_allowed(100000, 500000, LIMIT, 0), 1000000);
}

/* The limit is lower than for silence alone, higher where heartbeats are late, and never above that
 * for silence. */
static void a_hang_up_is_half_a_death(void **state)
{
	(void)state;
	assert_int_equal(timeout_hung_up(90000, 0, LIMIT, 0), 2 * TIMEOUT_BEAT_US);
	assert_int_equal(timeout_hung_up(90000, 0, LIMIT, FAR), 2 * TIMEOUT_BEAT_US + FAR);
	assert_int_equal(timeout_hung_up(110000, 130000, LIMIT, 0), 260000);
	assert_int_equal(timeout_hung_up(300000, 100000, LIMIT, 0), 600000);
	assert_int_equal(timeout_hung_up(3000000, 0, LIMIT, 0), TIMEOUT_PATIENCE * LIMIT);
	assert_int_equal(timeout_hung_up(0, 0, 150000, 0), 150000);
}

static void the_usual_round_trip_is_no_lost_word_s(void **state)
{
	struct timeout_rounds r = { .n = 0 };

	(void)state;
	assert_int_equal(timeout_round_trip(&r), 0);
	timeout_round(&r, FAR);
	assert_int_equal(timeout_round_trip(&r), FAR);
	for (int i = 0; i < 100; i++)
		timeout_round(&r, i % 3 ? FAR + i : 900000);
	assert_in_range(timeout_round_trip(&r), FAR, FAR + 100);
	for (int i = 0; i < TIMEOUT_ROUNDS; i++) /* a longer round trip is soon accepted */
		timeout_round(&r, 2 * FAR);
	assert_int_equal(timeout_round_trip(&r), 2 * FAR);
	for (int i = 0; i < TIMEOUT_ROUNDS; i++)
		timeout_round(&r, INT64_MAX);
	assert_int_equal(timeout_round_trip(&r), TIMEOUT_ROUND_MOST_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(punctual_agents_get_the_limit),
		cmocka_unit_test(and_three_round_trips),
		cmocka_unit_test(late_words_earn_patience_which_fades),
		cmocka_unit_test(a_hang_up_is_half_a_death),
		cmocka_unit_test(a_hang_teaches_nothing_and_patience_ends),
		cmocka_unit_test(missing_words_are_no_lateness),
		cmocka_unit_test(the_usual_round_trip_is_no_lost_word_s),
		cmocka_unit_test(what_a_quarter_of_all_suffer_is_granted_to_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
