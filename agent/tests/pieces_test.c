/* Tests routes, faults, the delay queue, slices and fetches. A simple model gives the expected
 * results. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shared/fault.h"
#include "agent/weights/fetch.h"
#include "agent/tensors/delay_queue.h"
#include "agent/sums/slices.h"
#include "agent/shared/route.h"
#include "base/rng.h"
#include "model/hash.h"
#include "model/squares.h"
#include "base/tests/test.h"
#include "wire/chain.h"

/* ---- route ---- */

static const struct route_limits limits = { .n_nodes = 10, .n_stages = 4, .n_shards = 3 };

static const char *read_route(uint32_t n, const uint16_t *nodes, const uint8_t *stages,
			      struct route *r)
{
	struct route m = { .microbatch = 3, .attempt = 1, .shard = 2, .wave = 4, .n_hops = n };

	memcpy(m.nodes, nodes, n * sizeof(*nodes));
	memcpy(m.stages, stages, n);
	return route_read(r, &m, &limits);
}

TEST(test_positions)
{
	static const uint16_t nodes[] = { 7, 2, 5 };
	static const uint8_t stages[] = { 0, 2, 1 };
	static const enum task_kind kinds[] = { TASK_FORWARD, TASK_FORWARD, TASK_FORWARD,
						TASK_LOSS, TASK_BACKWARD, TASK_BACKWARD,
						TASK_BACKWARD };
	static const uint16_t at[] = { 7, 2, 5, 7, 5, 2, 7 };
	struct route r, again;

	assert_null(read_route(3, nodes, stages, &r));
	assert_int_equal(route_last(&r, false), 6);
	assert_int_equal(route_last(&r, true), 3);
	for (uint32_t t = 0; t <= 6; t++) {
		assert_int_equal(route_kind(&r, t), kinds[t]);
		assert_int_equal(route_node(&r, t), at[t]);
		assert_int_equal(route_stage(&r, t), stages[chain_hop(3, t)]);
	}
	assert_null(route_read(&again, &r, &limits));
	assert_true(route_equal(&r, &again));
	again.nodes[1] = 3;
	assert_false(route_equal(&r, &again));
	again = r;
	again.attempt++;
	assert_false(route_equal(&r, &again));
}

TEST(test_bad_routes)
{
	static const uint8_t plain[] = { 0, 1, 2, 3, 3 };
	struct route r;

	assert_non_null(read_route(0, (uint16_t[]) { 1 }, plain, &r));
	assert_non_null(read_route(5, (uint16_t[]) { 1, 2, 3, 4, 5 }, plain, &r));
	assert_non_null(read_route(2, (uint16_t[]) { 1, 10 }, plain, &r));
	assert_non_null(read_route(2, (uint16_t[]) { 1, 1 }, plain, &r));
	assert_non_null(read_route(2, (uint16_t[]) { 1, 2 }, (uint8_t[]) { 1, 2 }, &r));
	assert_non_null(read_route(2, (uint16_t[]) { 1, 2 }, (uint8_t[]) { 0, 4 }, &r));
	assert_non_null(read_route(3, (uint16_t[]) { 1, 2, 3 }, (uint8_t[]) { 0, 2, 2 }, &r));
	assert_null(read_route(1, (uint16_t[]) { 9 }, plain, &r));
}

/* A new route continues the old route if only nodes are replaced, even if the data node is
 * replaced. The microbatch restarts if the stages, the data or the attempt of the last restart
 * change. */
TEST(test_continuation)
{
	const struct route was = { .microbatch = 3, .attempt = 2, .since = 1, .shard = 1, .wave = 4,
				   .n_hops = 3, .nodes = { 1, 2, 3 }, .stages = { 0, 2, 1 } };
	struct route m = was;
	struct route r = was;

	r.attempt = 3;
	r.nodes[0] = 5;
	r.nodes[2] = 7;
	assert_true(route_continues(&was, &r));
	assert_int_equal(route_find(&r, 7), 2);
	assert_int_equal(route_find(&r, 3), -1);
	r.since = 3;
	assert_false(route_continues(&was, &r));
	r.since = 1;
	r.wave = 5;
	assert_false(route_continues(&was, &r));
	r = was;
	r.stages[1] = 1;
	r.stages[2] = 2;
	assert_false(route_continues(&was, &r));
	/* An unknown route cannot be continued. */
	assert_false(route_continues(&(struct route){ .microbatch = 3 }, &was));
	assert_null(route_read(&r, &m, &(struct route_limits){ 10, 4, 4 }));
	assert_int_equal(r.since, 1);
	m.since = 3;
	assert_non_null(route_read(&r, &m, &(struct route_limits){ 10, 4, 4 }));
}

