/* Tests the classes of messages over real sockets: each class must arrive in order. Also tests
 * how many connections a post opens: to a peer on this machine, to a peer on another machine, and
 * for bursts. */
#include "wire/post.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/tests/test.h"
#include "wire/tests/pair.h"

static const struct post_options defaults;
static const struct post_options eight = {.connections = 8};

/* Checks that the messages of each class arrive in order. Each message contains its number and its
 * class. */
struct classes {
	uint64_t next[POST_CLASSES];
};

static size_t class_size(uint64_t number, uint64_t class)
{
	return 16 + (size_t)((number * 7919 + class * 104729) %
			     (class == POST_CLASS_CONTROL ? 500 : 400000));
}

static void send_in_class(struct post *post, post_peer_id peer, uint64_t number, uint64_t class)
{
	const size_t size = class_size(number, class);
	uint8_t *data = malloc(size);
	pair_fill_message(data, size, number);
	memcpy(data + 8, &class, 8);
	const struct post_part part = {data, size};
	assert_int_equal(post_send(post, peer, &part, 1, (enum post_flags)(class << 1),
				 clock_monotonic_us()),
		0);
	free(data);
}

static void check_class(struct end *e, struct post_message *m)
{
	struct classes *c = e->context;
	uint64_t number, class;
	uint8_t *expect = malloc(m->size);
	assert_true(m->size >= 16);
	memcpy(&number, m->data, 8);
	memcpy(&class, m->data + 8, 8);
	assert_true(class < POST_CLASSES);
	assert_int_equal(number, c->next[class]);
	assert_int_equal(m->size, class_size(number, class));
	pair_fill_message(expect, m->size, number);
	memcpy(expect + 8, &class, 8);
	assert_memory_equal(m->data, expect, m->size);
	free(expect);
	c->next[class]++;
}

/* Opens a pair as if its ends were on two machines. End a checks the messages of end b. */
static void open_far(struct pair *p, struct post_options a, struct post_options b,
		     struct classes *got)
{
	pair_open_far(p, a, b);
	p->a.on_data = check_class;
	p->a.context = got;
}

/* Sends end a the activations with the numbers from `from` up to `to` - 1. */
static void send_activations(struct pair *p, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		send_in_class(p->b.post, p->to_a, i, POST_CLASS_ACTIVATIONS);
}

/* Sends end a the message `number` of every class. */
static void send_each_class(struct pair *p, uint64_t number)
{
	for (uint64_t class = 0; class < POST_CLASSES; class++)
		send_in_class(p->b.post, p->to_a, number, class);
}

/* Sends messages over seventeen connections. Frames on different connections overtake each other.
 * Meanwhile frames are lost, repeated and delayed. */
TEST(every_class_in_its_order_over_many_connections)
{
	for (int round = 0; round < 2; round++) {
		struct pair p;
		struct classes got = {{0}};
		struct rng ra, rb;
		rng_init(&ra, 3);
		rng_init(&rb, 4);
		const struct link_hook ha = {pair_mischief, &ra}, hb = {pair_mischief, &rb};
		struct post_options oa = {.hook = round == 0 ? NULL : &ha};
		struct post_options ob = {.hook = round == 0 ? NULL : &hb, .connections = 8};
		const uint64_t n = round == 0 ? 60 : 15;
		open_far(&p, oa, ob, &got);
		for (uint64_t i = 0; i < n; i++) {
			send_each_class(&p, i);
			if (i % 4 == 3)
				pair_turn(&p);
		}
		PAIR_UNTIL(&p, got.next[0] == n && got.next[1] == n && got.next[2] == n &&
			got.next[3] == n);
		PAIR_UNTIL(&p, post_idle(p.b.post, 0));
		assert_int_equal(counters_of(p.b.post).link.connections, 1 + 8 + 8);
		assert_int_equal(counters_of(p.b.post).retained_bytes, 0);
		assert_int_equal(counters_of(p.a.post).assembling_bytes, 0);
		assert_int_equal(p.a.seen.restarted + p.b.seen.restarted, 0);
		pair_close(&p);
	}
}

