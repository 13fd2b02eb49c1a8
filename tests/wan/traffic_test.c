/* Tests that packets arrive in order and at the times that follow from the links, and that every
 * packet is counted. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "tests/wan/traffic.h"

#define MS INT64_C(1000000)

static struct traffic *two_nodes(double latency_s, double bytes_per_s, uint64_t seed)
{
	struct traffic_options o = { .n_nodes = 2,
				     .seed = seed,
				     .queue_s = 0.2,
				     .held_max = 100000 };
	struct traffic *t = traffic_new(&o);

	assert_non_null(t);
	for (uint32_t i = 0; i < 2; i++) {
		traffic_link(t, i, 1 - i)->latency_s = latency_s;
		traffic_link(t, i, 1 - i)->bandwidth_bytes_per_s = bytes_per_s;
	}
	return t;
}

/* Sends a packet that contains `number` in its first bytes. */
static void send_one(struct traffic *t, uint32_t from, uint32_t to, size_t size, uint32_t number,
		     int64_t now)
{
	struct traffic_packet *p = traffic_packet_new(t);

	assert_non_null(p);
	p->from = from;
	p->to = to;
	p->size = size;
	memcpy(p->data, &number, sizeof(number));
	traffic_send(t, p, now);
}

/* Takes the next packet, checks that it arrives exactly when it is due, and returns this time. */
static int64_t arrive_one(struct traffic *t, uint32_t *number)
{
	int64_t due = traffic_next_ns(t);
	struct traffic_packet *p;

	assert_true(due != TRAFFIC_NEVER);
	assert_null(traffic_arrive(t, due - 1));
	p = traffic_arrive(t, due);
	if (!p)
		/* The packet has entered a downlink's queue, or was dropped. */
		return TRAFFIC_NEVER;
	assert_true(p->due_ns == due);
	memcpy(number, p->data, sizeof(*number));
	traffic_packet_free(t, p);
	return due;
}

TEST(size_over_bandwidth_and_latency)
{
	struct traffic *t = two_nodes(0.030, 1e6, 1);
	uint32_t number;

	send_one(t, 0, 1, 1000, 7, 5 * MS);
	send_one(t, 0, 1, 500, 8, 5 * MS);  /* this packet waits for the first packet */
	send_one(t, 1, 0, 1000, 9, 6 * MS); /* nothing is sent in the other direction yet */
	assert_int_equal(arrive_one(t, &number), 36 * MS);
	assert_int_equal(number, 7);
	assert_int_equal(arrive_one(t, &number), 36 * MS + MS / 2);
	assert_int_equal(number, 8);
	assert_int_equal(arrive_one(t, &number), 37 * MS);
	assert_int_equal(number, 9);
	assert_int_equal(traffic_held(t), 0);
	assert_true(traffic_next_ns(t) == TRAFFIC_NEVER);
	traffic_free(t);
}

/* At 1 MB/s each of 300 packets takes 1 ms. All are sent at once. A packet that would wait longer
 * than 0.2 s in the queue must be dropped. */
TEST(a_full_queue_drops)
{
	struct traffic *t = two_nodes(0.010, 1e6, 1);
	const struct traffic_link *l = traffic_link(t, 0, 1);
	uint32_t number;
	int64_t last = 0;

	for (uint32_t i = 0; i < 300; i++)
		send_one(t, 0, 1, 1000, i, 0);
	for (uint32_t i = 0; i < 201; i++) {
		last = arrive_one(t, &number);
		assert_int_equal(number, i);
	}
	assert_int_equal(last, 211 * MS);
	assert_int_equal(l->overflowed, 99);
	assert_int_equal(l->arrived_packets, 201);
	assert_int_equal(l->sent_bytes, 300000);
	traffic_free(t);
}

TEST(memory_has_a_limit)
{
	struct traffic_options o = { .n_nodes = 2, .seed = 1, .queue_s = 10, .held_max = 5 };
	struct traffic *t = traffic_new(&o);

	traffic_link(t, 0, 1)->latency_s = 1;
	traffic_link(t, 0, 1)->bandwidth_bytes_per_s = 1e9;
	for (uint32_t i = 0; i < 8; i++)
		send_one(t, 0, 1, 100, i, 0);
	assert_int_equal(traffic_held(t), 5);
	assert_int_equal(traffic_link(t, 0, 1)->overflowed, 3);
	traffic_free(t);
}

/* The packets are sent so far apart that none could overtake another. Each must have a delay of its
 * own, within the bounds. */
