/* flow.c - the measurements and the window of one link (method in flow.h). Without the window, bulk
 * data would fill long queues in the network and delay every urgent message. */
#include "wire/delivery/flow.h"

#include <string.h>

/* Lengths of half a sliding window. LEAST_HALF_US, in microseconds, is for the least round trip.
 * RATE_HALF, in rounds, is for the rate. A sliding window covers one to two halves. */
#define LEAST_HALF_US INT64_C(10000000)
#define RATE_HALF     4 /* number of rounds */
/* Number of rounds in a row after which the window reacts to a missing queue, or to a rate that
 * does not grow. */
#define FREE_ROUNDS 3
/* How the window grows while STEADY and without a queue. Below FREE_BEYOND times the bytes that
 * the link carries (delivery rate times least round trip), the window grows by an eighth in each
 * round. A larger window grows by an eighth in every sixth round. */
#define FREE_BEYOND 1.2
/* While STARTING, the window grows by half in each round as long as it is below this multiple of
 * the bytes that the link carries. */
#define START_BEYOND 1.75
/* While STARTING, the rate counts as grown if it exceeds this multiple of start_rate. Then
 * start_rate is set to the grown rate. */
#define START_GROWS 1.15
/* A queue counts as long if its waiting time exceeds this multiple of FLOW_QUEUE_US. */
#define LONG_QUEUES 3
/* A link is unsteady if the deviation of its round trips exceeds both 1 / UNSTEADY_PART of a
 * round trip and a quarter of FLOW_QUEUE_US. */
#define UNSTEADY_PART 32
/* Window of an unsteady link, as a multiple of the bytes that the link carries. RATE_START
 * applies in the phase STARTING. It also applies in the other phases until FLOW_IDLE_SAMPLES
 * probes have measured the idle link. After that, RATE_BEYOND applies. */
#define RATE_BEYOND 1.25
#define RATE_START  2.0
/* If every sample of the rate was taken while there was too little to send, the rate is only a
 * lower bound. It says nothing about a message that has more bytes than this multiple of
 * sampled_bytes. */
#define SAMPLE_BEYOND 2

void flow_round_trip_add(struct flow_round_trip *r, int64_t took_us)
{
	if (took_us < 1)
		took_us = 1;
	if (r->smoothed_us == 0) {
		r->smoothed_us = took_us;
		r->deviation_us = took_us / 2;
		return;
	}
	int64_t off = took_us - r->smoothed_us;
	r->deviation_us += ((off < 0 ? -off : off) - r->deviation_us) / 4;
	r->smoothed_us += off / 8;
	if (r->smoothed_us < 1)
		r->smoothed_us = 1;
}

int64_t flow_overdue_us(const struct flow_round_trip *r)
{
	if (r->smoothed_us == 0)
		return FLOW_FIRST_US;
	return r->smoothed_us + 4 * r->deviation_us + FLOW_BUSY_US;
}

void flow_init(struct flow *f)
{
	static const struct flow_limits any = {FLOW_NEAR, SIZE_MAX / 2, 0, SIZE_MAX / 2};
	memset(f, 0, sizeof(*f));
	f->least_us.now = f->least_us.before = -1;
	f->rate.now = f->rate.before = -1;
	f->limited = true;
	flow_start(f, &any);
}

void flow_start(struct flow *f, const struct flow_limits *limits)
{
	f->limits = *limits;
	f->window = limits->first_bytes;
	f->phase = FLOW_STARTING;
	f->held_back = f->had_loss = f->had_bulk = f->urgent_waits = false;
	f->ramp = 0;
	f->free_rounds = 0;
	f->start_rate = 0;
	f->quiet_rounds = 0;
	f->round_least_us = -1;
	f->round_ends = f->delivered;
}

/* ---- measurements ---- */

static void turn_window(struct flow_window *w, int64_t at, int64_t half)
{
	if (at - w->since < half)
		return;
	w->before = at - w->since < 2 * half ? w->now : -1;
	w->now = -1;
	w->since = at;
}

static void add_least(struct flow *f, int64_t took_us, int64_t now_us)
{
	/* After a pause longer than the sliding window, both halves of the window are empty.
	 * Until the next sample, the least round trip from before the pause is kept. */
	int64_t kept = flow_least_us(f);
	turn_window(&f->least_us, now_us, LEAST_HALF_US);
	if (f->least_us.now < 0 && f->least_us.before < 0 && kept > 0)
		f->least_us.before = kept;
	if (f->least_us.now < 0 || took_us < f->least_us.now)
		f->least_us.now = took_us;
	if (took_us <= flow_least_us(f) + FLOW_QUEUE_US / 8)
		f->least_seen_us = now_us;
}