/* A burst of activations must get more connections, up to the limit for all peers. A single
 * activation must get no more connections. When a peer is forgotten, another peer may use the
 * additional connections of the forgotten peer.
 *
 * The test first sends a sum, which opens the bulk trunk. Otherwise an activation would open the
 * trunk in some runs, when the measured rate is low. */
TEST(bursts_get_connections)
{
	static const struct post_options sender = {.connections = 2, .connections_more = 9};
	struct pair p;
	struct classes got = {{0}};
	open_far(&p, defaults, sender, &got);
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	send_in_class(p.b.post, p.to_a, 0, POST_CLASS_SUMS);
	PAIR_UNTIL(&p, post_idle(p.b.post, 0));
	PAIR_UNTIL(&p, counters_of(p.b.post).link.connections == 1 + 2 + 2);
	/* One activation makes the rate known. */
	send_in_class(p.b.post, p.to_a, 0, POST_CLASS_ACTIVATIONS);
	PAIR_UNTIL(&p, post_idle(p.b.post, 0));
	send_activations(&p, 1, 6);
	PAIR_UNTIL(&p, got.next[POST_CLASS_ACTIVATIONS] == 6 && post_idle(p.b.post, 0));
	PAIR_UNTIL(&p, counters_of(p.b.post).link.connections == 1 + 2 + 2 + 9);
	send_activations(&p, 6, 12);
	PAIR_UNTIL(&p, got.next[POST_CLASS_ACTIVATIONS] == 12 && post_idle(p.b.post, 0));
	assert_int_equal(counters_of(p.b.post).link.connections, 1 + 2 + 2 + 9);

	assert_int_equal(post_forget(p.b.post, p.to_a), 0);
	memset(&got, 0, sizeof(got));
	p.b.seen.up = 0;
	assert_int_equal(post_dial(p.b.post, p.address, keys_public_of(p.a.id), &p.to_a, NULL), 0);
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	send_in_class(p.b.post, p.to_a, 0, POST_CLASS_SUMS);
	send_in_class(p.b.post, p.to_a, 0, POST_CLASS_ACTIVATIONS);
	PAIR_UNTIL(&p, post_idle(p.b.post, 0));
	send_activations(&p, 1, 6);
	PAIR_UNTIL(&p, counters_of(p.b.post).link.connections == 1 + 2 + 2 + 9);
	pair_close(&p);
}

/* Sends large frames slowly, as a slow link does. */
static int send_slowly(void *context, uint8_t *frame, size_t size)
{
	(void)context;
	(void)frame;
	if (size > 50000)
		nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
	return 1;
}

/* A one-byte activation gives a rate, which proves nothing about the link. When a large
 * activation has filled the link, the next activation must open the bulk trunk. Chunks that were
 * sent twice give no measurement, so the test sends up to 100 activations. */
TEST(an_activation_that_fills_the_link_uses_the_bulk_trunk)
{
	static uint8_t data[200000];
	const struct link_hook slow = {send_slowly, NULL};
	const struct post_part tiny = {data, 1}, long_one = {data, sizeof(data)};
	struct pair p;
	pair_open_far(&p, defaults, (struct post_options){.connections = 2, .hook = &slow});
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	assert_int_equal(post_send(p.b.post, p.to_a, &tiny, 1, POST_ACTIVATIONS,
				 clock_monotonic_us()), 0);
	PAIR_UNTIL(&p, post_idle(p.b.post, 0));
	PAIR_UNTIL(&p, counters_of(p.b.post).link.connections == 1 + 2);
	for (int i = 0; i < 100 && counters_of(p.b.post).link.connections == 1 + 2; i++) {
		assert_int_equal(post_send(p.b.post, p.to_a, &long_one, 1, POST_ACTIVATIONS,
					 clock_monotonic_us()), 0);
		PAIR_UNTIL(&p, post_idle(p.b.post, 0));
		assert_true(i > 0 || counters_of(p.b.post).link.connections == 1 + 2);
	}
	PAIR_UNTIL(&p, counters_of(p.b.post).link.connections == 1 + 2 + 2);
	pair_close(&p);
}

