/* Tests the bandwidth that is computed from arrival times. Simulated links delay, lose or bunch
 * packets behind a bottleneck. */
#include "wire/bandwidth/dispersion.h"

#include "base/rng.h"
#include "base/tests/test.h"

#define BYTES 1400
#define MOST  512

/* A simulated bottleneck and its effect on a train of n packets. */
struct bottleneck {
	double bytes_per_s, latency_s, jitter, loss;
	double pause_s; /* one pause of the sender in each train */
	double busy_s;  /* interval at which the busy receiver reports packets together */
};

static uint32_t play(const struct bottleneck *w, uint32_t n, struct rng *rng, int64_t *at_ns)
{
	double sent = 0, free = 0, due = 0;
	const uint32_t rests = (uint32_t)(rng_uniform(rng) * n);
	uint32_t arrived = 0;
	for (uint32_t i = 0; i < n; i++) {
		sent += 2e-6 + (i == rests ? w->pause_s : 0);
		if (rng_uniform(rng) < w->loss)
			continue;
		free = (free > sent ? free : sent) + BYTES / w->bytes_per_s;
		double at = free + w->latency_s * (1 + w->jitter * (2 * rng_uniform(rng) - 1));
		due = at > due ? at : due; /* packets do not overtake each other */
		at = w->busy_s > 0 ? w->busy_s * (double)(int64_t)(due / w->busy_s + 1) : due;
		at_ns[arrived++] = (int64_t)(1e9 * at);
	}
	return arrived;
}

/* Measures the bandwidth many times. Each measurement sends trains of n packets until two trains
 * agree. Returns the largest factor between a result and the true bandwidth. */
static double worst(const struct bottleneck *w, uint32_t n)
{
	struct rng rng;
	double worst = 1;
	rng_init(&rng, 7);
	for (int i = 0; i < 200; i++) {
		double rates[8], rate = 0, off;
		bool settled = false;
		for (uint32_t k = 0; k < 8 && !settled; k++) {
			int64_t at_ns[MOST];
			const uint32_t arrived = play(w, n, &rng, at_ns);
			rates[k] = dispersion_rate(at_ns, arrived, BYTES);
			rate = dispersion_settle(rates, k + 1, &settled);
		}
		off = rate / w->bytes_per_s;
		off = off < 1 ? 1 / off : off;
		worst = off > worst ? off : worst;
	}
	return worst;
}

TEST(clean_links_are_exact)
{
	for (double rate = 1e5; rate < 1e8; rate *= 3)
		assert_true(worst(&(struct bottleneck){rate, 0.1, 0, 0, 0, 0}, 128) < 1.01);
}

TEST(lost_packets_do_not_matter)
{
	assert_true(worst(&(struct bottleneck){1e7, 0.13, 0, 0.02, 0, 0}, 128) < 1.05);
	assert_true(worst(&(struct bottleneck){4e7, 0.03, 0, 0.05, 0, 0}, 128) < 1.08);
}

/* A short queue drops the end of a train. The other packets still arrive at the same intervals, so
 * the result must be the same. */
TEST(a_short_queue_does_not_matter)
{
	int64_t at_ns[100];
	for (int i = 0; i < 100; i++)
		at_ns[i] = (int64_t)i * 140000;
	assert_float_equal(dispersion_rate(at_ns, 100, BYTES), 1e7, 1);
	/* 18 packets fill a queue of 200 ms at 1 Mbit/s. */
	assert_float_equal(dispersion_rate(at_ns, 18, BYTES), 1e7, 1);
}

/* These arrival times were recorded behind a link of 1 Mbit/s. The queue of this link takes 200
 * ms and holds 18 packets. Other messages waited in the queue, so only the first packets of each
 * train of 48 passed. TCP would carry 1,378 bytes of payload in the time of one packet. */
