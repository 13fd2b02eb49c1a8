/* Tests which time an agent reports after several timed passes. The test simulates the clock of
 * elapsed time and the clock of processor time. */
#include <math.h>
#include <stdint.h>

#include "base/tests/test.h"

#define clock_monotonic_us played_monotonic_us
#define clock_process_us   played_process_us
#include "agent/execution/compute.c"

static int64_t monotonic_us, process_us;

int64_t played_monotonic_us(void)
{
	return monotonic_us;
}

int64_t played_process_us(void)
{
	return process_us;
}

enum { PASSES = 3 };

/* Returns the time in seconds that the agent reports for passes with these elapsed times and
 * processor times (ms). */
static double reported_s(double quota, const int elapsed_ms[PASSES], const int used_ms[PASSES])
{
	struct compute c = { .setup.quota = quota };
	struct pass_times times = { .count = 0 };

	for (int i = 0; i < PASSES; i++) {
		struct pass_start start = pass_start();

		monotonic_us += elapsed_ms[i] * 1000;
		process_us += used_ms[i] * 1000;
		add_pass(&c, &times, start);
	}
	return pass_s(&c, &times);
}

/* Other programs can only lengthen a pass, so the shortest time is the correct one. */
TEST(without_a_quota_the_shortest_pass_counts)
{
	assert_float_equal(reported_s(0, (int[]){ 50, 20, 40 }, (int[]){ 9, 9, 9 }), 0.020, 1e-9);
}

/* The kernel stops passes under a quota a varying number of times. The first pass also prepares
 * the matrix products, so it does not count. */
TEST(with_a_quota_the_mean_of_the_later_passes_counts)
{
	assert_float_equal(reported_s(0.5, (int[]){ 90, 20, 40 }, (int[]){ 9, 9, 9 }), 0.030, 1e-9);
}

/* After an idle period a short pass runs without a pause, and the node is stopped later. */
TEST(with_a_quota_a_pass_takes_its_processor_time_over_the_quota)
{
	assert_float_equal(reported_s(0.1, (int[]){ 90, 20, 40 }, (int[]){ 9, 6, 2 }), 0.050, 1e-9);
}