/* Takes the next finished transfer. Returns true if the transfer was marked as the first of its
 * class on its connections. */
static bool next_is_first(struct pair *p)
{
	struct post_transfer t;
	PAIR_UNTIL(p, post_idle(p->b.post, 0));
	assert_int_equal(post_transfer(p->b.post, &t), 0);
	return t.first;
}

static bool has_carried(const struct pair *p, enum post_class class)
{
	struct post_peer_info info;
	assert_int_equal(post_peer(p->b.post, p->to_a, &info), 0);
	return info.carried[class];
}

/* The first transfer of each class must be marked. The first transfer after the post has opened
 * further connections must be marked too. */
TEST(first_transfers_are_marked)
{
	struct pair p;
	struct classes got = {{0}};
	open_far(&p, defaults, (struct post_options){.connections = 2}, &got);
	/* This message waits for the session. */
	send_in_class(p.b.post, p.to_a, 0, POST_CLASS_ACTIVATIONS);
	assert_true(next_is_first(&p));
	PAIR_UNTIL(&p, counters_of(p.b.post).link.connections == 1 + 2);
	send_in_class(p.b.post, p.to_a, 1, POST_CLASS_ACTIVATIONS);
	(void)next_is_first(&p);
	assert_true(has_carried(&p, POST_CLASS_ACTIVATIONS));
	assert_false(has_carried(&p, POST_CLASS_SUMS));
	send_in_class(p.b.post, p.to_a, 2, POST_CLASS_ACTIVATIONS);
	assert_false(next_is_first(&p));
	/* This message opens the connections of another trunk. */
	send_in_class(p.b.post, p.to_a, 0, POST_CLASS_SUMS);
	assert_true(next_is_first(&p));
	assert_true(has_carried(&p, POST_CLASS_SUMS));
	assert_false(has_carried(&p, POST_CLASS_ACTIVATIONS));
	send_in_class(p.b.post, p.to_a, 3, POST_CLASS_ACTIVATIONS);
	assert_true(next_is_first(&p));
	pair_close(&p);
}

/* A post must use a single connection to a peer on its own machine. */
TEST(near_peers_have_one_connection)
{
	struct pair p;
	pair_open(&p, defaults, eight);
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	send_in_class(p.b.post, p.to_a, 0, POST_CLASS_SUMS);
	PAIR_UNTIL(&p, post_idle(p.b.post, 0));
	assert_int_equal(counters_of(p.b.post).link.connections, 1);
	pair_close(&p);
}

/* A receiver without room refuses a class for a while. Other classes must continue, and no message
 * may be lost. */
TEST(deferred_messages_arrive_later)
{
	struct pair p;
	struct classes got = {{0}};
	open_far(&p, defaults, eight, &got);
	PAIR_UNTIL(&p, p.a.seen.up == 1 && p.b.seen.up == 1);
	const post_peer_id to_b = p.a.seen.peer;
	assert_int_equal(post_defer(p.a.post, 77, POST_CLASS_SUMS, true), -ENOENT);
	assert_int_equal(post_defer(p.a.post, to_b, POST_CLASS_SUMS, true), 0);
	for (uint64_t i = 0; i < 5; i++) {
		send_in_class(p.b.post, p.to_a, i, POST_CLASS_SUMS);
		send_in_class(p.b.post, p.to_a, i, POST_CLASS_ACTIVATIONS);
	}
	PAIR_UNTIL(&p, got.next[POST_CLASS_ACTIVATIONS] == 5 &&
		counters_of(p.b.post).resent_frames > 0);
	assert_int_equal(got.next[POST_CLASS_SUMS], 0);
	assert_int_equal(post_defer(p.a.post, to_b, POST_CLASS_SUMS, false), 0);
	PAIR_UNTIL(&p, got.next[POST_CLASS_SUMS] == 5 && post_idle(p.b.post, 0));
	pair_close(&p);
}

