/* The state machine of delivery alone: two channels and a network made of random choices. */
#include "wire/channel.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

#define FLIGHT 64

struct packet {
	bool used, is_ack, gap;
	uint64_t ack;
	struct channel_chunk chunk;
	uint8_t data[1024];
};

struct world {
	struct rng rng;
	struct channel *from, *to;
	struct packet air[FLIGHT]; /* in any order: the network reorders at will */
	int64_t now_us;
	unsigned loss, doubling;   /* percent */
	size_t assembling;
	uint64_t delivered;        /* messages, in order, checked */
	size_t (*size)(uint64_t n);
};

static uint8_t *get(size_t size)
{
	return malloc(size);
}

static struct channel *channel_with(struct world *w, size_t retained)
{
	struct channel *c;
	const struct channel_options o = {.message_most_bytes = 1 << 20,
		.retained_most_bytes = retained, .window_bytes = 8192, .window_most_bytes = 65536,
		.assembling_bytes = &w->assembling, .assembling_most_bytes = 1 << 20, .alloc = get,
		.release = free};
	assert_int_equal(channel_new(&c, &o), 0);
	return c;
}

static void world_open(struct world *w, uint64_t seed, unsigned loss, unsigned doubling)
{
	memset(w, 0, sizeof(*w));
	rng_init(&w->rng, seed);
	w->loss = loss;
	w->doubling = doubling;
	w->from = channel_with(w, 1 << 20);
	w->to = channel_with(w, 1 << 20);
}

static void world_close(struct world *w)
{
	channel_free(w->from);
	channel_free(w->to);
	assert_int_equal(w->assembling, 0);
}

static void put_packet(struct world *w, const struct packet *p)
{
	unsigned copies = rng_below(&w->rng, 100) < w->doubling ? 2 : 1;
	for (unsigned c = 0; c < copies; c++) {
		if (rng_below(&w->rng, 100) < w->loss)
			continue;
		for (unsigned i = 0; i < FLIGHT; i++) {
			if (!w->air[i].used) {
				w->air[i] = *p;
				w->air[i].used = true;
				break;
			}
		}
	}
}

static void check(struct world *w, const uint8_t *data, size_t size)
{
	assert_int_equal(size, w->size(w->delivered));
	for (size_t i = 0; i < size; i++)
		assert_int_equal(data[i], (uint8_t)(w->delivered * 31 + i));
	w->delivered++;
}

static void arrive(struct world *w, struct packet *p)
{
	uint8_t *message = NULL;
	struct packet answer = {.is_ack = true};
	if (p->is_ack) {
		channel_acked(w->from, p->ack, p->gap, w->now_us);
		return;
	}
	p->chunk.data = p->data;
	enum channel_taken taken = channel_take(w->to, &p->chunk, &message);
	assert_true(taken != CHANNEL_BAD);
	if (taken == CHANNEL_WHOLE)
		check(w, p->data, p->chunk.size);
	if (taken == CHANNEL_COMPLETE) {
		check(w, message, (size_t)p->chunk.total);
		free(message);
	}
	answer.ack = channel_expected(w->to);
	answer.gap = taken == CHANNEL_GAP;
	put_packet(w, &answer);
}

static void step(struct world *w)
{
	struct packet p = {0};
	if (channel_next(w->from, &p.chunk)) {
		assert_true(p.chunk.size <= sizeof(p.data));
		memcpy(p.data, p.chunk.data, p.chunk.size);
		channel_sent(w->from, &p.chunk, w->now_us);
		put_packet(w, &p);
	}
	unsigned i = rng_below(&w->rng, FLIGHT);
	if (w->air[i].used) {
		struct packet landed = w->air[i];
		w->air[i].used = false;
		arrive(w, &landed);
	}
	w->now_us += 1000;
	channel_tick(w->from, w->now_us);
}

static void queue(struct world *w, uint64_t n)
{
	size_t size = w->size(n);
	uint8_t *data = malloc(size + 1);
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(n * 31 + i);
	const struct channel_part parts[3] = {{data, size / 2}, {NULL, 0},
		{data + size / 2, size - size / 2}};
	assert_int_equal(channel_queue(w->from, parts, 3), 0);
	free(data);
}

