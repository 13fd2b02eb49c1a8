/* Tests how the delay of a tensor is measured, and that a changed delay is reported early. */
#include <stdlib.h>

#include "agent/network/probe.h"
#include "agent/tensors/delay_queue.h"
#include "agent/tests/lone_agent.h"
#include "base/tests/test.h"

enum { NODES = 3, SECOND = 1000000 };

/* Makes an agent in an emulated network in which each delay is 0.2 s. The last report was at 1 s,
 * and the next report is due at 2 s. */
static int begin(void **state)
{
	struct agent *a = lone_agent_new(0, NODES);

	a->run.welcome.time_scale = 1;
	for (int i = 0; i < NODES; i++)
		a->run.times.delay_s[i] = 0.2f;
	a->modules.link_times.reported_us = SECOND;
	a->modules.link_times.due_us = 2 * SECOND;
	*state = a;
	return 0;
}

static int end(void **state)
{
	struct agent *a = *state;

	lone_agent_free(a);
	return 0;
}

/* Encodes and sends the output of the route's first node. */
static void send_output(struct agent *a, const struct route *r, bool evaluate, float *output)
{
	struct body *body = links_encode(&a->modules.links, r, 0, evaluate,
					 (struct tensor_bytes){ .at = output }, NULL);

	assert_non_null(body);
	links_send_output(&a->modules.links, r, 0, evaluate, body, SECOND);
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, end)

FIXTURE_TEST(two_double_delays_are_reported_early)
{
	struct agent *a = *state;

	link_times_delay(&a->modules.link_times, 1, 0.41, SECOND);
	assert_int_equal(a->modules.link_times.due_us, 2 * SECOND);
	/* This delay is equal to the expected delay. */
	link_times_delay(&a->modules.link_times, 2, 0.2, SECOND);
	assert_int_equal(a->modules.link_times.due_us, 2 * SECOND);
	link_times_delay(&a->modules.link_times, 1, 0.41, SECOND);
	assert_int_equal(a->modules.link_times.due_us, SECOND + SECOND / 10);
}

FIXTURE_TEST(two_half_delays_are_reported_early)
{
	struct agent *a = *state;

	a->peers.list[1].reported_s = 0.8;
	link_times_delay(&a->modules.link_times, 1, 0.8, SECOND);
	link_times_delay(&a->modules.link_times, 1, 0.8, SECOND);
	assert_int_equal(a->modules.link_times.due_us, 2 * SECOND);
	link_times_delay(&a->modules.link_times, 1, 0.39, SECOND + SECOND / 2);
	link_times_delay(&a->modules.link_times, 1, 0.2, SECOND + SECOND / 2);
	/* The report is due at once. */
	assert_int_equal(a->modules.link_times.due_us, SECOND + SECOND / 2);
}

FIXTURE_TEST(noise_is_not_reported_early)
{
	struct agent *a = *state;

	a->run.times.delay_s[1] = 0.005f;
	for (int i = 0; i < 9; i++) {
		/* This delay is four times the reported delay, but the difference is below 0.02
		 * s. */
		link_times_delay(&a->modules.link_times, 1, 0.02, SECOND);
		/* This delay is less than twice the reported delay. */
		link_times_delay(&a->modules.link_times, 2, 0.39, SECOND);
	}
	assert_int_equal(a->modules.link_times.due_us, 2 * SECOND);
}

FIXTURE_TEST(without_emulation_nothing_is_expected)
{
	struct agent *a = *state;

	a->run.welcome.time_scale = 0;
	for (int i = 0; i < 9; i++)
		link_times_delay(&a->modules.link_times, 1, 5, SECOND);
	assert_int_equal(a->modules.link_times.due_us, 2 * SECOND);
}

/* The link is cut, so the agent tries to send the tensor again and again, until 1 s. The time
 * before 1 s does not count as transfer time. */