TEST(a_restarted_far_listener_is_noticed)
{
	struct pair p;
	struct classes got = {{0}};
	open_far(&p, defaults, eight, &got);
	send_each_class(&p, 0);
	PAIR_UNTIL(&p, p.a.seen.data == POST_CLASSES && post_idle(p.b.post, 0));
	pair_restart_a(&p, defaults);
	send_each_class(&p, 1);
	PAIR_UNTIL(&p, p.b.seen.restarted == 1);
	assert_int_equal(p.b.seen.lost, POST_CLASSES);
	send_each_class(&p, 1);
	PAIR_UNTIL(&p, p.a.seen.data == 2 * POST_CLASSES && post_idle(p.b.post, 0));
	pair_close(&p);
}

static int note_largest(void *context, uint8_t *frame, size_t size)
{
	size_t *largest = context;
	(void)frame;
	*largest = size > *largest ? size : *largest;
	return 1;
}

enum { HUGE = 30 }; /* number of a message of 342,315 bytes */

/* Each connection must carry a share of the message, both before and after the listener
 * restarts. */
TEST(a_restarted_far_listener_has_all_connections)
{
	struct classes got = {{0}};
	size_t largest = 0, before;
	const struct link_hook hook = {note_largest, &largest};
	struct pair p;
	open_far(&p, defaults, (struct post_options){.hook = &hook, .connections = 8}, &got);
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	got.next[POST_CLASS_ACTIVATIONS] = HUGE;
	send_in_class(p.b.post, p.to_a, HUGE, POST_CLASS_ACTIVATIONS);
	PAIR_UNTIL(&p, p.a.seen.data == 1 && post_idle(p.b.post, 0));
	assert_in_range(largest, 10000, 100000);
	before = largest;
	largest = 0;
	pair_restart_a(&p, defaults);
	PAIR_UNTIL(&p, p.b.seen.restarted == 1);
	got.next[POST_CLASS_ACTIVATIONS] = HUGE;
	send_in_class(p.b.post, p.to_a, HUGE, POST_CLASS_ACTIVATIONS);
	PAIR_UNTIL(&p, p.a.seen.data == 2 && post_idle(p.b.post, 0));
	assert_int_equal(largest, before);
	pair_close(&p);
}

static uint64_t sent_by(const struct post *post)
{
	return counters_of(post).link.sent_bytes;
}

/* All eight links have room, and eight messages are queued. A single turn must send only about a
 * MiB of their chunks. */
TEST(a_turn_sends_a_bounded_number_of_bytes_and_control_messages_in_any_turn)
{
	enum { PEERS = 8 };
	const struct post_options shares = {.shared_roles = KEYS_ROLE_BIT(KEYS_AGENT)};
	const struct post_part part = {calloc(700000, 1), 700000};
	const uint64_t most = (1 << 20) + part.size + 1000;
	struct pair p;
	post_peer_id to[PEERS];
	pair_open(&p, shares, defaults);
	to[0] = p.to_a;
	for (int i = 1; i < PEERS; i++)
		assert_int_equal(post_dial(p.b.post, p.address, keys_public_of(p.a.id), &to[i],
					 NULL),
			0);
	PAIR_UNTIL(&p, p.a.seen.up == PEERS && p.b.seen.up == PEERS);
	post_tick(p.b.post, clock_monotonic_us());
	uint64_t before = sent_by(p.b.post);
	for (int i = 0; i < PEERS; i++)
		assert_int_equal(post_send(p.b.post, to[i], &part, 1, POST_ACTIVATIONS,
					 clock_monotonic_us()),
			0);
	assert_in_range(sent_by(p.b.post) - before, 1, most);
	assert_true(post_waits_for_tick(p.b.post));
	assert_int_equal(post_deadline_us(p.b.post), 0);
	before = sent_by(p.b.post);
	assert_int_equal(send_text(p.b.post, to[PEERS - 1], "first", POST_CONTROL), 0);
	assert_in_range(sent_by(p.b.post) - before, 1, 1000);
	before = sent_by(p.b.post);
	post_tick(p.b.post, clock_monotonic_us());
	assert_in_range(sent_by(p.b.post) - before, 1, most);
	PAIR_UNTIL(&p, p.a.seen.data == PEERS + 1);
	assert_false(post_waits_for_tick(p.b.post));
	pair_close(&p);
	free((void *)(uintptr_t)part.data);
}