/* ---- fault ---- */

static int apply(struct faults *f, uint32_t id, uint8_t kind, int32_t peer, float factor,
		 uint32_t ttl_ms)
{
	const struct msg_fault m = { id, kind, peer, factor, ttl_ms };

	return fault_apply(f, &m, 1000);
}

TEST(test_faults)
{
	struct faults f = { 0 };

	assert_true(fault_deadline_us(&f) == INT64_MAX);
	assert_int_equal(apply(&f, 1, FAULT_SLOW_NODE, -1, 3, 10), 0);
	assert_int_equal(apply(&f, 2, FAULT_SLOW_NODE, -1, 2, 20), 0);
	assert_int_equal(apply(&f, 3, FAULT_SLOW_LINK, 4, 5, 0), 0);
	assert_int_equal(apply(&f, 4, FAULT_LOSS, -1, 0.5f, 0), 0);
	assert_int_equal(apply(&f, 5, FAULT_LOSS, 4, 0.5f, 0), 0);
	assert_int_equal(apply(&f, 6, FAULT_PARTITION, 2, 0, 0), 0);
	assert_true(fault_node_factor(&f) == 6);
	assert_true(fault_link_factor(&f, 4) == 5);
	assert_true(fault_link_factor(&f, 3) == 1);
	assert_true(fault_loss(&f, 4) == 0.75);
	assert_true(fault_loss(&f, 3) == 0.5);
	assert_true(fault_partitioned(&f, 2));
	assert_false(fault_partitioned(&f, 3));
	assert_true(fault_deadline_us(&f) == 11000);
	assert_false(fault_expire(&f, 10999));
	assert_true(fault_expire(&f, 11000));
	assert_true(fault_node_factor(&f) == 2);
	/* A new fault replaces a fault that has the same number. FAULT_NONE heals the fault with
	 * this number. */
	assert_int_equal(apply(&f, 2, FAULT_SLOW_NODE, -1, 7, 0), 0);
	assert_true(fault_node_factor(&f) == 7);
	assert_int_equal(apply(&f, 2, FAULT_NONE, -1, 0, 0), 0);
	assert_true(fault_node_factor(&f) == 1);
	assert_int_equal(apply(&f, 9, FAULT_SLOW_NODE, -1, 0.5f, 0), -EINVAL);
	assert_int_equal(apply(&f, 9, FAULT_LOSS, -1, 1.0f, 0), -EINVAL);
	assert_int_equal(apply(&f, 9, FAULT_HANG, -1, 1.0f, 0), -EINVAL);
	for (uint32_t i = f.n; i < FAULT_MOST; i++)
		assert_int_equal(apply(&f, 100 + i, FAULT_PARTITION, 9, 0, 0), 0);
	assert_int_equal(apply(&f, 99, FAULT_PARTITION, 9, 0, 0), -ENOSPC);
}

/* ---- delay queue ---- */

static bool is_addressed_to(const struct parcel *p, const void *context)
{
	return p->to == *(const uint16_t *)context;
}

TEST(test_hold_order)
{
	struct delay_queue *h;
	struct rng g;

	rng_init(&g, 3);
	h = delay_queue_new();
	for (int round = 0; round < 50; round++) {
		int64_t last_due = -1;
		uint32_t n = rng_below(&g, 200), last = 0, dropped = 0, taken = 0;
		const uint16_t gone = 3;
		struct parcel p;

		for (uint32_t i = 0; i < n; i++) {
			memset(&p, 0, sizeof(p));
			p.to = (uint16_t)rng_below(&g, 8);
			p.due_us = rng_below(&g, 20);
			p.head.index = i;
			p.body = body_new(malloc(8), 8, true);
			dropped += p.to == gone;
			assert_int_equal(delay_queue_add(h, &p), 0);
		}
		assert_int_equal(delay_queue_count(h), n);
		assert_int_equal(delay_queue_drop(h, is_addressed_to, &gone), dropped);
		assert_int_equal(delay_queue_take(h, -1, &p), -EAGAIN);
		while (delay_queue_take(h, 19, &p) == 0) {
			assert_true(p.due_us > last_due ||
				    (p.due_us == last_due && p.head.index > last));
			assert_int_not_equal(p.to, gone);
			last_due = p.due_us;
			last = p.head.index;
			parcel_free(&p);
			taken++;
		}
		assert_int_equal(taken, n - dropped);
		assert_true(delay_queue_deadline_us(h) == INT64_MAX);
	}
	delay_queue_free(h);
}