TEST(jitter_is_of_the_latency)
{
	struct traffic *t = two_nodes(0.100, 1e9, 3);
	int64_t least = INT64_MAX, most = 0, sum = 0;
	uint32_t number;

	traffic_link(t, 0, 1)->jitter = 0.3;
	for (uint32_t i = 0; i < 1000; i++) {
		int64_t sent = i * 1000 * MS, took;

		send_one(t, 0, 1, 1000, i, sent);
		took = arrive_one(t, &number) - sent;
		least = took < least ? took : least;
		most = took > most ? took : most;
		sum += took;
	}
	assert_in_range(least, 70 * MS, 72 * MS);
	assert_in_range(most, 128 * MS, 130 * MS + MS / 100);
	assert_in_range(sum / 1000, 98 * MS, 102 * MS);
	traffic_free(t);
}

TEST(jitter_keeps_the_order)
{
	struct traffic *t = two_nodes(0.100, 1e9, 3);
	uint32_t number;
	int64_t before = 0;

	traffic_link(t, 0, 1)->jitter = 0.9;
	for (uint32_t i = 0; i < 1000; i++)
		send_one(t, 0, 1, 1000, i, i * MS / 10);
	for (uint32_t i = 0; i < 1000; i++) {
		int64_t now = arrive_one(t, &number);

		assert_true(now >= before);
		assert_int_equal(number, i);
		before = now;
	}
	traffic_free(t);
}

/* The latency of a link is reduced. Later packets must still arrive after earlier ones. */
TEST(a_shorter_link_keeps_the_order)
{
	struct traffic *t = two_nodes(0.100, 1e9, 1);
	uint32_t number;

	send_one(t, 0, 1, 1000, 1, 0);
	traffic_link(t, 0, 1)->latency_s = 0.001;
	send_one(t, 0, 1, 1000, 2, MS);
	arrive_one(t, &number);
	assert_int_equal(number, 1);
	arrive_one(t, &number);
	assert_int_equal(number, 2);
	send_one(t, 0, 1, 1000, 3, 200 * MS);
	assert_in_range(arrive_one(t, &number), 201 * MS, 202 * MS);
	traffic_free(t);
}

/* Sends 20,000 packets over a link and records which are lost. After each packet, the other
 * direction carries `others` packets. */
static void lose(uint64_t seed, uint32_t others, bool *lost, uint64_t *count)
{
	struct traffic *t = two_nodes(0.001, 1e9, seed);

	traffic_link(t, 0, 1)->loss = 0.1;
	for (uint32_t i = 0; i < 20000; i++) {
		uint64_t before = traffic_link(t, 0, 1)->lost;
		struct traffic_packet *p;

		send_one(t, 0, 1, 100, i, i * MS);
		lost[i] = traffic_link(t, 0, 1)->lost > before;
		for (uint32_t k = 0; k < others; k++)
			send_one(t, 1, 0, 100, i, i * MS);
		while ((p = traffic_arrive(t, i * MS)) != NULL)
			traffic_packet_free(t, p);
	}
	*count = traffic_link(t, 0, 1)->lost;
	assert_int_equal(traffic_link(t, 1, 0)->lost, 0);
	traffic_free(t);
}

TEST(loss_is_a_share_and_repeatable)
{
	static bool one[20000], same[20000], other[20000];
	uint64_t count, n;

	lose(5, 0, one, &count);
	assert_in_range(count, 1800, 2200);
	lose(5, 2, same, &n);
	assert_memory_equal(one, same, sizeof(one));
	lose(6, 0, other, &n);
	assert_true(memcmp(one, other, sizeof(one)) != 0);
}

TEST(a_cut_drops_packets_in_transit)
{
	struct traffic *t = two_nodes(0.010, 1e9, 1);
	uint32_t number;

	send_one(t, 0, 1, 1000, 1, 0);
	traffic_link(t, 0, 1)->cut = true;
	send_one(t, 0, 1, 1000, 2, MS);
	assert_null(traffic_arrive(t, 1000 * MS));
	assert_int_equal(traffic_link(t, 0, 1)->cut_off, 2);
	assert_int_equal(traffic_held(t), 0);
	send_one(t, 1, 0, 1000, 3, 1000 * MS);
	arrive_one(t, &number);
	assert_int_equal(number, 3);
	traffic_link(t, 0, 1)->cut = false;
	send_one(t, 0, 1, 1000, 4, 2000 * MS);
	arrive_one(t, &number);
	assert_int_equal(number, 4);
	traffic_free(t);
}