int64_t flow_least_us(const struct flow *f)
{
	const struct flow_window *w = &f->least_us;
	if (w->now < 0)
		return w->before < 0 ? 0 : w->before;
	return w->before < 0 || w->now < w->before ? w->now : w->before;
}

uint64_t flow_bytes_per_s(const struct flow *f)
{
	int64_t most = f->rate.now > f->rate.before ? f->rate.now : f->rate.before;
	return most < 0 ? 0 : (uint64_t)most;
}

int64_t flow_drain_us(const struct flow *f)
{
	uint64_t rate = flow_bytes_per_s(f);
	if (rate == 0 && f->limits.kind == FLOW_FAR)
		rate = FLOW_SLOW_BYTES_PER_S;
	return rate == 0 ? 0 : (int64_t)((double)f->under_way * 1e6 / (double)rate);
}

static void add_sample(struct flow *f, int64_t took_us, int64_t now_us)
{
	flow_round_trip_add(&f->round_trip, took_us);
	add_least(f, took_us, now_us);
}

/* Adds the round trip of a probe on an idle link. RFC 6298 would begin with a deviation of half a
 * round trip. This initial value would take about ten samples to fade. Until then every far link
 * would look unsteady. Therefore the first samples are averaged plainly. */
static void add_idle(struct flow *f, int64_t took_us)
{
	const int64_t off = took_us - f->idle.smoothed_us, n = f->idle_samples;

	f->idle_samples += f->idle_samples < 8;
	f->idle.smoothed_us += off / (n < 8 ? n + 1 : 8);
	if (n > 0)
		f->idle.deviation_us +=
			((off < 0 ? -off : off) - f->idle.deviation_us) / (n < 4 ? n : 4);
}

void flow_sample(struct flow *f, int64_t took_us, int64_t now_us)
{
	if (took_us < 1)
		took_us = 1;
	add_sample(f, took_us, now_us);
	if (f->under_way == 0)
		add_idle(f, took_us);
	if (f->round_least_us < 0 || took_us < f->round_least_us)
		f->round_least_us = took_us;
}

void flow_left(struct flow *f, struct flow_mark *mark, size_t bytes, int64_t now_us)
{
	if (f->under_way == 0)
		f->delivered_us = f->first_us = now_us;
	*mark = (struct flow_mark){.left_us = now_us, .delivered_us = f->delivered_us,
		.first_us = f->first_us, .delivered = f->delivered,
		.limited = f->limited_until >= f->delivered};
	f->under_way += bytes;
}

void flow_gone(struct flow *f, size_t bytes)
{
	f->under_way -= bytes < f->under_way ? bytes : f->under_way;
}

void flow_back(struct flow *f, size_t bytes)
{
	f->under_way += bytes;
}

void flow_idle(struct flow *f)
{
	f->limited_until = f->delivered + f->under_way;
}

static void add_rate(struct flow *f, const struct flow_mark *mark, int64_t now_us)
{
	int64_t leaving = mark->left_us - mark->first_us, coming = now_us - mark->delivered_us;
	int64_t took = leaving > coming ? leaving : coming;
	uint64_t bytes = f->delivered - mark->delivered;
	if (took <= 0)
		return;
	int64_t rate = (int64_t)((double)bytes * 1e6 / (double)took);
	if (bytes > f->sampled_bytes)
		f->sampled_bytes = (size_t)bytes;
	if (mark->limited && rate <= (int64_t)flow_bytes_per_s(f))
		return;
	if (!mark->limited) {
		f->limited = false;
		turn_window(&f->rate, f->rounds, RATE_HALF);
	}
	if (rate > f->rate.now)
		f->rate.now = rate;
}

/* ---- the window ---- */

bool flow_may_leave(struct flow *f, size_t bytes, bool urgent)
{
	f->had_bulk = f->had_bulk || !urgent;
	size_t window = f->ramp > 0 && f->ramp < f->window ? f->ramp : f->window;
	if (urgent && f->limits.kind != FLOW_DROPS)
		window = f->limits.most_bytes;
	if (!urgent && f->urgent_waits)
		window = 0;
	if (f->under_way == 0 || (bytes <= window && f->under_way <= window - bytes))
		return true;
	f->held_back = true;
	return false;
}

/* Returns the number of bytes that the link carries in two round trips at the measured rate. A
 * round trip includes the queueing time. */
static double carried_in_two(const struct flow *f)
{
	return 2e-6 * (double)flow_bytes_per_s(f) * (double)(flow_least_us(f) + FLOW_QUEUE_US);
}

