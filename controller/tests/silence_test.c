#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controller/silence.h"

#define LIMIT 450000

static void punctual_agents_get_the_limit(void **state)
{
	int64_t longest = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		longest = silence_learn(longest, 100000 + i % 7 * 1000, LIMIT);
	assert_true(longest > 95000 && longest < 107000);
	assert_int_equal(silence_allowed(longest, longest, LIMIT), LIMIT);
}

static void late_words_earn_patience_which_fades(void **state)
{
	int64_t longest = silence_learn(100000, 400000, LIMIT);
	int words = 0;

	(void)state;
	assert_int_equal(longest, 400000);
	assert_int_equal(silence_allowed(longest, 100000, LIMIT), 800000);
	for (; silence_allowed(longest, 100000, LIMIT) > LIMIT; words++)
		longest = silence_learn(longest, 100000, LIMIT);
	assert_in_range(words, 40, 80); /* six seconds or so */
}

static void a_hang_teaches_nothing_and_patience_ends(void **state)
{
	(void)state;
	assert_true(silence_learn(100000, 5000000, LIMIT) < 100000);
	assert_int_equal(silence_allowed(1700000, 0, LIMIT), SILENCE_PATIENCE * LIMIT);
}

static void what_a_quarter_of_all_suffer_is_granted_to_each(void **state)
{
	int64_t five[] = { 900000, 100000, 500000, 100000, 600000 };
	int64_t nine[] = { 900000, 100000, 800000, 100000, 110000, 100000, 100000, 100000, 100000 };

	(void)state;
	assert_int_equal(silence_usual(five, 5), 600000);
	assert_int_equal(silence_usual(nine, 9), 110000); /* two late ones are fewer */
	assert_int_equal(silence_usual(five, 0), 0);
	assert_int_equal(silence_allowed(100000, 500000, LIMIT), 1000000);
}

/* Sooner than by silence alone, later where words come late, and never later than by silence. */
static void a_hang_up_is_half_a_death(void **state)
{
	(void)state;
	assert_int_equal(silence_hung_up(90000, 0, LIMIT), 2 * SILENCE_BEAT_US);
	assert_int_equal(silence_hung_up(110000, 130000, LIMIT), 260000);
	assert_int_equal(silence_hung_up(300000, 100000, LIMIT), 600000);
	assert_int_equal(silence_hung_up(3000000, 0, LIMIT), SILENCE_PATIENCE * LIMIT);
	assert_int_equal(silence_hung_up(0, 0, 150000), 150000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(punctual_agents_get_the_limit),
		cmocka_unit_test(late_words_earn_patience_which_fades),
		cmocka_unit_test(a_hang_up_is_half_a_death),
		cmocka_unit_test(a_hang_teaches_nothing_and_patience_ends),
		cmocka_unit_test(what_a_quarter_of_all_suffer_is_granted_to_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