static size_t any_size(uint64_t n)
{
	static const size_t sizes[] = {0, 1, 1024, 1025, 5000, 12, 2048, 9999};
	return sizes[n % 8];
}

static void run(uint64_t seed, unsigned loss, unsigned doubling)
{
	struct world w;
	world_open(&w, seed, loss, doubling);
	w.size = any_size;
	for (uint64_t n = 0; n < 20; n++)
		queue(&w, n);
	channel_start(w.from, 1024);
	channel_start(w.to, 1024);
	for (uint64_t n = 20; n < 60; n++) {
		queue(&w, n);
		step(&w);
		if (rng_below(&w.rng, 10) == 0) { /* a fresh session, now and then */
			channel_pause(w.from);
			step(&w);
			channel_resume(w.from);
		}
	}
	for (long turn = 0; !channel_empty(w.from); turn++) {
		assert_true(turn < 2000000);
		step(&w);
	}
	assert_int_equal(w.delivered, 60);
	assert_int_equal(channel_retained(w.from), 0);
	world_close(&w);
}

static void everything_arrives_once_in_order(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++)
		run(seed, (unsigned)(seed % 5) * 10, (unsigned)(seed % 3) * 20);
}

static void a_fresh_start_numbers_anew(void **state)
{
	(void)state;
	struct world w;
	struct channel_chunk k;
	world_open(&w, 1, 0, 0);
	w.size = any_size;
	queue(&w, 4);
	assert_false(channel_next(w.from, &k)); /* not started */
	channel_start(w.from, 1024);
	for (int i = 0; i < 3; i++) {
		assert_true(channel_next(w.from, &k));
		assert_int_equal(k.number, i);
		channel_sent(w.from, &k, 0);
	}
	channel_acked(w.from, 2, false, 1);
	channel_start(w.from, 512);
	assert_true(channel_next(w.from, &k));
	assert_int_equal(k.number, 0);
	assert_int_equal(k.offset, 0);
	assert_int_equal(k.size, 512);
	assert_int_equal(channel_drop(w.from), 1);
	assert_false(channel_next(w.from, &k));
	assert_int_equal(channel_retained(w.from), 0);
	world_close(&w);
}

static void nonsense_changes_nothing(void **state)
{
	(void)state;
	struct world w;
	struct channel_chunk k;
	uint8_t byte = 0, *message = NULL;
	world_open(&w, 1, 0, 0);
	w.size = any_size;
	channel_start(w.from, 1024);
	channel_start(w.to, 1024);
	queue(&w, 2);
	assert_true(channel_next(w.from, &k));
	channel_acked(w.from, 1, false, 0); /* was never sent */
	channel_acked(w.from, UINT64_MAX, true, 0);
	assert_false(channel_empty(w.from));
	const struct channel_chunk bad[] = {
		{.total = UINT64_MAX, .data = &byte, .size = 1},
		{.total = 2 << 20, .data = &byte, .size = 1},
		{.total = 10, .offset = 3, .data = &byte, .size = 1},
		{.total = 10, .offset = UINT64_MAX, .data = &byte, .size = 1},
		{.total = 0, .data = &byte, .size = 1},
		{.total = 10, .data = &byte, .size = 0},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(channel_take(w.to, &bad[i], &message), CHANNEL_BAD);
	const struct channel_chunk one = {.total = 3, .data = &byte, .size = 1};
	assert_int_equal(channel_take(w.to, &one, &message), CHANNEL_PART);
	const struct channel_chunk other = {.number = 1, .total = 4, .offset = 1, .data = &byte,
		.size = 1};
	assert_int_equal(channel_take(w.to, &other, &message), CHANNEL_BAD);
	assert_int_equal(channel_expected(w.to), 1);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_arrives_once_in_order),
		cmocka_unit_test(a_fresh_start_numbers_anew),
		cmocka_unit_test(nonsense_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
