/* Tests how a link is measured, in virtual time. The test simulates the layers below measure.c and
 * packet_trains.c: the other node, and a link with an unlimited queue. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"

#define peers_dial played_dial
#define peers_redial played_redial
#define link_times_tell played_times_tell
#define post_peer       played_peer
#define post_probe      played_probe
#define post_send       played_send
#define tell_controller played_tell
#define packet_train_fd played_train_fd
#define packet_train_expect played_expect
#define packet_train_forget played_forget
#define packet_train_free played_free
#define packet_train_hear played_hear
#define packet_train_heard played_heard
#define packet_train_open played_open
#define packet_train_send played_train_send
#define packet_train_token played_token
#include "agent/tests/lone_agent.h"
#include "wire/bandwidth/packet_train.h"

enum {
	MS = 1000,
	SECOND = 1000000,
	PACKET = 1428, /* bytes that a packet of a train occupies on the link */
	TRAINS = 64,
	PIECES = 64,
	LATENCY_US = 10 * MS
};

static struct {
	/* The simulated link. */
	double bytes_per_s;
	int64_t answer_us; /* how long an answer waits behind traffic of the other direction */
	bool passes_trains;
	bool is_closed;      /* no connection can be made */
	int64_t down_us;     /* time at which the last session ended */
	double short_factor; /* rate measured with a short train, as a multiple of the true rate */
	/* Present state of the link, and a record of what has happened so far. */
	int64_t now_us, free_us; /* present time, and time at which the link's queue is empty */
	int64_t longest_us;      /* longest time that bytes waited in the queue */
	struct msg_packet_train_heard answers[TRAINS];
	int64_t answers_us[TRAINS];
	uint32_t packets[TRAINS], n_trains, n_answered;
	/* Times at which each piece of bulk data was sent and acknowledged. */
	int64_t sent_us[PIECES], acked_us[PIECES];
	uint32_t n_pieces;
	size_t piece_bytes;
	struct msg_measured result; /* the agent's report; id 0: none yet */
} wire;

static void enqueue(size_t bytes)
{
	wire.free_us = wire.free_us > wire.now_us ? wire.free_us : wire.now_us;
	wire.free_us += (int64_t)(1e6 * (double)bytes / wire.bytes_per_s);
	if (wire.free_us - wire.now_us > wire.longest_us)
		wire.longest_us = wire.free_us - wire.now_us;
}

int played_train_send(struct packet_train *t, const char *address,
		      const uint8_t token[PACKET_TRAIN_TOKEN_BYTES], uint32_t packets)
{
	uint32_t i = wire.n_trains++;
	struct msg_packet_train_heard *m = &wire.answers[i];

	(void)t;
	(void)address;
	assert_true(i < TRAINS);
	wire.packets[i] = packets;
	*m = (struct msg_packet_train_heard){ .from = 1 };
	memcpy(m->token, token, PACKET_TRAIN_TOKEN_BYTES);
	wire.answers_us[i] = wire.now_us + 2 * LATENCY_US + 100 * MS;
	if (!wire.passes_trains)
		return (int)packets;
	enqueue((size_t)packets * PACKET);
	m->packets = packets;
	m->bytes_per_s = (float)(wire.bytes_per_s * (packets < 100 ? wire.short_factor : 1));
	wire.answers_us[i] = wire.free_us + 2 * LATENCY_US + wire.answer_us;
	return (int)packets;
}

int played_send(struct post *p, post_peer_id id, const struct post_part *parts, size_t n,
		enum post_flags flags, int64_t now_us)
{
	(void)p;
	(void)id;
	if (flags == POST_CONTROL)
		return 0;
	assert_true(n == 2 && wire.n_pieces < PIECES);
	wire.piece_bytes = parts[1].size;
	enqueue(wire.piece_bytes);
	wire.sent_us[wire.n_pieces] = now_us;
	wire.acked_us[wire.n_pieces++] = wire.free_us + 2 * LATENCY_US;
	return 0;
}