/* ---- slices ---- */

enum { MOST = 7, FLOATS = 103 };

/* The stage has two tensors, which begin at these floats. */
static const size_t starts[] = { 0, 40 };
static const struct sum_codec fp32 = { FORMAT_FP32, starts, 2 };

typedef int put_function(struct slices *r, uint16_t from, uint32_t slice, uint64_t offset,
			 const void *body, size_t bytes);

/* Puts a slice in pieces of 1 to 9 units, in a scattered order. Each piece is put twice. unit: size
 * of a unit, bytes. */
static void put_scattered(put_function *put, struct slices *r, uint16_t from, uint32_t slice,
			  const void *body, size_t unit)
{
	size_t begins[4 * FLOATS + 1], n = 0, all = slices_bytes(r, slice);
	struct rng rng;

	rng_init(&rng, from * 7919u + slice);
	for (size_t at = 0; at < all; at += unit * (1 + rng_below(&rng, 9)))
		begins[n++] = at;
	begins[n] = all;
	for (size_t i = 0, step = n % 7 ? 7 : 5; i < n; i++) {
		size_t k = n % step ? i * step % n : i, at = begins[k];
		const char *piece = (const char *)body + at;
		size_t bytes = begins[k + 1] - at;

		assert_int_equal(put(r, from, slice, at, piece, bytes), 0);
		assert_int_equal(put(r, from, slice, at, piece, bytes), -EALREADY);
	}
}

/* Lets n nodes exchange their parts and sums. unit: the length of each message is a multiple of
 * this number of bytes. */
static void exchange(struct slices **r, uint32_t n, const uint16_t *nodes, float g[][FLOATS],
		     size_t unit)
{
	unsigned char body[4 * FLOATS];

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++) {
			uint32_t k = (i + j) % n, next = i == k ? i + 1 : i;

			assert_int_equal(slices_awaits(r[k]), next < n ? nodes[next] : -1);
			slices_encode(r[0], k, body, g[i], NULL);
			assert_false(slices_parts_in(r[k]));
			put_scattered(slices_put_part, r[k], nodes[i], k, body, unit);
		}
	for (uint32_t k = 0; k < n; k++) {
		assert_true(slices_parts_in(r[k]));
		slices_sum(r[k], NULL);
		slices_summed(r[k]);
	}
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t i = 0; i < n; i++) {
			if (i == k)
				continue;
			assert_false(slices_complete(r[i]));
			assert_int_equal(slices_awaits(r[i]), nodes[k]);
			put_scattered(slices_put_sum, r[i], nodes[k], k, slices_own_sum(r[k]),
				      unit);
		}
}

TEST(test_reduce)
{
	static const uint16_t nodes[MOST] = { 1, 4, 5, 11, 12, 30, 999 };
	float g[MOST][FLOATS];
	struct rng rng;

	rng_init(&rng, 11);
	for (uint32_t n = 1; n <= MOST; n++) {
		struct slices *r[MOST];

		for (uint32_t i = 0; i < n; i++) {
			for (int k = 0; k < FLOATS; k++)
				g[i][k] = (float)rng_normal(&rng);
			assert_int_equal(slices_new(&r[i], 5, 2, nodes, n, nodes[i], FLOATS, &fp32),
					 0);
			assert_int_equal(slices_mine(r[i]), i);
		}
		exchange(r, n, nodes, g, sizeof(float));
		for (uint32_t i = 0; i < n; i++) {
			assert_true(slices_complete(r[i]));
			assert_int_equal(slices_awaits(r[i]), -1);
			slices_decode(r[i], NULL);
			for (int k = 0; k < FLOATS; k++) {
				float want = g[0][k];

				for (uint32_t j = 1; j < n; j++)
					want += g[j][k];
				assert_true(slices_staging(r[i])[k] == want);
			}
			slices_hash(r[i], NULL);
			for (uint32_t k = 0; k < n; k++)
				assert_true(slices_hashes(r[i])[k] == slices_hashes(r[0])[k]);
		}
		/* Changes one bit of the last slice's sum. Only the hash of that slice may
		 * change. */
		((float *)slices_staging(r[0]))[FLOATS - 1] *= -1;
		slices_hash(r[0], NULL);
		for (uint32_t k = 0; n > 1 && k < n; k++)
			assert_true((slices_hashes(r[0])[k] != slices_hashes(r[1])[k]) ==
				    (k == n - 1));
		for (uint32_t i = 0; i < n; i++)
			slices_free(r[i]);
	}
}