TEST(few_packets_show_the_rate_of_a_slow_link)
{
	static const int64_t four[] = { 0, 11439000, 22852000, 34277000 },
			     six[] = { 0, 11415000, 22850000, 34402000, 45691000, 57115000 },
			     eleven[] = { 0,        11418000,  22841000, 34257000,
					  45684000, 57118000,  68538000, 79957000,
					  91383000, 102802000, 114225000 };
	const double rate = 125000.0 * 1448 / 1500;

	assert_float_equal(dispersion_rate(four, 4, 1378), rate, 1200);
	assert_float_equal(dispersion_rate(six, 6, 1378), rate, 1200);
	assert_float_equal(dispersion_rate(eleven, 11, 1378), rate, 1200);
}

/* A rate limiter passes a burst of 11 packets at the full 100 MB/s and drops the rest of the train.
 * The burst must give no result. */
TEST(a_short_burst_is_not_a_fast_link)
{
	int64_t at_ns[16];

	for (int i = 0; i < 16; i++)
		at_ns[i] = (int64_t)i * 14000;
	assert_true(dispersion_rate(at_ns, 11, BYTES) == 0);
	assert_float_equal(dispersion_rate(at_ns, 16, BYTES), 1e8, 1);
}

TEST(a_sender_that_pauses_is_not_a_slow_link)
{
	assert_true(worst(&(struct bottleneck){2e7, 0.05, 0, 0, 0.02, 0}, 128) < 1.2);
	assert_true(worst(&(struct bottleneck){4e7, 0.05, 0, 0, 0.02, 0}, 256) < 1.2);
}

TEST(packets_that_come_in_bursts_are_not_a_fast_link)
{
	assert_true(worst(&(struct bottleneck){1e7, 0.1, 0, 0, 0, 0.0005}, 128) < 1.2);
	assert_true(worst(&(struct bottleneck){4e7, 0.03, 0, 0, 0, 0.0002}, 256) < 1.2);
}

/* A late packet delays all packets behind it, because packets keep their order. Nevertheless the
 * result must differ from the true bandwidth by less than a factor of 1.5. */
TEST(latencies_that_vary_by_more_than_the_train_is_long)
{
	assert_true(worst(&(struct bottleneck){1e7, 0.13, 0.3, 0.01, 0, 0}, 256) < 1.5);
	assert_true(worst(&(struct bottleneck){3e7, 0.035, 0.3, 0.01, 0, 0}, 256) < 1.5);
}

TEST(too_few_say_nothing)
{
	int64_t at_ns[DISPERSION_LEAST] = {0};
	bool settled = true;
	assert_true(dispersion_rate(at_ns, DISPERSION_LEAST - 1, BYTES) == 0);
	assert_true(dispersion_settle(NULL, 0, &settled) == 0);
	assert_false(settled);
}

/* Even if all packets have the same time, or the clock was set back, the result must be finite. */
TEST(clocks_may_say_anything)
{
	int64_t at_ns[64];
	for (int i = 0; i < 64; i++)
		at_ns[i] = 5;
	assert_true(dispersion_rate(at_ns, 64, BYTES) <= BYTES * 1e7);
	for (int i = 0; i < 64; i++)
		at_ns[i] = -1000000000LL * i;
	assert_true(dispersion_rate(at_ns, 64, BYTES) <= BYTES * 1e7);
}

TEST(two_that_agree_settle_it_and_else_the_median_counts)
{
	const double one[] = { 10 }, apart[] = { 10, 20, 13 }, alike[] = { 40, 10, 11 },
		     even[] = { 10, 40, 20, 2 };
	bool settled;
	assert_float_equal(dispersion_settle(one, 1, &settled), 10, 1e-9);
	assert_false(settled);
	assert_float_equal(dispersion_settle(apart, 3, &settled), 13, 1e-9);
	assert_false(settled);
	assert_float_equal(dispersion_settle(alike, 3, &settled), 10.5, 1e-9);
	assert_true(settled);
	assert_float_equal(dispersion_settle(even, 4, &settled), 15, 1e-9);
	assert_false(settled);
}
