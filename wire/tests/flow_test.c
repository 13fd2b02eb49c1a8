/* Tests the measurements and the window of a flow on simulated links of known rate and delay. */
#include "wire/delivery/flow.h"

#include "base/rng.h"
#include "base/tests/test.h"

#define BYTES 10000

/* Simulates a link with a rate of `rate` bytes per second and a round trip of delay_us. Sends n
 * chunks, with at most `window` chunks under way at a time. */
static void play(struct flow *f, double rate, int64_t delay_us, unsigned window, unsigned n,
	int64_t *now_us)
{
	static struct flow_mark marks[1000];
	static int64_t back[1000];
	unsigned sent = 0, got = 0;
	int64_t free_us = *now_us;
	assert_true(n <= 1000);
	while (got < n) {
		while (sent < n && sent - got < window) {
			free_us = (free_us > *now_us ? free_us : *now_us) +
				  (int64_t)(BYTES * 1e6 / rate);
			back[sent] = free_us + delay_us;
			flow_left(f, &marks[sent++], BYTES, *now_us);
			if (sent == n)
				flow_idle(f);
		}
		*now_us = back[got];
		flow_arrived(f, &marks[got++], BYTES, false, *now_us);
	}
	assert_int_equal(f->under_way, 0);
}

TEST(round_trips_are_smoothed_as_rfc_6298_says)
{
	struct flow_round_trip r = { 0, 0 };
	assert_int_equal(flow_overdue_us(&r), FLOW_FIRST_US);
	flow_round_trip_add(&r, 80000);
	assert_int_equal(r.smoothed_us, 80000);
	assert_int_equal(r.deviation_us, 40000);
	flow_round_trip_add(&r, 160000);
	assert_int_equal(r.deviation_us, 40000 + (80000 - 40000) / 4);
	assert_int_equal(r.smoothed_us, 90000);
	assert_int_equal(flow_overdue_us(&r), 90000 + 4 * 50000 + FLOW_BUSY_US);
}

TEST(the_rate_is_the_links)
{
	struct flow f;
	int64_t now = 1000000;
	flow_init(&f);
	assert_int_equal(flow_bytes_per_s(&f), 0);
	/* 2 MB are under way. This is four times the number of bytes that fills the link. */
	play(&f, 5e6, 100000, 200, 900, &now);
	assert_in_range(flow_bytes_per_s(&f), 4800000, 5200000);
	assert_false(f.limited);
	assert_in_range(flow_least_us(&f), 100000, 105000);
	/* The link becomes slower. The flow forgets the old rate after some rounds. */
	play(&f, 1e6, 100000, 60, 900, &now);
	play(&f, 1e6, 100000, 60, 900, &now);
	assert_in_range(flow_bytes_per_s(&f), 950000, 1050000);
}

TEST(little_to_send_does_not_make_a_link_slow)
{
	struct flow f;
	int64_t now = 1000000;
	flow_init(&f);
	play(&f, 5e6, 100000, 200, 10, &now); /* too few chunks to use the whole window */
	uint64_t seen = flow_bytes_per_s(&f);
	assert_true(seen > 0 && seen < 2000000);
	play(&f, 5e6, 100000, 200, 900, &now);
	seen = flow_bytes_per_s(&f);
	for (int i = 0; i < 100; i++) {
		now += 500000;
		play(&f, 5e6, 100000, 200, 3, &now);
	}
	assert_in_range(flow_bytes_per_s(&f), seen * 9 / 10, seen * 11 / 10);
}

/* Sends a message of this size, and acknowledges it after took_us. */
static void pass_one(struct flow *f, size_t bytes, int64_t took_us, int64_t *now_us)
{
	struct flow_mark mark;
	flow_left(f, &mark, bytes, *now_us);
	flow_idle(f);
	*now_us += took_us;
	flow_arrived(f, &mark, bytes, false, *now_us);
}

/* Messages of 100 bytes show nothing about the capacity of a link. If a large message takes much
 * longer than a round trip, messages of this size fill the link. */
TEST(small_messages_do_not_show_what_fills_a_link)
{
	static const struct flow_limits far = {FLOW_FAR, 262144, 131072, 1 << 26};
	struct flow f;
	int64_t now = 1000000;
	flow_init(&f);
	flow_start(&f, &far);
	assert_false(flow_fills(&f, 1 << 20));
	for (int i = 0; i < 3; i++)
		pass_one(&f, 100, 84000, &now);
	pass_one(&f, 100, 300000, &now); /* as after a lost packet */
	assert_true(flow_bytes_per_s(&f) > 0);
	assert_false(flow_fills(&f, 6800));
	pass_one(&f, 6800, 85000, &now);
	assert_false(flow_fills(&f, 6800));
	pass_one(&f, 838000, 3500000, &now);
	assert_true(flow_fills(&f, 838000));
	assert_false(flow_fills(&f, 6800));
}