int played_peer(const struct post *p, post_peer_id id, struct post_peer_info *out)
{
	int64_t last_us = 0; /* time of the last acknowledgement */

	(void)p;
	(void)id;
	*out = (struct post_peer_info){ .up = !wire.is_closed,
					.down_us = wire.down_us,
					.trouble = "",
					.address = "",
					.least_round_trip_us = 2 * LATENCY_US,
					.round_trip_us = 2 * LATENCY_US,
					.rto_us = 3 * LATENCY_US };
	for (uint32_t i = 0; i < wire.n_pieces; i++) {
		if (wire.acked_us[i] <= wire.now_us) {
			last_us = wire.acked_us[i];
			out->delivery_bytes_per_s = (uint64_t)wire.bytes_per_s;
			continue;
		}
		out->retained_bytes += wire.piece_bytes;
		if (!out->stalled_us)
			out->stalled_us = last_us > wire.sent_us[i] ? last_us : wire.sent_us[i];
	}
	return 0;
}

int played_probe(struct post *p, post_peer_id id, bool large, int64_t now_us)
{
	(void)p;
	(void)id;
	(void)large;
	(void)now_us;
	return 0;
}

bool played_dial(struct peers *peers, uint16_t node)
{
	return peers->list[node].dial != 0;
}

void played_redial(struct peers *peers, uint16_t node)
{
	peers->list[node].dial++;
}

void played_times_tell(struct link_times *t, int64_t now_us)
{
	(void)t;
	(void)now_us;
}

void played_tell(struct tell *t, struct msg *m, enum post_flags flags, int64_t now_us)
{
	(void)t;
	(void)flags;
	(void)now_us;
	assert_int_equal(m->type, MSG_MEASURED);
	wire.result = m->u.measured;
}

int played_open(struct packet_train **out, const char *address, struct error *err)
{
	(void)address;
	(void)err;
	*out = (struct packet_train *)&wire;
	return 0;
}

void played_token(uint8_t token[PACKET_TRAIN_TOKEN_BYTES])
{
	memset(token, 1 + (int)wire.n_trains, PACKET_TRAIN_TOKEN_BYTES);
}

int played_train_fd(const struct packet_train *t)
{
	(void)t;
	return -1;
}

void played_free(struct packet_train *t)
{
	(void)t;
}

void played_hear(struct packet_train *t)
{
	(void)t;
}

void played_expect(struct packet_train *t, const uint8_t token[PACKET_TRAIN_TOKEN_BYTES])
{
	(void)t;
	(void)token;
}

bool played_heard(struct packet_train *t, const uint8_t token[PACKET_TRAIN_TOKEN_BYTES],
		  struct packet_train_heard *out)
{
	(void)t;
	(void)token;
	(void)out;
	return false;
}

void played_forget(struct packet_train *t, const uint8_t token[PACKET_TRAIN_TOKEN_BYTES])
{
	(void)t;
	(void)token;
}

#include "agent/network/measure.c"
#include "agent/network/packet_trains.c"

static struct agent *begin(double bytes_per_s)
{
	struct agent *a = lone_agent_new(0, 2);

	a->peers.list[1].known = true;
	a->peers.list[1].dial = 1;
	rng_init(&a->peers.rng, 1);
	memset(&wire, 0, sizeof(wire));
	wire.bytes_per_s = bytes_per_s;
	wire.passes_trains = true;
	wire.short_factor = 1;
	wire.now_us = SECOND;
	return a;
}

static void end(struct agent *a)
{
	lone_agent_free(a);
}

/* Runs turns until the agent has answered an order. most_ms: time limit in the order. Returns the
 * time until the answer, us. */
static int64_t follow_it(struct agent *a, uint32_t most_ms)
{
	const int64_t began_us = wire.now_us;

	wire.result.id = 0;
	measure_begin(a->modules.measure,
		      &(struct msg_measure){ .id = 1, .to = 1, .most_ms = most_ms }, wire.now_us);
	while (wire.result.id == 0) {
		wire.now_us += 2 * MS;
		/* Answers trains in the order of their sending. */
		while (wire.n_answered < wire.n_trains &&
		       wire.answers_us[wire.n_answered] <= wire.now_us)
			packet_trains_answered(a->modules.trains, &wire.answers[wire.n_answered++]);
		measure_turn(a->modules.measure, wire.now_us);
	}
	return wire.now_us - began_us;
}

static void measure_it(struct agent *a, uint32_t most_ms)
{
	follow_it(a, most_ms);
	assert_string_equal(wire.result.text, "");
	assert_true(wire.result.reached);
}

static void assert_rate(double bytes_per_s)
{
	double ratio = (double)wire.result.bandwidth_bytes_per_s / bytes_per_s;

	assert_true(ratio > 0.99 && ratio < 1.01);
}