/* With encoded slices, every node decodes the same sum, because the parts are decoded and added,
 * and their sum is encoded only once. Pieces may end inside a group that has one scale. */
TEST(test_reduce_encoded)
{
	static const uint16_t nodes[MOST] = { 1, 4, 5, 11, 12, 30, 999 };
	static const enum tensor_format formats[] = { FORMAT_Q8, FORMAT_Q6, FORMAT_Q4 };
	float g[MOST][FLOATS], want[FLOATS];
	struct rng rng;

	rng_init(&rng, 12);
	for (uint32_t n = 1; n <= MOST; n++) {
		struct sum_codec codec = { formats[n % 3], starts, 2 };
		struct slices *r[MOST];

		for (uint32_t i = 0; i < n; i++) {
			for (int k = 0; k < FLOATS; k++)
				g[i][k] = (float)rng_normal(&rng);
			assert_int_equal(
				slices_new(&r[i], 5, 2, nodes, n, nodes[i], FLOATS, &codec), 0);
		}
		exchange(r, n, nodes, g, 1);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(sum_codec_round(&codec, g[i], FLOATS, n), 0);
			for (int k = 0; k < FLOATS; k++)
				want[k] = i ? want[k] + g[i][k] : g[i][k];
		}
		assert_int_equal(sum_codec_round(&codec, want, FLOATS, n), 0);
		for (uint32_t i = 0; i < n; i++) {
			slices_decode(r[i], NULL);
			assert_memory_equal(slices_staging(r[i]), want, sizeof(want));
			slices_free(r[i]);
		}
	}
}

/* Checks that threads give the same bits as plain code, whatever their number. */
static void check_threads(enum tensor_format format, struct pool *pool)
{
	enum { LARGE = 5 * SUM_BLOCK + 777 };
	static const uint16_t nodes[] = { 1, 4 };
	static const size_t tensors[] = { 0, 1000, 3 * SUM_BLOCK + 5 };
	const struct sum_codec codec = { format, tensors, 3 };
	float *g[2], *want = malloc(LARGE * sizeof(float));
	unsigned char *bytes;
	struct slices *r;
	struct rng rng;

	rng_init(&rng, 13);
	assert_int_equal(slices_new(&r, 5, 2, nodes, 2, 1, LARGE, &codec), 0);
	bytes = malloc(slices_bytes(r, 0) + slices_bytes(r, 1));
	assert_true(want && bytes);
	for (int i = 0; i < 2; i++) {
		g[i] = malloc(LARGE * sizeof(float));
		assert_non_null(g[i]);
		for (size_t k = 0; k < LARGE; k++)
			g[i][k] = (float)rng_uniform(&rng) - 0.5f;
	}
	slices_encode(r, 0, slices_own_part(r), g[0], pool);
	assert_int_equal(slices_own_part_in(r), 0);
	assert_int_equal(slices_own_part_in(r), -EALREADY);
	slices_encode(r, 0, bytes, g[1], NULL);
	assert_int_equal(slices_put_part(r, 4, 0, 0, bytes, slices_bytes(r, 0)), 0);
	slices_sum(r, pool);
	slices_summed(r);
	for (int i = 0; i < 2; i++)
		assert_int_equal(sum_codec_round(&codec, g[i], LARGE, 2), 0);
	for (size_t k = 0; k < LARGE; k++)
		want[k] = g[0][k] + g[1][k];
	sum_codec_encode(&codec, bytes, want + LARGE / 2, LARGE / 2, LARGE - LARGE / 2);
	assert_int_equal(slices_put_sum(r, 4, 1, 0, bytes, slices_bytes(r, 1)), 0);
	assert_int_equal(sum_codec_round(&codec, want, LARGE, 2), 0);
	slices_decode(r, pool);
	assert_memory_equal(slices_staging(r), want, LARGE * sizeof(float));
	assert_true(slices_hash(r, pool) == squares_sum(want, LARGE));
	assert_true(slices_hashes(r)[0] == hash_floats(want, LARGE / 2));
	assert_true(slices_hashes(r)[1] == hash_floats(want + LARGE / 2, LARGE - LARGE / 2));
	slices_free(r);
	for (int i = 0; i < 2; i++)
		free(g[i]);
	free(want);
	free(bytes);
}