TEST(a_node_that_is_away_neither_sends_nor_receives)
{
	struct traffic *t = two_nodes(0.010, 1e9, 1);

	send_one(t, 0, 1, 1000, 1, 0);
	traffic_node(t, 1)->away = true;
	send_one(t, 0, 1, 1000, 2, 0);
	send_one(t, 1, 0, 1000, 3, 0);
	assert_null(traffic_arrive(t, 1000 * MS));
	assert_int_equal(traffic_link(t, 0, 1)->cut_off, 2);
	assert_int_equal(traffic_link(t, 1, 0)->cut_off, 1);
	traffic_free(t);
}

static struct traffic *star(uint32_t n, double queue_s)
{
	struct traffic_options o = { .n_nodes = n,
				     .seed = 1,
				     .queue_s = queue_s,
				     .held_max = 100000 };
	struct traffic *t = traffic_new(&o);

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < n; j++) {
			traffic_link(t, i, j)->latency_s = 0.010;
			traffic_link(t, i, j)->bandwidth_bytes_per_s = 1e9;
		}
	}
	return t;
}

/* A node sends a packet to every other node at the same time. The packets must share the node's
 * uplink: one packet of 1,000 bytes is sent in each millisecond. Likewise, the packets to a node
 * that receives from all others must share its downlink. */
TEST(uplinks_and_downlinks_are_shared)
{
	struct traffic *t = star(4, 0.2);
	uint32_t number;

	traffic_node(t, 0)->up_bytes_per_s = 1e6;
	for (uint32_t i = 0; i < 30; i++)
		send_one(t, 0, 1 + i % 3, 1000, i, 0);
	for (uint32_t i = 0; i < 30; i++) {
		int64_t now = arrive_one(t, &number);

		assert_int_equal(number, i);
		assert_in_range(now, (i + 11) * MS, (i + 11) * MS + 1000);
	}
	traffic_node(t, 0)->down_bytes_per_s = 1e6;
	for (uint32_t i = 0; i < 30; i++)
		send_one(t, 1 + i % 3, 0, 1000, i, 1000 * MS);
	for (int arrived = 0; arrived < 30;) {
		int64_t now = arrive_one(t, &number);

		if (now == TRAFFIC_NEVER)
			continue;
		assert_in_range(now, (1011 + arrived) * MS, (1011 + arrived) * MS + 100000);
		arrived++;
	}
	assert_int_equal(traffic_held(t), 0);
	traffic_free(t);
}

/* Sends random traffic over random links. Packets must arrive in the order of their times. Every
 * packet must have arrived, be counted as dropped, or be in transit. */
TEST(every_packet_is_counted)
{
	struct traffic *t = star(6, 0.02);
	struct rng rng;
	uint64_t sent = 0, arrived = 0, dropped = 0;
	int64_t now = 0, last = 0;

	rng_init(&rng, 1);
	for (uint32_t i = 0; i < 6; i++) {
		for (uint32_t j = 0; j < 6; j++) {
			struct traffic_link *l = traffic_link(t, i, j);

			l->latency_s = 0.05 * rng_uniform(&rng);
			l->bandwidth_bytes_per_s = 1e5 + 1e6 * rng_uniform(&rng);
			l->jitter = rng_uniform(&rng);
			l->loss = 0.02;
		}
	}
	traffic_node(t, 2)->down_bytes_per_s = 4e5;
	for (uint32_t k = 0; k < 50000; k++) {
		uint32_t from = rng_below(&rng, 6), to = (from + 1 + rng_below(&rng, 5)) % 6;
		struct traffic_packet *p;

		now += rng_below(&rng, 500000);
		traffic_node(t, 3)->away = k / 5000 % 3 == 1;
		traffic_link(t, 4, 5)->cut = k / 3000 % 2 == 1;
		send_one(t, from, to, 40 + rng_below(&rng, 1461), k, now);
		sent++;
		while ((p = traffic_arrive(t, now)) != NULL) {
			assert_true(p->due_ns >= last && p->due_ns <= now);
			last = p->due_ns;
			arrived++;
			traffic_packet_free(t, p);
		}
		assert_true(traffic_next_ns(t) > now);
	}
	for (uint32_t i = 0; i < 6; i++) {
		for (uint32_t j = 0; j < 6; j++) {
			const struct traffic_link *l = traffic_link(t, i, j);

			dropped += l->lost + l->overflowed + l->cut_off;
			arrived -= l->arrived_packets;
		}
	}
	assert_int_equal(arrived, 0);
	for (uint32_t i = 0; i < 36; i++)
		arrived += traffic_link(t, i / 6, i % 6)->arrived_packets;
	assert_int_equal(sent, arrived + dropped + traffic_held(t));
	assert_true(traffic_link(t, 4, 5)->cut_off > 100 && dropped > 1000 && arrived > 20000);
	traffic_free(t);
}