TEST(the_least_round_trip_is_forgotten_in_time)
{
	struct flow f;
	flow_init(&f);
	assert_int_equal(flow_least_us(&f), 0);
	flow_sample(&f, 50000, 0);
	for (int64_t s = 1; s <= 9; s++)
		flow_sample(&f, 90000, s * 1000000);
	assert_int_equal(flow_least_us(&f), 50000);
	for (int64_t s = 10; s <= 30; s++)
		flow_sample(&f, 90000, s * 1000000);
	assert_int_equal(flow_least_us(&f), 90000);
	/* After a long silence the old least round trip must stay until there is a new one. */
	assert_int_equal(flow_least_us(&f), 90000);
	flow_sample(&f, 95000, 500000000);
	assert_int_equal(flow_least_us(&f), 90000);
	flow_sample(&f, 95000, 511000000);
	flow_sample(&f, 95000, 522000000);
	assert_int_equal(flow_least_us(&f), 95000);
}

/* Simulates a far link that keeps order and has an unlimited queue. The link's delay varies by
 * the share `jitter`. Sends as much bulk data as the window allows. Returns the bytes delivered.
 * *queue_us: the longest queueing time in the second half of the simulation. */
static uint64_t fill_unsteady(struct flow *f, double rate, int64_t delay_us, double jitter,
			      int64_t for_us, int64_t *now_us, int64_t *queue_us)
{
	struct rng rng;
	int64_t last_us = 0;
	enum { RING = 1 << 14 };
	static struct flow_mark marks[RING];
	static int64_t back[RING];
	unsigned sent = 0, got = 0;
	const int64_t until = *now_us + for_us, half = *now_us + for_us / 2;
	int64_t free_us = *now_us;
	rng_init(&rng, 7);
	*queue_us = 0;
	while (*now_us < until) {
		while (sent - got < RING && flow_may_leave(f, BYTES, false)) {
			if (free_us < *now_us)
				free_us = *now_us;
			if (*now_us > half && free_us - *now_us > *queue_us)
				*queue_us = free_us - *now_us;
			free_us += (int64_t)(BYTES * 1e6 / rate);
			back[sent % RING] =
				free_us + (int64_t)((double)delay_us *
						    (1 + jitter * (2 * rng_uniform(&rng) - 1)));
			if (back[sent % RING] < last_us)
				back[sent % RING] = last_us;
			last_us = back[sent % RING];
			flow_left(f, &marks[sent++ % RING], BYTES, *now_us);
		}
		*now_us = back[got % RING];
		if (got % 16 == 0) /* a probe was sent at the same time as every 16th chunk */
			flow_sample(f, *now_us - marks[got % RING].left_us, *now_us);
		flow_arrived(f, &marks[got++ % RING], BYTES, false, *now_us);
	}
	uint64_t through = (uint64_t)got * BYTES;
	for (; got < sent; got++) {
		*now_us = back[got % RING];
		flow_arrived(f, &marks[got % RING], BYTES, false, *now_us);
	}
	return through;
}

static uint64_t fill(struct flow *f, double rate, int64_t delay_us, int64_t for_us, int64_t *now_us,
	int64_t *queue_us)
{
	return fill_unsteady(f, rate, delay_us, 0, for_us, now_us, queue_us);
}

static const struct flow_limits far = {FLOW_FAR, 131072, 131072, 64 << 20};

/* On links that are long or short, fast or slow, the flow must use the link fully and keep the
 * link's queue short. The link must not count as unsteady, although there were few probes before
 * the bulk data. */
TEST(the_window_fills_the_link_and_no_queue)
{
	static const double rates[] = {1.25e6, 12.5e6, 62.5e6};
	static const int64_t delays[] = { 10000, 80000, 150000, 300000 };
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < 4; k++) {
			struct flow f;
			int64_t now = 1000000, queue;
			flow_init(&f);
			flow_start(&f, &far);
			for (int n = 0; n < FLOW_IDLE_SAMPLES; n++, now += 600000)
				flow_sample(&f, delays[k], now);
			/* The first ten seconds, in which the window grows, are not checked. */
			fill(&f, rates[i], delays[k], 10000000, &now, &queue);
			now += 100000;
			uint64_t through = fill(&f, rates[i], delays[k], 60000000, &now, &queue);
			assert_true((double)through > 0.9 * rates[i] * 60);
			/* On a slow link, even the smallest window causes a queue of this
			 * length. */
			int64_t least = (int64_t)(131072 * 1e6 / rates[i]);
			int64_t most = 2 * FLOW_QUEUE_US + delays[k] / 10;
			assert_true(queue <= (least > most ? least : most));
		}
	}
}