TEST(threads_add_to_the_same_bits)
{
	struct pool *pool;
	struct error err;

	for (uint32_t threads = 1; threads <= 5; threads += 2) {
		assert_int_equal(pool_new(&pool, threads, &err), 0);
		check_threads(FORMAT_FP32, pool);
		check_threads(FORMAT_Q6, pool);
		pool_free(pool);
	}
	check_threads(FORMAT_Q6, NULL);
}

/* A complete part or sum is refused if one of its scales is not finite. The sender may send the
 * part or sum again. The node's own part is not checked. */
TEST(test_encoded_slices_are_checked)
{
	static const uint16_t nodes[] = { 2, 3 };
	static const struct sum_codec q6 = { FORMAT_Q6, starts, 2 };
	float good[FLOATS] = { 1 }, bad[FLOATS] = { 1 };
	unsigned char body[4 * FLOATS];
	struct slices *r;

	for (int k = 0; k < FLOATS; k++)
		bad[k] = NAN;
	assert_int_equal(slices_new(&r, 1, 0, nodes, 2, 3, FLOATS, &q6), 0);
	slices_encode(r, 1, body, bad, NULL);
	assert_int_equal(slices_put_part(r, 3, 1, 0, body, slices_bytes(r, 1)), 0);
	assert_int_equal(slices_put_part(r, 2, 1, 0, body, 1), 0);
	assert_int_equal(slices_put_part(r, 2, 1, 1, body + 1, slices_bytes(r, 1) - 1), -EBADMSG);
	assert_false(slices_parts_in(r));
	slices_encode(r, 1, body, good, NULL);
	assert_int_equal(slices_put_part(r, 2, 1, 0, body, slices_bytes(r, 1)), 0);
	assert_true(slices_parts_in(r));
	slices_sum(r, NULL);
	slices_summed(r);
	slices_encode(r, 0, body, bad, NULL);
	assert_int_equal(slices_put_sum(r, 2, 0, 0, body, slices_bytes(r, 0)), -EBADMSG);
	assert_false(slices_complete(r));
	slices_encode(r, 0, body, good, NULL);
	assert_int_equal(slices_put_sum(r, 2, 0, 0, body, slices_bytes(r, 0) + 1), -EINVAL);
	assert_int_equal(slices_put_sum(r, 2, 0, 0, body, slices_bytes(r, 0)), 0);
	slices_decode(r, NULL);
	assert_true(isnan(slices_staging(r)[FLOATS - 1]));
	assert_true(fabsf(slices_staging(r)[0] - 1) < 0.01f);
	slices_free(r);
}

TEST(test_reduce_refuses)
{
	static const uint16_t nodes[] = { 2, 3, 5 };
	float body[FLOATS] = { 0 };
	struct slices *r;
	size_t from, len;

	assert_int_equal(slices_new(&r, 1, 0, nodes, 3, 4, FLOATS, &fp32), -EINVAL);
	assert_int_equal(slices_new(&r, 1, 0, (uint16_t[]) { 3, 2 }, 2, 2, FLOATS, &fp32), -EINVAL);
	assert_int_equal(slices_new(&r, 1, 0, (uint16_t[]) { 2, 2 }, 2, 2, FLOATS, &fp32), -EINVAL);
	assert_int_equal(slices_new(&r, 1, 0, nodes, 0, 2, FLOATS, &fp32), -EINVAL);
	assert_int_equal(slices_new(&r, 1, 0, nodes, 3, 3, FLOATS, &fp32), 0);
	slices_range(r, 1, &from, &len);
	assert_int_equal(slices_put_part(r, 4, 1, 0, body, len * 4), -EINVAL);
	assert_int_equal(slices_put_part(r, 2, 0, 0, body, len * 4), -EINVAL);
	assert_int_equal(slices_put_part(r, 2, 1, 0, body, len * 4 + 4), -EINVAL);
	assert_int_equal(slices_put_part(r, 2, 1, 4, body, len * 4), -EINVAL);
	assert_int_equal(slices_put_part(r, 2, 1, len * 4, body, 4), -EINVAL);
	assert_int_equal(slices_put_part(r, 2, 1, UINT64_MAX - 3, body, 4), -EINVAL);
	assert_int_equal(slices_put_part(r, 2, 1, 0, body, 0), -EINVAL);
	assert_int_equal(slices_put_part(r, 2, 1, 0, body, 7), -EINVAL);
	assert_int_equal(slices_put_part(r, 2, 1, 2, body, 8), -EINVAL);
	assert_int_equal(slices_put_part(r, 2, 1, 16, body, 16), 0);
	assert_int_equal(slices_put_part(r, 2, 1, 20, body, 8), -EALREADY);
	assert_int_equal(slices_put_part(r, 2, 1, 16, body, 8), -EALREADY);
	/* The piece overlaps bytes that have arrived. */
	assert_int_equal(slices_put_part(r, 2, 1, 8, body, 16), -EINVAL);
	assert_int_equal(slices_put_part(r, 2, 1, 24, body, 16), -EINVAL);
	assert_int_equal(slices_put_part(r, 2, 1, 16, body, 20), -EINVAL);
	assert_int_equal(slices_put_sum(r, 3, 1, 0, body, len * 4), -EINVAL);
	assert_int_equal(slices_put_sum(r, 5, 0, 0, body, len * 4), -EINVAL);
	assert_int_equal(slices_put_sum(r, 2, 7, 0, body, len * 4), -EINVAL);
	slices_range(r, 0, &from, &len);
	assert_int_equal(slices_put_sum(r, 2, 0, 0, body, len * 4 + 4), -EINVAL);
	assert_int_equal(slices_put_sum(r, 2, 0, 0, body, len * 4), 0);
	assert_int_equal(slices_put_sum(r, 2, 0, 0, body, len * 4), -EALREADY);
	slices_free(r);
}

