/* device_clock_test.c - compares the device clock with a simple model, which marks the states of
 * every microsecond. Also tests that the rounded shares add up. */
#include <string.h>

#include "agent/execution/device_clock.h"
#include "base/rng.h"
#include "base/tests/test.h"

enum { SPAN = 400, ROUNDS = 3000 };

/* Returns the times of the simple model. Each microsecond counts as time of the first state that
 * is marked for it. */
static struct device_time counted(bool marks[DEVICE_OTHERS][SPAN], int from, int to)
{
	struct device_time t = { { 0 } };

	for (int at = from; at < to; at++) {
		int state = 0;

		while (state < DEVICE_OTHERS && !marks[state][at])
			state++;
		t.us[state]++;
	}
	return t;
}

static void mark(struct device_clock *x, bool marks[DEVICE_OTHERS][SPAN], struct rng *rng,
		 int begun)
{
	int state = (int)rng_below(rng, DEVICE_OTHERS);
	int from = (int)rng_below(rng, SPAN), to = from + (int)rng_below(rng, 60) - 5;

	device_clock_add(x, (enum device_state)state, from, to);
	for (int at = from > begun ? from : begun; at < to && at < SPAN; at++)
		marks[state][at] = true;
}

TEST(times_are_those_of_each_microsecond)
{
	struct rng rng;

	rng_init(&rng, 5);
	for (int round = 0; round < ROUNDS; round++) {
		struct device_clock *x = device_clock_new();
		bool marks[DEVICE_OTHERS][SPAN] = { { false } };
		int begun = 1 + (int)rng_below(&rng, 100), end = begun;

		device_clock_begin(x, begun);
		for (int period = 0; period < 3; period++) {
			struct device_time expected, got;
			int from = end;

			for (uint32_t n = rng_below(&rng, 12); n > 0; n--)
				mark(x, marks, &rng, from);
			end += 1 + (int)rng_below(&rng, 100);
			device_clock_end(x, end);
			expected = counted(marks, from, end);
			got = device_clock_last(x);
			assert_memory_equal(&got, &expected, sizeof(got));
			assert_int_equal(device_time_total_us(&got), end - from);
		}
		device_clock_free(x);
	}
}

TEST(nothing_is_measured_before_a_period_begins)
{
	struct device_clock *x = device_clock_new();
	struct device_time t;

	device_clock_add(x, DEVICE_BUSY, 5, 10);
	device_clock_end(x, 20);
	t = device_clock_last(x);
	assert_int_equal(device_time_total_us(&t), 0);
	device_clock_begin(x, 30);
	device_clock_begin(x, 40); /* changes nothing, because a period has begun */
	device_clock_end(x, 50);
	t = device_clock_last(x);
	assert_int_equal(t.us[DEVICE_OTHERS], 20);
	assert_int_equal(device_time_total_us(&t), 20);
	device_clock_forget(x);
	t = device_clock_last(x);
	assert_int_equal(device_time_total_us(&t), 0);
	device_clock_free(x);
}

TEST(shares_add_up_to_the_whole)
{
	unsigned percent[DEVICE_STATES];
	struct device_time t = { { 1, 1, 1, 0 } };
	struct rng rng;

	assert_true(device_time_percent(&t, percent));
	assert_int_equal(percent[0] + percent[1] + percent[2], 100);
	assert_int_equal(percent[DEVICE_OTHERS], 0);
	rng_init(&rng, 6);
	for (int i = 0; i < ROUNDS; i++) {
		unsigned sum = 0;

		for (int k = 0; k < DEVICE_STATES; k++)
			t.us[k] = rng_below(&rng, 3) ? rng_below(&rng, 100000) : 0;
		t.us[DEVICE_BUSY]++;
		assert_true(device_time_percent(&t, percent));
		for (int k = 0; k < DEVICE_STATES; k++) {
			double exact = 100.0 * (double)t.us[k] / (double)device_time_total_us(&t);

			sum += percent[k];
			assert_true(percent[k] > exact - 1 && percent[k] < exact + 1);
		}
		assert_int_equal(sum, 100);
	}
	memset(&t, 0, sizeof(t));
	assert_false(device_time_percent(&t, percent));
	t.us[DEVICE_HOST] = UINT64_MAX;
	assert_false(device_time_is_sane(&t));
	t = (struct device_time){ { 10, 20, 30, 40 } };
	device_time_limit(&t, 100);
	assert_int_equal(device_time_total_us(&t), 100);
	device_time_limit(&t, 50);
	for (int i = 0; i < DEVICE_STATES; i++)
		assert_int_equal(t.us[i], 5 * (i + 1));
}

/* A peer may claim any times for its tensors. The number of intervals must stay limited, and the
 * time of each state must stay within the period. */
TEST(intervals_are_limited)
{
	enum { LONG = 100 * DEVICE_CLOCK_INTERVALS };
	struct device_clock *x = device_clock_new();
	struct device_time t;
	struct rng rng;

	rng_init(&rng, 7);
	device_clock_begin(x, 1);
	for (int at = LONG; at > 0; at -= 10)
		device_clock_add(x, DEVICE_NETWORK, at, at + 2);
	assert_int_equal(device_clock_intervals(x), DEVICE_CLOCK_INTERVALS);
	for (int i = 0; i < 4 * DEVICE_CLOCK_INTERVALS; i++) {
		int from = (int)rng_below(&rng, LONG);

		device_clock_add(x, (enum device_state)rng_below(&rng, DEVICE_OTHERS), from,
				 from + 1 + (int)rng_below(&rng, 9));
		assert_true(device_clock_intervals(x) <= DEVICE_CLOCK_INTERVALS);
	}
	device_clock_end(x, LONG);
	t = device_clock_last(x);
	assert_int_equal(device_time_total_us(&t), LONG - 1);
	for (int i = 0; i < DEVICE_STATES; i++)
		assert_true(t.us[i] < LONG);
	assert_true(t.us[DEVICE_NETWORK] > 0);
	device_clock_free(x);
}