FIXTURE_TEST(waiting_for_a_cut_link_is_no_transfer_time)
{
	struct agent *a = *state;
	struct msg_fault cut = { .fault = 1, .kind = FAULT_PARTITION, .peer = 1 };
	struct parcel p = { .to = 1, .head = { .kind = TENSOR_ACTIVATION }, .due_us = SECOND / 5 };

	assert_int_equal(fault_apply(&a->faults, &cut, 0), 0);
	assert_int_equal(delay_queue_add(a->modules.delay_queue, &p), 0);
	while (delay_queue_deadline_us(a->modules.delay_queue) < SECOND)
		/* Calls links_pump a little later than the deadline, as the agent's loop does. */
		links_pump(&a->modules.links,
			   delay_queue_deadline_us(a->modules.delay_queue) + 300);
	assert_true(a->peers.list[1].blocked);
	assert_int_equal(delay_queue_take(a->modules.delay_queue, 2 * SECOND, &p), 0);
	assert_true(p.due_us >= SECOND);
	assert_int_equal(p.due_us - p.ready_us, SECOND / 5);
}

/* An emulated link carries the bytes of one activation at a time, but the latencies of several
 * activations overlap. The time for which an activation waits for the link is not part of its
 * delay. */
FIXTURE_TEST(bytes_occupy_an_emulated_link)
{
	const struct route r = { .n_hops = 2, .nodes = { 0, 1 }, .stages = { 0, 1 } };
	const int64_t due_us[] = { SECOND + 200000, SECOND + 350000 };
	struct agent *a = *state;
	struct parcel p;

	a->progress.wire = FORMAT_FP32;
	a->held.activation = 4;
	a->run.times.bytes_s[1] = 0.15f;
	for (int i = 0; i < 2; i++)
		send_output(a, &r, false, calloc(4, sizeof(float)));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(delay_queue_take(a->modules.delay_queue, INT64_MAX, &p), 0);
		/* Allows 10 us, because the times are computed from floats. */
		assert_in_range(p.due_us, due_us[i] - 10, due_us[i] + 10);
		assert_in_range(p.due_us - p.ready_us, 199990, 200010);
		parcel_free(&p);
	}
}

/* A tensor for a node whose address is unknown is reported like a tensor on a cut link. */
FIXTURE_TEST(waiting_for_an_unknown_node_is_reported)
{
	struct agent *a = *state;
	struct parcel p = { .to = 1, .head = { .kind = TENSOR_ACTIVATION }, .due_us = SECOND };
	struct msg_stuck stuck[MSG_STUCK];
	uint32_t n = 0;

	assert_int_equal(probe_links(&a->peers, stuck, SECOND), 0);
	assert_int_equal(delay_queue_add(a->modules.delay_queue, &p), 0);
	for (int64_t now = SECOND; now < 2 * SECOND; now += SECOND / 10) {
		links_pump(&a->modules.links, now);
		n = probe_links(&a->peers, stuck, now);
		assert_int_equal(n, now > SECOND + SECOND / 5);
	}
	assert_int_equal(stuck[0].to, 1);
	assert_int_equal(stuck[0].ms, 900);
	/* When the tensor has left the queue, the link is not reported any more. */
	assert_int_equal(delay_queue_take(a->modules.delay_queue, 3 * SECOND, &p), 0);
	assert_int_equal(probe_links(&a->peers, stuck, 2 * SECOND), 0);
}

static struct parcel sent_to_one(struct agent *a, bool evaluate, uint16_t to)
{
	const struct route r = { .n_hops = 2, .nodes = { 0, to }, .stages = { 0, 1 } };
	struct parcel p;

	a->held.activation = 4;
	send_output(a, &r, evaluate, calloc(a->held.activation, sizeof(float)));
	assert_int_equal(delay_queue_take(a->modules.delay_queue, INT64_MAX, &p), 0);
	parcel_free(&p);
	return p;
}

