/* Tests that decoded messages equal the encoded messages, and that invalid bytes are refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "wire/msg.h"

static const enum msg_type all[] = {
#define ROW(NAME, ...) MSG_##NAME,
	MESSAGE_KINDS(ROW)
#undef ROW
};

static size_t encode(const struct msg *m, unsigned char **out)
{
	size_t n = msg_size(m);

	assert_true(n > 0);
	*out = malloc(n + 16);
	assert_non_null(*out);
	assert_int_equal(msg_encode(m, *out, n + 16), n);
	return n;
}

/* An empty message of every type must be the same after encoding and decoding. */
TEST(every_type_is_decoded_as_it_was_encoded)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct msg m = { .type = all[i], .sequence = 0x0123456789abcdefu + i }, back;
		unsigned char *data;
		size_t n = encode(&m, &data);

		assert_int_equal(msg_decode(&back, data, n), 0);
		assert_int_equal(back.type, m.type);
		assert_true(back.sequence == m.sequence);
		assert_memory_equal(&back.u, &m.u, sizeof(m.u));
		assert_string_not_equal(msg_name(m.type), "unknown");
		msg_clear(&back);
		free(data);
	}
}

/* The numbers of all messages must not change. The bytes of MSG_SEE_NODE, whose struct and layout
 * are generated from one list, must not change either. */
TEST(numbers_and_bytes_are_unchanged)
{
	static const unsigned char numbers[] = { 1,   2,   3,   4,   5,   6,   7,   8,   9,   10,
						 11,  12,  13,  14,  15,  16,  17,  32,  33,  34,
						 35,  36,  37,  38,  39,  40,  41,  42,  43,  44,
						 45,  46,  47,  49,  52,  50,  51,  64,  65,  66,
						 67,  96,  97,  128, 129, 130, 131, 132, 133, 134,
						 135, 136, 137, 138, 139, 140 };
	struct msg m = { .type = MSG_SEE_NODE };
	uint64_t hash = 0xcbf29ce484222325u;
	unsigned char *data;
	size_t n;

	assert_int_equal(sizeof(all) / sizeof(all[0]), sizeof(numbers));
	for (size_t i = 0; i < sizeof(numbers); i++)
		assert_int_equal(all[i], numbers[i]);
	m.u.see_node = (struct msg_see_node){ .node = 1,
					      .stage = 2,
					      .layers = 29,
					      .state = 3,
					      .slots = 4,
					      .memory = 5,
					      .running = 1,
					      .queued = 6,
					      .heard_us = 7,
					      .since_us = 8,
					      .committed = 9,
					      .hash = 10,
					      .hash_agrees = 1,
					      .forward_s = 11,
					      .backward_s = 12,
					      .loss_s = 13,
					      .measured_forward_s = 14,
					      .measured_backward_s = 15,
					      .rss_bytes = 16,
					      .waits_percent = 28,
					      .sent_bytes = 17,
					      .received_bytes = 18,
					      .resent = 19,
					      .pid = 20,
					      .lost_s = 21,
					      .name = "e",
					      .location = "a",
					      .device = "b",
					      .host = "c",
					      .why = "d",
					      .gpu = { GPU_ALL, 22, 23, 9, 24, 25, 26, 27 },
					      .spent = { { 30, 31, 32, 33 } } };
	n = encode(&m, &data);
	for (size_t k = 0; k < n; k++)
		hash = (hash ^ data[k]) * 0x100000001b3u;
	free(data);
	assert_int_equal(hash, 0xfef21bc0a37a2d40u);
}

TEST(fields_come_back)
{
	const uint16_t nodes[] = { 3, 15, 999 };
	const uint8_t stages[] = { 0, 1, 63 };
	struct route routes[2] = {
		{ .microbatch = 7, .attempt = 2, .since = 1, .shard = 1, .wave = 5, .n_hops = 3,
		  .nodes = { 3, 15, 999 }, .stages = { 0, 1, 63 } },
		{ .microbatch = 8, .shard = 4, .n_hops = 2, .nodes = { 3, 15 },
		  .stages = { 0, 1 } },
	};
	struct msg_rank ranks[] = { { 7, TASK_BACKWARD }, { 8, TASK_FORWARD } };
	struct msg m = { .type = MSG_PLAN, .u.plan = { 9, 2, routes, 2, ranks } }, back;
	unsigned char *data;
	size_t n;

	n = encode(&m, &data);
	assert_int_equal(msg_decode(&back, data, n), 0);
	assert_int_equal(back.u.plan.epoch, 9);
	assert_int_equal(back.u.plan.n_routes, 2);
	assert_int_equal(back.u.plan.routes[0].attempt, 2);
	assert_memory_equal(back.u.plan.routes[0].nodes, nodes, sizeof(nodes));
	assert_memory_equal(back.u.plan.routes[1].stages, stages, 2);
	assert_int_equal(back.u.plan.ranks[0].kind, TASK_BACKWARD);
	msg_clear(&back);
	assert_null(back.owned);
	free(data);

	m = (struct msg){ .type = MSG_TROUBLE };
	/* A text without NUL must be cut, and nothing may be read beyond the text's array. */
	memset(m.u.trouble.text, 'x', sizeof(m.u.trouble.text));
	n = encode(&m, &data);
	assert_int_equal(msg_decode(&back, data, n), 0);
	assert_int_equal(strlen(back.u.trouble.text), sizeof(m.u.trouble.text) - 1);
	msg_clear(&back);
	free(data);
}

