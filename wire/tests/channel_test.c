/* Tests channels without sockets: a simulated network between two channels loses, repeats and
 * reorders packets. */
#include "wire/delivery/channel.h"
#include "wire/delivery/channel_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"

#define FLIGHT 64

struct packet {
	bool used, is_ack;
	uint64_t ack;
	struct channel_range ranges[CHANNEL_RANGES];
	unsigned n_ranges;
	struct channel_chunk chunk;
	uint8_t data[1024];
};

struct world {
	struct rng rng;
	struct channel *from, *to;
	struct packet air[FLIGHT]; /* packets in flight, which the network delivers in any order */
	int64_t now_us;
	/* Probabilities in percent: that a packet is lost, and that a packet arrives twice. */
	unsigned loss, doubling;
	struct channel_memory memory;
	size_t assembling, retained;
	struct flow flow;
	uint64_t delivered;        /* number of messages that arrived in order and were checked */
	unsigned loans;            /* number of loans that were not released */
	size_t (*size)(uint64_t n);
	size_t piece_least;
	unsigned in_pieces;        /* messages that were delivered in pieces */
};

static uint8_t *get(size_t size)
{
	return malloc(size);
}

static struct channel *channel_with(struct world *w, size_t retained)
{
	struct channel *c;
	const struct channel_options o = {.message_most_bytes = 1 << 20,
		.retained_most_bytes = retained, .memory = &w->memory, .peer_bytes = &w->assembling,
		.retained_bytes = &w->retained, .alloc = get, .release = free,
		.piece_least_bytes = w->piece_least, .drop = free, .flow = &w->flow};
	c = channel_new(&o);
	return c;
}

/* piece_least: piece_least_bytes of the receiving channel. */
static void world_open_apart(struct world *w, uint64_t seed, unsigned loss, unsigned doubling,
	size_t piece_least)
{
	memset(w, 0, sizeof(*w));
	w->piece_least = piece_least;
	rng_init(&w->rng, seed);
	w->loss = loss;
	w->doubling = doubling;
	const struct flow_limits limits = {FLOW_DROPS, 8192, 2048, 65536};
	w->memory = (struct channel_memory){.most_bytes = 1 << 20, .peers = 1};
	flow_init(&w->flow);
	flow_start(&w->flow, &limits);
	w->from = channel_with(w, 1 << 20);
	w->to = channel_with(w, 1 << 20);
}

static void world_open(struct world *w, uint64_t seed, unsigned loss, unsigned doubling)
{
	world_open_apart(w, seed, loss, doubling, 0);
}