/* The received bytes of a slice may form only a limited number of ranges. Otherwise a sender
 * could fill the memory with a list of ranges. */
TEST(test_gaps_are_limited)
{
	static const uint16_t nodes[] = { 2, 3 };
	const float one = 1;
	struct slices *r;
	int rc = 0, put = 0;

	assert_int_equal(slices_new(&r, 1, 0, nodes, 2, 3, 100000, &fp32), 0);
	for (uint64_t at = 0; at < 40000 && rc == 0; at += 2, put++)
		rc = slices_put_part(r, 2, 1, at * sizeof(one), &one, sizeof(one));
	assert_int_equal(rc, -EINVAL);
	assert_in_range(put, 100, 1000);
	slices_free(r);
}

/* ---- fetch ---- */

enum { P = 40 * FETCH_LEAST + 17, PIECES = 41 };

/* Every float is in exactly one piece, and no piece is too small or too large. */
TEST(test_pieces_cover_the_stage)
{
	static const size_t stages[] = { 1, 1000, 1 << 17, 3 << 18, 30000001, 400000000 };

	for (size_t k = 0; k < sizeof(stages) / sizeof(stages[0]); k++) {
		size_t covered = 0, from, n;

		for (uint32_t i = 0; fetch_piece(stages[k], i, &from, &n); i++) {
			assert_int_equal(from, covered);
			assert_in_range(n, 1, MSG_PIECE_FLOATS);
			assert_true(n <= FETCH_LEAST || n <= stages[k] / FETCH_PARTS + 1);
			covered += n;
		}
		assert_int_equal(covered, stages[k]);
	}
}

/* Returns float i of array k at an iteration. Each step adds 1 to the float. */
static float value(size_t k, size_t i, uint64_t iteration)
{
	return (float)((i * 7 + k) % 1000) + (float)iteration;
}

static int give(struct fetch *f, uint32_t piece, uint64_t iteration, int64_t now_us)
{
	float *body;
	size_t from, n;
	int rc;

	assert_true(fetch_piece(P, piece, &from, &n));
	body = malloc(3 * n * sizeof(float));
	assert_non_null(body);
	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; i < n; i++)
			body[k * n + i] = value(k, from + i, iteration);
	rc = fetch_take(f, piece, iteration, body, 3 * n * sizeof(float), now_us);
	free(body);
	return rc;
}

/* Applies the optimizer's step of a commit to the pieces that have arrived, as standby.c does.
 * Pieces of a later iteration are left out. */
static void step_held(struct fetch *f)
{
	size_t from, n;

	for (uint32_t p = 0; fetch_piece(P, p, &from, &n); p++)
		for (size_t k = 0; k < 3 && f->held[p] && f->of[p] <= f->iteration; k++)
			for (size_t i = 0; i < n; i++)
				f->state[k * P + from + i] += 1;
	f->iteration++;
}

/* Pieces of several iterations arrive out of order, some are lost, and commits happen in between.
 * In the end the copy has the newest iteration. The requested pieces never exceed the window. */