TEST(a_tensor_keeps_its_body)
{
	struct msg m = { .type = MSG_TENSOR }, back;
	unsigned char *data;
	size_t n;

	m.u.tensor.kind = TENSOR_STATE;
	n = encode(&m, &data);
	memcpy(data + n, "body", 4);
	assert_int_equal(msg_decode(&back, data, n + 4), 0);
	assert_int_equal(back.body_size, 4);
	assert_memory_equal(back.body, "body", 4);
	msg_clear(&back);
	free(data);
}

TEST(wrong_bytes_are_refused)
{
	struct msg m = { .type = MSG_START,
			 .u.start = { .iteration = 1, .epoch = 2, .per_shard = 3 } },
		   back;
	unsigned char *data;
	size_t n;

	n = encode(&m, &data);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(msg_decode(&back, data, cut), -EBADMSG);
	assert_int_equal(msg_decode(&back, data, n + 1), -EBADMSG); /* a trailing byte */
	data[2] = MSG_VERSION + 1;
	assert_int_equal(msg_decode(&back, data, n), -EPROTONOSUPPORT);
	data[2] = MSG_VERSION;
	data[0] = 'x';
	assert_int_equal(msg_decode(&back, data, n), -EBADMSG);
	data[0] = 's';
	data[4] = 250; /* a message of an unknown type */
	assert_int_equal(msg_decode(&back, data, n), -EBADMSG);
	free(data);
}

TEST(limits_are_obeyed)
{
	struct route route = { .n_hops = ROUTE_HOPS + 1 };
	struct msg m = { .type = MSG_EVALUATE,
			 .u.evaluate = { .iteration = 1, .n_routes = 1, .routes = &route } },
		   back;
	unsigned char data[4096], *ok;
	size_t n;

	assert_int_equal(msg_size(&m), 0);
	assert_int_equal(msg_encode(&m, data, sizeof(data)), -EINVAL);
	route.n_hops = ROUTE_HOPS;
	n = encode(&m, &ok);
	assert_int_equal(msg_encode(&m, data, n - 1), -ENOSPC);
	/* Sets the count of routes, which follows the envelope and the iteration, to two thousand
	 * million. */
	memcpy(ok + 16 + 8, "\xff\xff\xff\x7f", 4);
	assert_int_equal(msg_decode(&back, ok, n), -EBADMSG);
	free(ok);
	/* A stage number out of range must be refused. */
	m = (struct msg){ .type = MSG_ASSIGN, .u.assign = { 1, MSG_STAGES, 0 } };
	n = encode(&m, &ok);
	assert_int_equal(msg_decode(&back, ok, n), -EBADMSG);
	free(ok);
}

/* In heartbeats and in messages for consoles, a GPU's figure must be decoded if it is at most its
 * limit, and refused if it is above the limit. */
TEST(figures_of_a_gpu_are_limited)
{
	static const struct gpu_figures most = { GPU_ALL,
						 100,
						 GPU_TEMPERATURE_MOST_C,
						 GPU_THROTTLING_ALL,
						 GPU_POWER_MOST_MW,
						 GPU_POWER_MOST_MW,
						 GPU_MEMORY_MOST_MIB,
						 GPU_MEMORY_MOST_MIB };
	enum { FIGURES = 8 };

	for (int i = 0; i < 2 * (FIGURES + 1); i++) {
		struct msg m = { .type = i % 2 ? MSG_SEE_NODE : MSG_HEARTBEAT }, back;
		struct gpu_figures *g = i % 2 ? &m.u.see_node.gpu : &m.u.heartbeat.gpu;
		unsigned char *data;
		size_t n;

		*g = most;
		g->known = (uint8_t)(g->known + (i / 2 == 1));
		g->utilisation = (uint8_t)(g->utilisation + (i / 2 == 2));
		g->temperature_c = (uint8_t)(g->temperature_c + (i / 2 == 3));
		g->throttling = (uint8_t)(g->throttling + (i / 2 == 4));
		g->power_mw += i / 2 == 5;
		g->power_limit_mw += i / 2 == 6;
		g->memory_used_mib += i / 2 == 7;
		g->memory_mib += i / 2 == 8;
		n = encode(&m, &data);
		assert_int_equal(msg_decode(&back, data, n), i / 2 ? -EBADMSG : 0);
		if (i / 2 == 0)
			assert_memory_equal(&back.u, &m.u, sizeof(m.u));
		free(data);
	}
}

/* Changes random bytes of messages. A changed message must be refused, or encode to the same bytes
 * again. */
TEST(noise_is_canonical_or_refused)
{
	struct rng rng;
	uint32_t accepted = 0;

	rng_init(&rng, 11);
	for (int round = 0; round < 100000; round++) {
		struct msg m = { .type = all[rng_below(&rng, sizeof(all) / sizeof(all[0]))] };
		unsigned char data[4096], again[4096];
		size_t n = (size_t)msg_encode(&m, data, sizeof(data));

		for (uint32_t flips = 1 + rng_below(&rng, 6); flips > 0; flips--)
			data[16 + rng_below(&rng, (uint32_t)n - 16)] =
				(unsigned char)rng_below(&rng, 256);
		if (rng_below(&rng, 8) == 0)
			n -= rng_below(&rng, 4);
		if (msg_decode(&m, data, n) != 0)
			continue;
		accepted++;
		assert_int_equal(msg_encode(&m, again, sizeof(again)), n - m.body_size);
		assert_memory_equal(again, data, n - m.body_size);
		msg_clear(&m);
	}
	assert_true(accepted > 1000 && accepted < 90000);
}