/* Before the first activation, only messages of some hundred bytes have passed. The rate of these
 * messages is so low that every activation would seem to fill the link. This function therefore
 * returns false if only small messages have passed. */
bool flow_fills(const struct flow *f, size_t bytes)
{
	const double carried = carried_in_two(f);
	if (f->limits.kind != FLOW_FAR || carried <= 0 || carried >= 1e9)
		return false;
	if (f->limited && bytes > SAMPLE_BEYOND * f->sampled_bytes)
		return false;
	return (double)bytes > carried;
}

bool flow_may_follow(struct flow *f, size_t bytes)
{
	f->urgent_waits = flow_fills(f, bytes) && (double)f->under_way > carried_in_two(f) / 2;
	return !f->urgent_waits;
}

static void set_window(struct flow *f, double bytes)
{
	const double least = (double)f->limits.least_bytes, most = (double)f->limits.most_bytes;
	f->window = (size_t)(bytes < least ? least : bytes > most ? most : bytes);
}

/* Adapts the window of a FLOW_DROPS link. The window grows by a fixed amount in a round without
 * losses, and shrinks by a factor in a round with losses. */
static void adapt_to_losses(struct flow *f)
{
	if (f->had_loss) {
		f->phase = FLOW_STEADY;
		set_window(f, (double)f->window * 0.7);
	} else if (f->held_back) {
		set_window(f, f->phase == FLOW_STARTING
				      ? 2.0 * (double)f->window
				      : (double)f->window + (double)f->limits.least_bytes);
	}
}

/* Grows the window while STARTING, if the link carries all bytes of the window (`carried`).
 * Returns false when the start is over. The start is over when the rate has stopped growing (as
 * in BBR's startup) and probes show a queue.
 *
 * A long queue ends the start sooner than a short queue. A busy peer, or TCP's own slow start, can
 * look like a queue. The start therefore lasts longer while the rate grows, or while the window
 * holds nothing back. */
static bool start_continues(struct flow *f, double queue, bool carried)
{
	const uint64_t rate = flow_bytes_per_s(f);
	f->free_rounds++;
	if ((double)rate > START_GROWS * (double)f->start_rate) {
		f->start_rate = rate;
		f->free_rounds = 0;
	}
	/* After lost packets, a connection stalls and carries less than its window, although
	 * there is no queue. In this case the window may also grow, but only after FREE_ROUNDS
	 * rounds without a queue. */
	f->quiet_rounds = f->held_back && queue < FLOW_QUEUE_US / 4.0 ? f->quiet_rounds + 1 : 0;
	if (f->held_back && (carried || f->quiet_rounds >= FREE_ROUNDS)) {
		set_window(f, 1.5 * (double)f->window);
		f->quiet_rounds = 0;
	}
	if (queue < FLOW_QUEUE_US / 2.0 || f->free_rounds == 0)
		return true;
	if (queue < LONG_QUEUES * (double)FLOW_QUEUE_US)
		return !f->held_back || f->free_rounds < FREE_ROUNDS;
	return !f->held_back && f->free_rounds < 2 * FREE_ROUNDS;
}

/* Returns true if probes cannot show a queue, because the round trip of the idle link varies too
 * much. Also returns true while too few probes have measured this variation. */
static bool is_unsteady(const struct flow *f)
{
	if (f->idle_samples < FLOW_IDLE_SAMPLES)
		return true;
	return f->idle.deviation_us > FLOW_QUEUE_US / 4 &&
	       f->idle.deviation_us > f->idle.smoothed_us / UNSTEADY_PART;
}

/* Adapts the window of an unsteady link to the link's rate, because probes cannot show the link's
 * queue. While STARTING, the window is at least twice the bytes that the link carries. STARTING
 * ends when the rate stops growing. */
static void adapt_to_rate(struct flow *f)
{
	const uint64_t rate = flow_bytes_per_s(f);
	const bool is_known = f->idle_samples >= FLOW_IDLE_SAMPLES;
	const double most_us = f->idle_samples > 0
				       ? (double)(f->idle.smoothed_us + 2 * f->idle.deviation_us)
				       : 1.5 * (double)flow_least_us(f);
	const double carried = (double)rate * 1e-6 * most_us;
	if (f->held_back)
		f->free_rounds++;
	if ((double)rate > START_GROWS * (double)f->start_rate) {
		f->start_rate = rate;
		f->free_rounds = 0;
	}
	if (f->free_rounds >= FREE_ROUNDS)
		f->phase = FLOW_STEADY;
	if (f->phase == FLOW_STEADY)
		set_window(f, (is_known ? RATE_BEYOND : RATE_START) * carried);
	else if (RATE_START * carried > (double)f->window)
		set_window(f, RATE_START * carried);
}