TEST(the_window_follows_the_link)
{
	struct flow f;
	int64_t now = 1000000, queue;
	flow_init(&f);
	flow_start(&f, &far);
	for (int n = 0; n < FLOW_IDLE_SAMPLES; n++)
		flow_sample(&f, 100000, now);
	fill(&f, 10e6, 100000, 10000000, &now, &queue);
	const size_t before = f.window;
	fill(&f, 40e6, 100000, 10000000, &now, &queue); /* the link becomes four times as fast */
	assert_true(f.window > 3 * before);
	fill(&f, 5e6, 100000, 30000000, &now, &queue); /* the link becomes slow again */
	assert_true(f.window < before);
	assert_true(queue < 4 * FLOW_QUEUE_US);
}

/* Fills a link whose round trip varies, after some probes on the idle link. The flow must use the
 * link fully, with a queue shorter than a round trip. After too few probes, a queue of two and a
 * half round trips is allowed. */
static void check_unsteady(double jitter, int64_t delay_us, int probes)
{
	const int64_t most = probes < FLOW_IDLE_SAMPLES ? 5 * delay_us / 2 : delay_us;
	struct flow f;
	struct rng rng;
	int64_t now = 1000000, queue;

	rng_init(&rng, 11);
	flow_init(&f);
	flow_start(&f, &far);
	for (int n = 0; n < probes; n++, now += 100000)
		flow_sample(&f,
			    (int64_t)((double)delay_us *
				      (1 + jitter * (2 * rng_uniform(&rng) - 1))),
			    now);
	fill_unsteady(&f, 12.5e6, delay_us, jitter, 10000000, &now, &queue);
	now += 100000;
	uint64_t through = fill_unsteady(&f, 12.5e6, delay_us, jitter, 30000000, &now, &queue);
	assert_true((double)through > 0.85 * 12.5e6 * 30);
	assert_true(queue < most + 2 * FLOW_QUEUE_US);
}

/* If the round trip of a link varies, a late packet must not count as a sign of a queue. */
TEST(the_window_fills_an_unsteady_link)
{
	static const double jitters[] = {0.1, 0.3};
	static const int64_t delays[] = { 40000, 150000, 300000 };
	static const int probes[] = { 0, 1, 2, FLOW_IDLE_SAMPLES, 30 };

	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < 3; k++)
			for (unsigned n = 0; n < 5; n++)
				check_unsteady(jitters[i], delays[k], probes[n]);
}

TEST(urgent_messages_do_not_wait_for_the_window)
{
	struct flow f;
	struct flow_mark mark;
	flow_init(&f);
	flow_start(&f, &far);
	while (flow_may_leave(&f, BYTES, false))
		flow_left(&f, &mark, BYTES, 1);
	assert_true(f.under_way <= f.window);
	assert_true(flow_may_leave(&f, BYTES, true));
	/* A FLOW_DROPS link has one window for all messages, also for urgent messages. */
	const struct flow_limits drops = {FLOW_DROPS, 131072, 65536, 1 << 20};
	flow_gone(&f, f.under_way);
	flow_start(&f, &drops);
	while (flow_may_leave(&f, BYTES, true))
		flow_left(&f, &mark, BYTES, 1);
	assert_true(f.under_way <= 131072);
}

/* As long as the rate is unknown, the time limit of a first large message must suffice for a slow
 * link. */
TEST(an_unknown_rate_counts_as_slow)
{
	struct flow f;
	struct flow_mark mark;
	flow_init(&f);
	flow_left(&f, &mark, 2 * FLOW_SLOW_BYTES_PER_S, 1);
	assert_int_equal(flow_drain_us(&f), 0); /* the assumption is not made on a FLOW_NEAR link */
	flow_start(&f, &far);
	assert_int_equal(flow_drain_us(&f), 2000000);
	flow_arrived(&f, &mark, FLOW_SLOW_BYTES_PER_S, false, 100001);
	/* This is the time that the bytes under way need at the measured rate. */
	assert_int_equal(flow_drain_us(&f), 100000);
}