/* The link carries 1 Mbit/s. A long train would occupy the link for more than a second, so only
 * short trains are sent. In half of the cases an answer waits behind a short train of the other
 * direction. */
TEST(a_slow_link_gets_only_short_trains)
{
	static const uint32_t most_ms[] = { 150, 5000 };

	for (int i = 0; i < 4; i++) {
		struct agent *a = begin(125000);

		wire.answer_us = i % 2 * 550 * MS;
		measure_it(a, most_ms[i / 2]);
		assert_rate(125000);
		assert_true(wire.longest_us < 600 * MS);
		assert_int_equal(wire.n_trains, i / 2 ? 2 : 1);
		assert_int_equal(wire.n_pieces, 0);
		end(a);
	}
}

/* On this link a short train takes 2.3 s. When the answer to the train arrives, bulk data already
 * fills the link. The answer then gives the rate. */
TEST(a_late_answer_ends_the_filling)
{
	struct agent *a = begin(30000);

	measure_it(a, 150);
	assert_rate(30000);
	assert_int_equal(wire.n_trains, 1);
	assert_int_equal(wire.n_pieces, 1);
	assert_int_equal(wire.piece_bytes, 64 << 10);
	/* A late answer counts as an answer: trains are still sent after many late answers. */
	for (int i = 0; i < UNREACHED_MOST; i++) {
		wire.now_us += 10 * SECOND;
		measure_it(a, 150);
	}
	assert_int_equal(wire.n_trains, 1 + UNREACHED_MOST);
	end(a);
}

/* Because delays vary, the short train shows three times the link's rate. This rate must not be
 * reported. If the time limit is short, the first long train gives the result. */
TEST(a_fast_link_is_measured_by_long_trains)
{
	static const uint32_t most_ms[] = { 5000, 10 };

	for (int i = 0; i < 2; i++) {
		struct agent *a = begin(2e7);

		wire.short_factor = 3;
		measure_it(a, most_ms[i]);
		assert_rate(2e7);
		assert_true(wire.n_trains == 3 || i == 1);
		assert_int_equal(wire.packets[0], 48);
		assert_int_equal(wire.packets[1], 128);
		assert_int_equal(wire.packets[2], wire.n_trains > 2 ? 128 : 0);
		assert_int_equal(wire.n_pieces, 0);
		end(a);
	}
}

TEST(a_link_that_passes_no_trains_is_filled)
{
	struct agent *a = begin(5e6);

	wire.passes_trains = false;
	for (int i = 0; i <= UNREACHED_MOST; i++) {
		wire.n_pieces = 0;
		wire.now_us += 10 * SECOND;
		measure_it(a, 150);
		assert_rate(5e6);
		assert_true(wire.n_pieces > 1);
	}
	assert_int_equal(wire.n_trains, UNREACHED_MOST);
	end(a);
}

/* The first order waits for the connection for the whole time limit. Later orders to the same
 * closed port are answered soon. */
TEST(a_closed_port_is_waited_for_once)
{
	struct agent *a = begin(1e6);

	wire.is_closed = true;
	a->peers.list[1].dialed_us = wire.now_us - SECOND;
	for (int i = 0; i < 3; i++) {
		int64_t took_us = follow_it(a, 150);

		assert_false(wire.result.reached);
		assert_true(i == 0 ? took_us >= 4 * SECOND : took_us < SECOND / 2);
		assert_non_null(
			strstr(wire.result.text, i == 0 ? " within 4.0 s" : " within 0.3 s"));
	}
	/* The port opens. */
	wire.is_closed = false;
	measure_it(a, 150);
	end(a);
}

/* A link that had a session for a long time and has just lost this session gets the whole time
 * limit to connect. */
TEST(a_lost_session_has_its_time)
{
	struct agent *a = begin(1e6);

	wire.is_closed = true;
	wire.now_us = 3600 * (int64_t)SECOND;
	a->peers.list[1].dialed_us = SECOND;
	wire.down_us = wire.now_us - SECOND;
	assert_true(follow_it(a, 150) >= 4 * SECOND);
	assert_non_null(strstr(wire.result.text, " within 4.0 s"));
	/* Now the link has had no session for five seconds, so the limit is short. */
	assert_true(follow_it(a, 150) < SECOND / 2);
	end(a);
}