TEST(test_fetch_during_training)
{
	struct fetch f = { .n = 0 };
	uint32_t asked[FETCH_WINDOW], n = 0, piece;
	uint64_t source = 5, commits = 0;
	int64_t now = 1000;
	struct rng g;

	rng_init(&g, 11);
	assert_int_equal(fetch_begin(&f, 3, 1, P, now), 0);
	assert_int_equal(f.n, PIECES);
	while (!fetch_whole(&f)) {
		now += 1 + (int64_t)rng_below(&g, 30000);
		while (fetch_next(&f, now, &piece) == 0) {
			assert_true(n < FETCH_WINDOW);
			asked[n++] = piece;
		}
		/* All requested pieces were lost. After some time in which no piece arrives, the
		 * pieces are requested again. */
		if (n == 0) {
			now += 5000001;
			continue;
		}
		piece = (uint32_t)rng_below(&g, n);
		if (rng_below(&g, 8) != 0)
			assert_int_not_equal(give(&f, asked[piece], source, now), -EINVAL);
		asked[piece] = asked[--n];
		if (f.n_held > 0 && rng_below(&g, 4) == 0) {
			source++; /* the source makes the step before the copy does */
			if (n > 0)
				assert_int_equal(give(&f, asked[0], source, now), 0);
			if (n > 0)
				asked[0] = asked[--n];
			step_held(&f);
			commits++;
		}
	}
	assert_true(commits > 3);
	assert_int_equal(f.iteration, source);
	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; i < P; i++)
			assert_true(f.state[k * P + i] == value(k, i, source));
	fetch_end(&f);
}

/* All pieces have arrived, but one piece is of the next iteration. The copy is complete after its
 * next step. */
TEST(test_fetch_waits_for_the_copy)
{
	struct fetch f = { .n = 0 };

	assert_int_equal(fetch_begin(&f, 3, 1, P, 1), 0);
	for (uint32_t i = 0; i < PIECES; i++)
		assert_int_equal(give(&f, i, i == 1 ? 6 : 5, 1), 0);
	assert_int_equal(f.n_held, PIECES);
	assert_false(fetch_whole(&f));
	step_held(&f);
	assert_true(fetch_whole(&f));
	for (size_t i = 0; i < P; i++)
		assert_true(f.state[i] == value(0, i, 6));
	fetch_end(&f);
}

/* The link carries one piece after another. The whole copy takes as long as eight iterations. A
 * piece has the weights of the iteration in which it was requested. The first piece must be of
 * the present iteration, because the sums of earlier iterations are not sent any more. */
TEST(test_a_slow_link_brings_the_copy)
{
	enum { FLOATS_A_MS = 10, ITERATION_MS = P / FLOATS_A_MS / 8 };
	uint32_t asked[FETCH_WINDOW], n = 0, piece;
	uint64_t of[FETCH_WINDOW];
	struct fetch f = { .n = 0 };
	int64_t ms = 1;
	size_t from, floats;

	assert_int_equal(fetch_begin(&f, 3, 1, P, ms), 0);
	while (!fetch_whole(&f)) {
		int64_t before = ms / ITERATION_MS;

		while (fetch_next(&f, ms * 1000, &piece) == 0) {
			asked[n] = piece;
			of[n++] = (uint64_t)before;
		}
		if (n > 0) {
			assert_true(fetch_piece(P, asked[0], &from, &floats));
			ms += (int64_t)floats / FLOATS_A_MS + 1;
		} else {
			ms += 10;
		}
		for (; before < ms / ITERATION_MS; before++) {
			if (f.n_held > 0)
				step_held(&f);
		}
		if (n == 0)
			continue;
		if (f.n_held == 0 && of[0] != (uint64_t)before)
			fetch_refuse(&f, asked[0], ms * 1000);
		else
			give(&f, asked[0], of[0], ms * 1000);
		memmove(asked, asked + 1, --n * sizeof(asked[0]));
		memmove(of, of + 1, n * sizeof(of[0]));
		assert_true(ms < 32 * ITERATION_MS);
	}
	for (size_t i = 0; i < P; i++)
		assert_true(f.state[i] == value(0, i, f.iteration));
	fetch_end(&f);
}

static uint32_t asks(struct fetch *f, int64_t now)
{
	uint32_t piece, n = 0;

	while (fetch_next(f, now, &piece) == 0)
		n++;
	return n;
}

/* The first timeout is short, because the source may have sent the first answer to an earlier
 * process of this node. After a piece has arrived, the timeout depends on the transfer time of
 * pieces. */