/* An injected loss delays a tensor by its retransmissions, fifty at most. The loss does not
 * affect tensors to other nodes. Evaluations are not affected either, because the emulated
 * network does not delay evaluations. */
FIXTURE_TEST(an_injected_loss_delays_by_its_retransmissions)
{
	enum { AGAIN = SECOND / 5, TIMES = 64 };
	const struct msg_fault loss = {
		.fault = 1, .kind = FAULT_LOSS, .peer = 1, .factor = 0.99f
	};
	struct msg_tensor slice = { .kind = TENSOR_PART };
	struct agent *a = *state;
	struct parcel p;
	int64_t late, most = 0;

	rng_init(&a->peers.rng, 1);
	assert_int_equal(fault_apply(&a->faults, &loss, 0), 0);
	for (int i = 0; i < TIMES; i++) {
		p = sent_to_one(a, false, 1);
		late = p.due_us - SECOND - SECOND / 5;
		assert_true(late >= 0 && late <= 50 * AGAIN && late % AGAIN == 0);
		most = late > most ? late : most;
		assert_int_equal(sent_to_one(a, false, 2).due_us, SECOND + SECOND / 5);
		assert_int_equal(sent_to_one(a, true, 1).due_us, SECOND);
	}
	assert_int_equal(most, 50 * AGAIN);
	links_send(&a->modules.links, 2, &slice, NULL, SECOND, SECOND);
	assert_int_equal(delay_queue_take(a->modules.delay_queue, INT64_MAX, &p), 0);
	assert_int_equal(p.due_us, SECOND);
	for (int i = 0; i < TIMES && p.due_us == SECOND; i++) {
		links_send(&a->modules.links, 1, &slice, NULL, SECOND, SECOND);
		assert_int_equal(delay_queue_take(a->modules.delay_queue, INT64_MAX, &p), 0);
	}
	assert_true(p.due_us > SECOND);
}

/* A new process of a node may have sent only a few bytes. The rate of so few bytes must not
 * replace the bandwidth that the controller knows from the previous process. */
FIXTURE_TEST(few_bytes_show_no_bandwidth)
{
	struct agent *a = *state;
	struct peer *p = &a->peers.list[1];

	link_times_rate(p, 4e3, true);
	assert_float_equal(p->bandwidth, 0, 0);
	link_times_rate(p, 2e7, false);
	assert_float_equal(p->bandwidth, 2e7, 0);
	link_times_rate(p, 1e7, true);
	assert_float_equal(p->bandwidth, 2e7, 0);
	link_times_rate(p, 3e7, true);
	assert_float_equal(p->bandwidth, 3e7, 0);
	link_times_rate(p, 1e7, false);
	assert_float_equal(p->bandwidth, 1e7, 0);
}

/* The signal-to-noise ratio is measured for the first activation and the first gradient, not for
 * the following activations and gradients. */
FIXTURE_TEST(the_signal_to_noise_of_outputs_is_measured)
{
	struct agent *a = *state;
	const float *snr = a->peers.list[1].snr_db;
	float first;

	sent_to_one(a, false, 1);
	assert_true(snr[0] == 0);
	a->progress.wire = FORMAT_Q6;
	a->run.config.dim = 2;
	for (int i = 0; i < 2; i++) {
		const struct route r = { .n_hops = 2, .nodes = { 0, 1 }, .stages = { 0, 1 } };
		float *x = calloc(a->held.activation, sizeof(*x));
		struct parcel p;

		for (size_t k = 0; k < a->held.activation; k++)
			x[k] = i ? 1 : (float)(k * k) * 0.37f;
		send_output(a, &r, false, x);
		assert_int_equal(delay_queue_take(a->modules.delay_queue, INT64_MAX, &p), 0);
		parcel_free(&p);
		first = i ? first : snr[0];
	}
	assert_true(first > 20 && snr[0] == first && snr[1] == 0);
	assert_true(a->peers.list[2].snr_db[0] == 0);
}