static void world_close(struct world *w)
{
	channel_free(w->from);
	assert_int_equal(w->loans, 0);
	channel_free(w->to);
	assert_int_equal(w->assembling, 0);
	assert_int_equal(w->memory.used_bytes, 0);
	assert_int_equal(w->flow.under_way, 0);
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

/* Checks the number, size and content of a message, and frees it. */
static void check_given(struct world *w, struct channel_message *m)
{
	if (m->data == NULL) {
		m->data = malloc(m->size);
		assert_non_null(m->data);
		pieces_join(&m->pieces, 0, m->data);
		for (uint32_t i = 0; i < m->pieces.n; i++)
			free(m->pieces.list[i].owner);
		free(m->pieces.list);
		w->in_pieces++;
	}
	check(w, m->data, m->size);
	free(m->data);
}

static void arrive(struct world *w, struct packet *p)
{
	struct channel_message m;
	struct packet answer = {.is_ack = true};
	if (p->is_ack) {
		channel_acked(w->from, p->ack, p->ranges, p->n_ranges, w->now_us);
		return;
	}
	uint8_t *buffer = malloc(sizeof(p->data));
	assert_non_null(buffer);
	memcpy(buffer, p->data, sizeof(p->data));
	p->chunk.data = p->chunk.owner = buffer;
	enum channel_taken taken = channel_take(w->to, &p->chunk);
	assert_true(taken != CHANNEL_BAD);
	if (taken == CHANNEL_WHOLE)
		check(w, buffer, p->chunk.size);
	if (taken != CHANNEL_KEPT)
		free(buffer);
	while (channel_give(w->to, &m))
		check_given(w, &m);
	answer.ack = channel_expected(w->to);
	answer.n_ranges = channel_ranges(w->to, answer.ranges);
	assert_int_equal(answer.n_ranges > 0, channel_holes(w->to));
	put_packet(w, &answer);
}

static void step(struct world *w)
{
	struct packet p = {0};
	if (channel_next(w->from, &p.chunk)) {
		assert_true(p.chunk.size <= sizeof(p.data));
		const size_t own = p.chunk.size - p.chunk.lent_bytes;
		memcpy(p.data, p.chunk.data, own);
		if (p.chunk.lent_bytes > 0)
			memcpy(p.data + own, p.chunk.lent, p.chunk.lent_bytes);
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

struct borrowed {
	struct world *world;
	uint8_t data[];
};

/* Frees the bytes of a loan. If the channel uses the bytes later, AddressSanitizer finds the
 * error. */
static void release(void *context)
{
	struct borrowed *b = context;
	assert_true(b->world->loans > 0);
	b->world->loans--;
	free(b);
}

/* Queues the message with number n. The channel borrows the second half of every second
 * message. */
static void queue(struct world *w, uint64_t n)
{
	size_t size = w->size(n);
	uint8_t *data = malloc(size + 1);
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(n * 31 + i);
	const struct channel_part parts[3] = {{data, size / 2}, {NULL, 0},
		{data + size / 2, size - size / 2}};
	if (n % 2 == 1 && size > 0) {
		struct borrowed *b = malloc(sizeof(*b) + parts[2].size);
		b->world = w;
		memcpy(b->data, parts[2].data, parts[2].size);
		const struct channel_loan loan = {b->data, parts[2].size, release, b};
		w->loans++;
		assert_int_equal(channel_lend(w->from, parts, 2, &loan, w->now_us), 0);
	} else {
		assert_int_equal(channel_queue(w->from, parts, 3, w->now_us), 0);
	}
	free(data);
}

static size_t any_size(uint64_t n)
{
	static const size_t sizes[] = {0, 1, 1024, 1025, 5000, 12, 2048, 9999};
	return sizes[n % 8];
}

static const struct channel_cut one_connection = {1024, 1}, many_connections = {1024, 8};

static void run(uint64_t seed, unsigned loss, unsigned doubling, const struct channel_cut *cut)
{
	struct world w;
	world_open_apart(&w, seed, loss, doubling, seed / 2 % 2 == 0 ? 0 : 600);
	w.size = any_size;
	for (uint64_t n = 0; n < 20; n++)
		queue(&w, n);
	channel_start(w.from, cut);
	channel_start(w.to, cut);
	for (uint64_t n = 20; n < 60; n++) {
		queue(&w, n);
		step(&w);
		if (rng_below(&w.rng, 10) == 0) { /* once in ten rounds a new session begins */
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
	/* Only messages whose chunks have at least 600 bytes are delivered in pieces. These are
	 * the messages of 2,048, 5,000 and 9,999 bytes. A message of 1,025 bytes has chunks of
	 * 513 bytes, and is joined. */
	assert_int_equal(w.in_pieces, w.piece_least == 0 ? 0 : 21);
	assert_int_equal(w.retained, 0);
	world_close(&w);
}

TEST(everything_arrives_once_in_order)
{
	for (uint64_t seed = 0; seed < 40; seed++)
		run(seed, (unsigned)(seed % 5) * 10, (unsigned)(seed % 3) * 20,
			seed % 2 == 0 ? &one_connection : &many_connections);
}

TEST(loans_of_dropped_messages_are_released)
{
	struct world w;
	world_open(&w, 1, 0, 0);
	w.size = any_size;
	for (uint64_t n = 0; n < 8; n++)
		queue(&w, n);
	assert_int_equal(w.loans, 4);
	channel_drop(w.from);
	assert_int_equal(w.loans, 0);
	queue(&w, 1);
	world_close(&w);
}

/* The bytes of a held message must stay valid after its acknowledgement. A faulty peer may
 * acknowledge a chunk while a thread still reads it. */
TEST(a_held_message_keeps_its_loan_after_its_acknowledgement)
{
	struct world w;
	struct channel_chunk k;
	world_open(&w, 1, 0, 0);
	w.size = any_size;
	channel_start(w.from, &one_connection);
	for (uint64_t n = 0; n < 2; n++)
		queue(&w, n);
	assert_int_equal(w.loans, 1);
	for (unsigned n = 0; n < 2; n++) {
		assert_true(channel_next(w.from, &k));
		channel_hold(k.letter);
		channel_sent(w.from, &k, 0);
		channel_acked(w.from, k.number + 1, NULL, 0, 1);
		assert_int_equal(w.retained, n == 0 ? any_size(1) : 0);
		assert_int_equal(w.loans, 1);
		channel_drop_letter(k.letter);
	}
	assert_int_equal(w.loans, 0);
	world_close(&w);
}

TEST(a_loan_that_is_refused_is_not_released)
{
	struct world w;
	world_open(&w, 1, 0, 0);
	const struct channel_loan loan = {(const uint8_t *)"", (1 << 20) + 1, release, NULL};
	assert_int_equal(channel_lend(w.from, NULL, 0, &loan, 0), -EMSGSIZE);
	world_close(&w);
}

TEST(a_fresh_start_restarts_the_numbers)
{
	struct world w;
	struct channel_chunk k;
	const struct channel_cut smaller = {512, 1};
	world_open(&w, 1, 0, 0);
	w.size = any_size;
	queue(&w, 4);
	assert_false(channel_next(w.from, &k)); /* the channel was not started yet */
	channel_start(w.from, &one_connection);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(channel_next(w.from, &k));
		assert_int_equal(k.number, i);
		channel_sent(w.from, &k, 0);
	}
	channel_acked(w.from, 2, NULL, 0, 1);
	channel_start(w.from, &smaller);
	assert_true(channel_next(w.from, &k));
	assert_int_equal(k.number, 0);
	assert_int_equal(k.index, 0);
	assert_int_equal(k.size, 500); /* ten chunks of equal size */
	assert_int_equal(k.chunks, 10);
	assert_int_equal(channel_drop(w.from), 1);
	assert_false(channel_next(w.from, &k));
	assert_int_equal(w.retained, 0);
	world_close(&w);
}

TEST(nonsense_changes_nothing)
{
	struct world w;
	struct channel_chunk k;
	uint8_t byte = 0;
	world_open(&w, 1, 0, 0);
	w.size = any_size;
	channel_start(w.from, &one_connection);
	channel_start(w.to, &one_connection);
	queue(&w, 2);
	assert_true(channel_next(w.from, &k));
	channel_acked(w.from, 1, NULL, 0, 0); /* ignored: the chunk was never sent */
	const struct channel_range all = {1, CHANNEL_AHEAD};
	channel_acked(w.from, UINT64_MAX, &all, 1, 0);
	channel_acked(w.from, 0, &all, 1, 0);
	assert_false(channel_empty(w.from));
	const struct channel_chunk bad[] = {
		{.total = UINT64_MAX, .chunks = 1, .data = &byte, .size = 1},
		{.total = 2 << 20, .chunks = 2, .data = &byte, .size = 1},
		{.number = 3, .index = 3, .total = 10, .chunks = 10, .data = &byte, .size = 2},
		{.number = 3, .index = 4, .total = 10, .chunks = 10, .data = &byte, .size = 1},
		{.number = 3, .index = 3, .total = 10, .chunks = 3, .data = &byte, .size = 1},
		{.number = 3, .index = 3, .total = 6, .chunks = 4, .data = &byte, .size = 0},
		{.total = 10, .chunks = UINT32_MAX, .data = &byte, .size = 1},
		{.total = 0, .chunks = 1, .data = &byte, .size = 1},
		{.total = 0, .chunks = 0, .data = &byte, .size = 0},
		{.total = 10, .chunks = 10, .data = &byte, .size = 0},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(channel_take(w.to, &bad[i]), CHANNEL_BAD);
	const struct channel_chunk one = {.total = 3, .chunks = 3, .data = &byte, .size = 1};
	assert_int_equal(channel_take(w.to, &one), CHANNEL_PART);
	assert_int_equal(channel_take(w.to, &one), CHANNEL_DUPLICATE);
	const struct channel_chunk others[] = {
		/* a chunk of the same message with another length */
		{.number = 1, .index = 1, .total = 4, .chunks = 4, .data = &byte, .size = 1},
		/* two messages that would overlap the first one */
		{.number = 1, .index = 0, .total = 1, .chunks = 1, .data = &byte, .size = 1},
		{.number = 2, .index = 1, .total = 2, .chunks = 2, .data = &byte, .size = 1},
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(channel_take(w.to, &others[i]), CHANNEL_BAD);
	const struct channel_chunk far = {.number = CHANNEL_AHEAD + 1, .total = 1, .chunks = 1,
		.data = &byte, .size = 1};
	assert_int_equal(channel_take(w.to, &far), CHANNEL_TOO_FAR);
	assert_int_equal(channel_expected(w.to), 1);
	world_close(&w);
}

/* The chunks of three messages arrive, the last chunk first. A message must be given only when all
 * earlier messages are complete. */
TEST(a_message_ahead_of_its_turn_waits)
{
	struct world w;
	struct channel_message m;
	uint8_t bytes[4] = {1, 2, 3, 4};
	struct channel_range ranges[CHANNEL_RANGES];
	world_open(&w, 1, 0, 0);
	channel_start(w.to, &many_connections);
	/* Chunks 0 and 1 are message A, chunk 2 is message B, chunks 3 and 4 are message C. */
	for (uint64_t number = 5; number-- > 1;) {
		struct channel_chunk k = {.number = number, .total = 2, .chunks = 2,
			.index = number == 1 || number == 4, .data = bytes, .size = 1};
		if (number == 2)
			k.total = k.chunks = 1;
		assert_int_equal(channel_take(w.to, &k), CHANNEL_PART);
		assert_false(channel_give(w.to, &m));
	}
	assert_int_equal(channel_expected(w.to), 0);
	assert_int_equal(channel_ranges(w.to, ranges), 1);
	assert_int_equal(ranges[0].from, 1);
	assert_int_equal(ranges[0].length, 4);
	const struct channel_chunk first = {.total = 2, .chunks = 2, .data = bytes, .size = 1};
	assert_int_equal(channel_take(w.to, &first), CHANNEL_PART);
	assert_false(channel_holes(w.to));
	for (int i = 0; i < 3; i++) {
		assert_true(channel_give(w.to, &m));
		assert_int_equal(m.size, i == 1 ? 1 : 2);
		free(m.data);
	}
	assert_false(channel_give(w.to, &m));
	assert_int_equal(channel_expected(w.to), 5);
	world_close(&w);
}

/* With several connections a missing chunk counts as lost only when it is overdue. */
TEST(only_overdue_chunks_are_repeated)
{
	struct world w;
	struct channel_chunk k;
	const struct channel_range rest = {1, 6};
	world_open(&w, 1, 0, 0);
	w.size = any_size;
	queue(&w, 4);
	queue(&w, 4); /* ten chunks, seven of which fit the window */
	channel_start(w.from, &many_connections);
	for (int i = 0; i < 7; i++) {
		assert_true(channel_next(w.from, &k));
		channel_sent(w.from, &k, 1000000);
	}
	channel_acked(w.from, 0, &rest, 1, 1100000); /* acknowledges chunks 1 to 6, not chunk 0 */
	while (channel_next(w.from, &k)) {
		assert_true(k.number >= 7);
		channel_sent(w.from, &k, 1100000);
	}
	assert_true(channel_deadline_us(w.from) <= 1000000 + FLOW_FIRST_US);
	assert_int_equal(channel_tick(w.from, 1200000), 0);
	int64_t at = 1100000;
	while (!channel_next(w.from, &k)) {
		at += 10000;
		channel_tick(w.from, at);
	}
	assert_int_equal(k.number, 0);
	/* Waits for more than the round trip of 0.1 s. */
	assert_true(at > 1000000 + 100000 + FLOW_BUSY_US);
	assert_true(at <= 1000000 + FLOW_FIRST_US);
	world_close(&w);
}

/* If one peer uses all the memory for incomplete messages, the other peer still has its share. */
TEST(memory_is_shared)
{
	struct world a, b;
	uint8_t byte = 0;
	world_open(&a, 1, 0, 0);
	world_open(&b, 2, 0, 0);
	channel_free(b.to);
	const struct channel_options o = {.message_most_bytes = 1 << 20,
		.retained_most_bytes = 1 << 20, .memory = &a.memory, .peer_bytes = &b.assembling,
		.retained_bytes = &b.retained, .alloc = get, .release = free, .flow = &b.flow};
	b.to = channel_new(&o);
	a.memory.peers = 2;
	channel_start(a.to, &many_connections);
	channel_start(b.to, &many_connections);
	struct channel_chunk k = {.total = 1 << 18, .chunks = 1 << 18, .data = &byte, .size = 1};
	for (unsigned i = 0; i < 8; i++) { /* first chunks of messages that never become complete */
		if (channel_take(a.to, &k) == CHANNEL_DEFERRED)
			break;
		k.number += (1 << 18);
		k.total = k.chunks = 1000;
		k.number = 1 + (uint64_t)(1 << 18) - 1 + i * 1000;
		if (k.number >= CHANNEL_AHEAD)
			break;
	}
	const size_t had = a.memory.used_bytes;
	assert_true(had > 0 && had <= a.memory.most_bytes);
	a.memory.used_bytes = a.memory.most_bytes; /* as if this peer used all the memory */
	k = (struct channel_chunk){.total = 1 << 19, .chunks = 1 << 19, .data = &byte, .size = 1};
	assert_int_equal(channel_take(b.to, &k), CHANNEL_PART);
	k.number = 0;
	channel_start(b.to, &many_connections);
	k.total = k.chunks = (1 << 19) + 1;
	/* The message exceeds the peer's share of the memory. */
	assert_int_equal(channel_take(b.to, &k), CHANNEL_DEFERRED);
	a.memory.used_bytes = had;
	b.memory.used_bytes = 0;
	world_close(&b);
	world_close(&a);
}

/* Even if much memory is free, no peer may use more than CHANNEL_PEER_MOST. Even if other peers
 * use all memory, each peer can have an incomplete message. No message may exceed
 * message_most_bytes. */
TEST(no_peer_has_all_memory)
{
	struct world a;
	struct channel *c;
	const size_t length = 1 << 20;
	uint8_t *half = calloc(1, length);
	assert_non_null(half);
	world_open(&a, 1, 0, 0);
	const struct channel_options o = {.message_most_bytes = length,
		.retained_most_bytes = length, .memory = &a.memory, .peer_bytes = &a.assembling,
		.retained_bytes = &a.retained, .alloc = get, .release = free, .flow = &a.flow};
	c = channel_new(&o);
	channel_start(c, &many_connections);
	a.memory = (struct channel_memory){ .most_bytes = (size_t)1 << 40,
					    .peers = 1 << 30,
					    .share_bytes = 4 * length };
	struct channel_chunk k = {.total = length, .chunks = 2, .data = half, .size = length / 2};
	unsigned n = 0;
	/* Sends first halves of messages until the channel refuses a first half. */
	while (n < 100 && channel_take(c, &k) == CHANNEL_PART) {
		k.number += 2;
		n++;
	}
	assert_true(n >= 4 && n * length <= CHANNEL_PEER_MOST);
	channel_drop(c);
	channel_start(c, &many_connections);
	a.memory.used_bytes = a.memory.most_bytes; /* as if other peers used all the memory */
	k.number = 0;
	assert_int_equal(channel_take(c, &k), CHANNEL_PART);
	a.memory.used_bytes = length;
	channel_drop(c);
	channel_start(c, &many_connections);
	channel_limit(c, length - 1);
	assert_int_equal(channel_take(c, &k), CHANNEL_BAD);
	channel_free(c);
	free(half);
	world_close(&a);
}

/* Sends all chunks that the channel gives now. Returns their number. */
static unsigned send_all(struct channel *c)
{
	struct channel_chunk chunk;
	unsigned n = 0;

	for (; channel_next(c, &chunk); n++)
		channel_sent(c, &chunk, 1);
	return n;
}

/* The link carries 1 MB/s. 65 KB may be under way: the link carries 50 KB in a round trip of 50
 * ms, and 15 KB in the queueing time. Two urgent messages of 200 KB are queued. The second
 * message must wait until fewer bytes of the first message are under way. Messages that can wait
 * must not be sent before the second message. */
TEST(urgent_messages_leave_one_after_the_other)
{
	static uint8_t data[200000];
	const struct flow_limits far = {FLOW_FAR, 1 << 20, 1024, 1 << 20};
	const struct channel_part part = {data, sizeof(data)}, small = {data, 1000};
	const struct channel_cut cut = {65536, 8};
	struct channel_chunk chunk;
	struct world w;

	world_open(&w, 1, 0, 0);
	flow_start(&w.flow, &far);
	/* Both channels send here: w.from has an urgent class, and w.to has a class that can
	 * wait. */
	w.from->options.urgent = true;
	channel_start(w.from, &cut);
	channel_start(w.to, &cut);
	w.flow.least_us.now = 50000;
	w.flow.rate.now = 1000000;
	w.flow.limited = false; /* the rate was measured on a full link */
	assert_int_equal(channel_queue(w.from, &part, 1, 0), 0);
	assert_int_equal(channel_queue(w.from, &part, 1, 0), 0);
	assert_int_equal(channel_queue(w.to, &small, 1, 0), 0);
	assert_int_equal(send_all(w.from), 8);
	assert_false(channel_next(w.to, &chunk));
	channel_acked(w.from, 5, NULL, 0, 150000); /* three chunks of 25,000 bytes are under way */
	assert_int_equal(send_all(w.from), 0);
	assert_false(channel_next(w.to, &chunk));
	channel_acked(w.from, 6, NULL, 0, 175000);
	assert_in_range(send_all(w.from), 1, 7);
	channel_drop(w.from);
	channel_start(w.from, &cut);
	/* No urgent message waits now, so other messages may be sent. An urgent message that does
	 * not fill the link need not wait. */
	assert_false(channel_next(w.from, &chunk));
	assert_true(channel_next(w.to, &chunk));
	assert_int_equal(channel_queue(w.from, &part, 1, 3), 0);
	assert_int_equal(channel_queue(w.from, &small, 1, 3), 0);
	assert_int_equal(send_all(w.from), 9);
	channel_drop(w.from);
	channel_start(w.from, &cut);
	/* While the rate is unknown, no message has to wait. */
	w.flow.rate.now = w.flow.rate.before = -1;
	assert_int_equal(channel_queue(w.from, &part, 1, 4), 0);
	assert_int_equal(channel_queue(w.from, &part, 1, 4), 0);
	assert_int_equal(send_all(w.from), 16);
	channel_drop(w.from);
	channel_drop(w.to);
	world_close(&w);
}

/* At the measured rate of 1 MB/s, the 200,000 bytes under way take 0.2 s. At half of this rate
 * they take 0.4 s. One second is added because no round trip is known. No chunk may count as lost
 * before 1.4 s. */
TEST(a_link_may_carry_half_of_its_rate)
{
	static uint8_t data[200000];
	const struct flow_limits far = {FLOW_FAR, 1 << 20, 1024, 1 << 20};
	const struct channel_part part = {data, sizeof(data)};
	const struct channel_cut cut = {65536, 8};
	struct world w;

	world_open(&w, 1, 0, 0);
	flow_start(&w.flow, &far);
	w.from->options.urgent = true;
	channel_start(w.from, &cut);
	w.flow.least_us.now = 50000;
	w.flow.rate.now = 1000000;
	assert_int_equal(channel_queue(w.from, &part, 1, 0), 0);
	assert_int_equal(send_all(w.from), 8);
	assert_int_equal(channel_tick(w.from, FLOW_FIRST_US + 390000), 0);
	assert_int_equal(channel_tick(w.from, FLOW_FIRST_US + 450000), 1);
	channel_drop(w.from);
	world_close(&w);
}