/* Adapts the window of a FLOW_FAR link to the link's queue. The window never falls below the bytes
 * that the link carries in the least round trip, even if other traffic keeps a queue.
 *
 * Without a visible queue, the window grows quickly to FREE_BEYOND times these bytes, and slowly
 * beyond. A larger window would be of little use. Either TCP is still slower than the window, or
 * the link is full and will soon show a queue. */
static void adapt_to_queue(struct flow *f)
{
	const double least = (double)flow_least_us(f), target = (double)FLOW_QUEUE_US;
	const double queue = (double)f->round_least_us - least;
	const double per_us = (double)flow_bytes_per_s(f) * 1e-6, carried = per_us * least;
	double window = (double)f->window;

	if (is_unsteady(f)) {
		adapt_to_rate(f);
		return;
	}
	if (f->phase == FLOW_STARTING && start_continues(f, queue, window < START_BEYOND * carried))
		return;
	if (f->phase == FLOW_STARTING) {
		f->phase = FLOW_STEADY;
		f->free_rounds = 0;
		set_window(f, carried + per_us * target / 2);
		return;
	}
	if (f->held_back || queue > target)
		window += 0.5 * per_us * (target - queue);
	f->free_rounds = f->held_back && queue < target / 2 ? f->free_rounds + 1 : 0;
	if (f->free_rounds >= FREE_ROUNDS && ((double)f->window < FREE_BEYOND * carried ||
						     f->free_rounds % (2 * FREE_ROUNDS) == 0))
		/* A link without a queue may have become faster, so the window grows at once. */
		window = 1.125 * (double)f->window;
	if (window < (double)f->window / 2)
		window = (double)f->window / 2;
	if (window < carried)
		window = carried;
	set_window(f, window);
}

/* Runs at the end of each round. A queue may hide the least round trip. If no round trip near the
 * least round trip was seen for LEAST_HALF_US / 2, this function begins to drain the link's
 * queue. It ends the draining one round later. A link that is drained twice in LEAST_HALF_US
 * always has a round trip without a queue in its sliding window. */
static void drain_if_due(struct flow *f, int64_t now_us)
{
	if (f->phase == FLOW_DRAINING) {
		f->phase = FLOW_REFILLING;
		return;
	}
	if (f->limits.kind != FLOW_FAR || !f->held_back || f->phase != FLOW_STEADY ||
	    now_us - f->least_seen_us <= LEAST_HALF_US / 2)
		return;
	f->least_seen_us = now_us;
	f->ramp = (size_t)(0.9e-6 * (double)flow_bytes_per_s(f) * (double)flow_least_us(f));
	if (f->ramp > 0)
		f->phase = FLOW_DRAINING;
}

static void end_round(struct flow *f, int64_t now_us)
{
	if (f->limits.kind == FLOW_DROPS)
		adapt_to_losses(f);
	else if (flow_wants_probes(f) && f->round_least_us >= 0 && f->ramp == 0)
		adapt_to_queue(f);
	drain_if_due(f, now_us);
	f->rounds++;
	f->round_ends = f->delivered;
	f->round_least_us = -1;
	f->held_back = f->had_loss = f->had_bulk = false;
}

bool flow_wants_probes(const struct flow *f)
{
	return f->limits.kind == FLOW_FAR && f->had_bulk;
}

void flow_lost(struct flow *f)
{
	f->had_loss = true;
}

/* While REFILLING, raises the limit `ramp` of the window by half of the acknowledged bytes. */
static void refill(struct flow *f, size_t bytes)
{
	if (f->ramp < f->window) {
		f->ramp += bytes / 2;
	} else {
		f->ramp = 0;
		f->phase = FLOW_STEADY;
	}
}

int64_t flow_arrived(struct flow *f, const struct flow_mark *mark, size_t bytes, bool again,
	int64_t now_us)
{
	const int64_t took = now_us > mark->left_us ? now_us - mark->left_us : 1;
	flow_gone(f, bytes);
	f->delivered += bytes;
	f->delivered_us = now_us;
	if (f->phase == FLOW_REFILLING)
		refill(f, bytes);
	if (again)
		return -1;
	f->first_us = mark->left_us;
	add_sample(f, took, now_us);
	add_rate(f, mark, now_us);
	if (mark->delivered >= f->round_ends)
		end_round(f, now_us);
	return took;
}