TEST(test_timeout_grows)
{
	struct fetch f = { .n = 0 };
	int64_t now = 1;

	assert_int_equal(fetch_begin(&f, 3, 1, P, now), 0);
	assert_int_equal(asks(&f, now), 2);
	assert_int_equal(asks(&f, now + 900000), 0);
	assert_int_equal(asks(&f, now += 1100000), 2);
	assert_int_equal(asks(&f, now + 1900000), 0);
	assert_int_equal(asks(&f, now += 2100000), 2);
	assert_int_equal(give(&f, 0, 5, now), 0);
	assert_int_equal(asks(&f, now), 2);
	assert_int_equal(asks(&f, now + 4900000), 0);
	assert_true(asks(&f, now + 5100000) > 0);
	fetch_end(&f);
}

/* If a piece takes four seconds, the timeout is twelve seconds. The first timeout depends on the
 * expected transfer time. If no piece arrives, requests are repeated at growing intervals. */
TEST(test_slow_pieces_get_time)
{
	struct fetch f = { .n = 0 };
	int64_t now = 1, wait = 8000000;

	assert_int_equal(fetch_begin(&f, 3, 1, P, now), 0);
	fetch_expect(&f, 4000000);
	assert_int_equal(asks(&f, now), 2);
	assert_int_equal(asks(&f, now + 7900000), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(give(&f, i, 5, now += 4000000), 0);
	assert_true(asks(&f, now) > 0);
	assert_int_equal(asks(&f, now + 11900000), 0);
	assert_true(asks(&f, now + 15100000) > 0);
	fetch_end(&f);
	assert_int_equal(fetch_begin(&f, 3, 1, P, now), 0);
	fetch_expect(&f, 4000000);
	assert_int_equal(asks(&f, now), 2);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(asks(&f, now + wait - 1000), 0);
		assert_int_equal(asks(&f, now += wait + 1000), 2);
		wait = wait < 20000000 ? 2 * wait : 40000000;
	}
	fetch_end(&f);
}

/* If a transfer takes one second, a difference of half a second does not count as queueing. */
TEST(test_a_long_transfer_is_no_queue)
{
	struct fetch f = { .n = 0 };
	int64_t now = 1;

	assert_int_equal(fetch_begin(&f, 3, 1, P, now), 0);
	for (uint32_t i = 0; i < PIECES / 2; i++) {
		asks(&f, now);
		now += 1000000 + (i % 2 ? 450000 : 0);
		f.asked_us[i] = now - 1000000 - (i % 2 ? 450000 : 0);
		assert_int_equal(give(&f, i, 5, now), 0);
	}
	assert_true(f.window > 2);
	fetch_end(&f);
}

/* A piece that waited behind other pieces arrives after the end of its iteration. The next request
 * must then be for one piece alone. */
TEST(test_a_late_piece_is_requested_alone)
{
	struct fetch f = { .n = 0 };
	int64_t now = 1;

	assert_int_equal(fetch_begin(&f, 3, 1, P, now), 0);
	assert_int_equal(asks(&f, now), 2);
	assert_int_equal(give(&f, 0, 5, now), 0);
	step_held(&f);
	assert_int_equal(asks(&f, now), 2);
	now += 100000;
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(give(&f, i, 5, now), -ESTALE);
	assert_int_equal(asks(&f, now += 100000), 1);
	assert_int_equal(give(&f, 1, 6, now), 0);
	assert_true(asks(&f, now) > 0);
	fetch_end(&f);
}

TEST(test_fetch_refuses)
{
	struct fetch f = { .n = 0 };
	float body[3] = { 0 };
	uint32_t piece;

	assert_int_equal(fetch_next(&f, 1, &piece), -EAGAIN);
	assert_int_equal(fetch_take(&f, 0, 1, body, sizeof(body), 1), -EINVAL);
	assert_int_equal(fetch_begin(&f, 3, 1, P, 1), 0);
	assert_int_equal(fetch_take(&f, PIECES, 1, body, sizeof(body), 1), -EINVAL);
	assert_int_equal(fetch_take(&f, 0, 1, body, sizeof(body), 1), -EINVAL);
	assert_int_equal(give(&f, 2, 4, 1), 0);
	assert_int_equal(give(&f, 2, 4, 1), -EALREADY);
	assert_int_equal(give(&f, 3, 3, 1), -ESTALE);
	assert_int_equal(give(&f, 3, 5, 1), 0);
	assert_true(fetch_fits(&f, 2));
	assert_false(fetch_fits(&f, 3)); /* the piece is of a later iteration than the copy */
	fetch_void(&f);                  /* the copy missed a commit, so only newer pieces fit */
	assert_int_equal(give(&f, 3, 5, 1), 0);
	assert_int_equal(give(&f, 2, 4, 1), -ESTALE);
	assert_int_equal(give(&f, 2, 5, 1), 0);
	fetch_end(&f);
}
