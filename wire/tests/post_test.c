/* Delivery over real sockets: exactly once, whole, in order; through loss, restarts and floods. */
#include "wire/post.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "wire/tests/pair.h"

static const struct post_options defaults;

/* ---- messages that can be checked: number, then bytes that follow from it ---- */

static void fill_message(uint8_t *to, size_t size, uint64_t number)
{
	struct rng r;
	rng_init(&r, number);
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t word = i == 0 ? number : rng_next(&r);
		memcpy(to + i, &word, 8);
	}
	for (size_t i = size & ~(size_t)7; i < size; i++)
		to[i] = (uint8_t)number;
}

/* Checks that messages come numbered 0, 1, 2 ..., of the size wanted. */
struct checker {
	uint64_t next;
	size_t (*size)(uint64_t number);
	uint8_t *expect;
	size_t room;
};

static void check_message(struct end *e, struct post_message *m)
{
	struct checker *c = e->context;
	size_t size = c->size(c->next);
	assert_int_equal(m->size, size);
	if (size > c->room) {
		c->expect = realloc(c->expect, size);
		c->room = size;
	}
	fill_message(c->expect, size, c->next);
	assert_memory_equal(m->data, c->expect, size);
	c->next++;
}

static void send_message(struct post *post, post_peer_id peer, size_t size, uint64_t number)
{
	uint8_t *data = malloc(size + 1);
	fill_message(data, size, number);
	const struct post_part parts[2] = {{data, size / 3}, {data + size / 3, size - size / 3}};
	assert_int_equal(post_send(post, peer, parts, 2, POST_RELIABLE, clock_monotonic_us()), 0);
	free(data);
}

static size_t small_size(uint64_t number)
{
	return 8 + number % 200;
}

static size_t mixed_size(uint64_t number)
{
	static const size_t sizes[] = {8, 100, 70000, 16, 300000, 9, 2500000, 64};
	return sizes[number % 8];
}

static size_t huge_size(uint64_t number)
{
	(void)number;
	return (size_t)64 << 20;
}

/* ---- tests ---- */

static void both_come_up_and_talk(void **state)
{
	(void)state;
	struct pair p;
	struct post_peer_info info;
	pair_open(&p, defaults, defaults);
	assert_int_equal(send_text(p.b.post, p.to_a, "early", POST_RELIABLE), 0);
	PAIR_UNTIL(&p, p.a.seen.up == 1 && p.b.seen.up == 1 && p.a.seen.data == 1);
	assert_int_equal(post_peer(p.a.post, p.a.seen.peer, &info), 0);
	assert_string_equal(info.name, "b");
	assert_int_equal(info.role, KEYS_AGENT);
	assert_true(keys_equal(&info.key, keys_public_of(p.b.id)));
	assert_int_equal(send_text(p.a.post, p.a.seen.peer, "back", POST_RELIABLE), 0);
	assert_int_equal(send_text(p.a.post, p.a.seen.peer, "lossy", POST_LOSSY), 0);
	assert_int_equal(send_text(p.a.post, p.a.seen.peer, "", POST_RELIABLE), 0);
	PAIR_UNTIL(&p, p.b.seen.data == 3 && p.b.seen.lossy == 1);
	PAIR_UNTIL(&p, post_idle(p.a.post, 0) && post_idle(p.b.post, 0));
	assert_int_equal(send_text(p.a.post, 12345, "nobody", POST_RELIABLE), -ENOENT);
	pair_close(&p);
}

static void many_small_messages_arrive_in_both_directions(void **state)
{
	(void)state;
	struct pair p;
	struct checker ca = {.size = small_size}, cb = {.size = small_size};
	pair_open(&p, defaults, defaults);
	p.a.on_data = p.b.on_data = check_message;
	p.a.context = &ca;
	p.b.context = &cb;
	PAIR_UNTIL(&p, p.a.seen.up == 1 && p.b.seen.up == 1);
	post_peer_id to_b = p.a.seen.peer;
	for (uint64_t i = 0; i < 5000; i++) {
		send_message(p.b.post, p.to_a, small_size(i), i);
		send_message(p.a.post, to_b, small_size(i), i);
		if (i % 50 == 0)
			pair_turn(&p);
	}
	PAIR_UNTIL(&p, ca.next == 5000 && cb.next == 5000);
	free(ca.expect);
	free(cb.expect);
	pair_close(&p);
}

static void large_messages_arrive_in_both_directions(void **state)
{
	(void)state;
	struct pair p;
	struct checker ca = {.size = huge_size}, cb = {.size = huge_size};
	pair_open(&p, defaults, defaults);
	p.a.on_data = p.b.on_data = check_message;
	p.a.context = &ca;
	p.b.context = &cb;
	PAIR_UNTIL(&p, p.a.seen.up == 1);
	send_message(p.b.post, p.to_a, huge_size(0), 0);
	send_message(p.a.post, p.a.seen.peer, huge_size(0), 0);
	PAIR_UNTIL(&p, ca.next == 1 && cb.next == 1);
	PAIR_UNTIL(&p, post_idle(p.a.post, 0) && post_idle(p.b.post, 0));
	assert_int_equal(counters_of(p.b.post).retained_bytes, 0);
	assert_int_equal(counters_of(p.a.post).assembling_bytes, 0);
	free(ca.expect);
	free(cb.expect);
	pair_close(&p);
}

/* One frame in five is lost, doubled, held back past the next, or has a bit flipped. */
static int mischief(void *context, uint8_t *frame, size_t size)
{
	struct rng *r = context;
	switch (rng_below(r, 25)) {
	case 0:
		return 0;
	case 1:
		return 2;
	case 2:
		return -1;
	case 3:
		frame[rng_below(r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(r, 8));
		return 1;
	default:
		return 1;
	}
}

static const struct post_options eight = {.connections = 8};

/* Messages of several classes arrive in order within each class; they hold number and class. */
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
	fill_message(data, size, number);
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
	fill_message(expect, m->size, number);
	memcpy(expect + 8, &class, 8);
	assert_memory_equal(m->data, expect, m->size);
	free(expect);
	c->next[class]++;
}

static int mischief(void *context, uint8_t *frame, size_t size);

/* Uses seventeen connections without order, on which frames are lost, doubled and delayed. */
static void every_class_in_its_order_over_many_connections(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		struct pair p;
		struct classes got = {{0}};
		struct rng ra, rb;
		rng_init(&ra, 3);
		rng_init(&rb, 4);
		const struct link_hook ha = {mischief, &ra}, hb = {mischief, &rb};
		struct post_options oa = {.hook = round == 0 ? NULL : &ha};
		struct post_options ob = {.hook = round == 0 ? NULL : &hb, .connections = 8};
		const uint64_t n = round == 0 ? 60 : 15;
		pair_open_far(&p, oa, ob);
		p.a.on_data = check_class;
		p.a.context = &got;
		for (uint64_t i = 0; i < n; i++) {
			for (uint64_t class = 0; class < POST_CLASSES; class++)
				send_in_class(p.b.post, p.to_a, i, class);
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

/* A burst of activations gets more connections, within the limit of all peers. A single activation
 * gets none. The connections of a forgotten peer are free again. */
static void bursts_get_connections(void **state)
{
	static const struct post_options sender = {.connections = 2, .connections_more = 9};
	(void)state;
	struct pair p;
	struct classes got = {{0}};
	pair_open_far(&p, defaults, sender);
	p.a.on_data = check_class;
	p.a.context = &got;
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	send_in_class(p.b.post, p.to_a, 0, POST_CLASS_CONTROL);
	PAIR_UNTIL(&p, post_idle(p.b.post, 0));
	PAIR_UNTIL(&p, counters_of(p.b.post).link.connections == 1 + 2);
	send_in_class(p.b.post, p.to_a, 0, POST_CLASS_ACTIVATIONS); /* makes the rate known */
	PAIR_UNTIL(&p, post_idle(p.b.post, 0));
	for (uint64_t i = 1; i < 6; i++)
		send_in_class(p.b.post, p.to_a, i, POST_CLASS_ACTIVATIONS);
	PAIR_UNTIL(&p, got.next[POST_CLASS_ACTIVATIONS] == 6 && post_idle(p.b.post, 0));
	PAIR_UNTIL(&p, counters_of(p.b.post).link.connections == 1 + 2 + 9);
	for (uint64_t i = 6; i < 12; i++)
		send_in_class(p.b.post, p.to_a, i, POST_CLASS_ACTIVATIONS);
	PAIR_UNTIL(&p, got.next[POST_CLASS_ACTIVATIONS] == 12 && post_idle(p.b.post, 0));
	assert_int_equal(counters_of(p.b.post).link.connections, 1 + 2 + 9);

	assert_int_equal(post_forget(p.b.post, p.to_a), 0);
	memset(&got, 0, sizeof(got));
	p.b.seen.up = 0;
	assert_int_equal(post_dial(p.b.post, p.address, keys_public_of(p.a.id), &p.to_a, NULL), 0);
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	send_in_class(p.b.post, p.to_a, 0, POST_CLASS_ACTIVATIONS);
	PAIR_UNTIL(&p, post_idle(p.b.post, 0));
	for (uint64_t i = 1; i < 6; i++)
		send_in_class(p.b.post, p.to_a, i, POST_CLASS_ACTIVATIONS);
	PAIR_UNTIL(&p, counters_of(p.b.post).link.connections == 1 + 2 + 9);
	pair_close(&p);
}

/* To a peer on its own machine a post uses one connection. */
static void near_peers_have_one_connection(void **state)
{
	(void)state;
	struct pair p;
	pair_open(&p, defaults, eight);
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	send_in_class(p.b.post, p.to_a, 0, POST_CLASS_SUMS);
	PAIR_UNTIL(&p, post_idle(p.b.post, 0));
	assert_int_equal(counters_of(p.b.post).link.connections, 1);
	pair_close(&p);
}

/* A receiver without room defers a class: other classes continue, and no message is lost. */
static void deferred_messages_arrive_later(void **state)
{
	(void)state;
	struct pair p;
	struct classes got = {{0}};
	pair_open_far(&p, defaults, eight);
	p.a.on_data = check_class;
	p.a.context = &got;
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

static void a_restarted_far_listener_is_noticed(void **state)
{
	(void)state;
	struct pair p;
	struct classes got = {{0}};
	pair_open_far(&p, defaults, eight);
	p.a.on_data = check_class;
	p.a.context = &got;
	for (uint64_t class = 0; class < POST_CLASSES; class++)
		send_in_class(p.b.post, p.to_a, 0, class);
	PAIR_UNTIL(&p, p.a.seen.data == POST_CLASSES && post_idle(p.b.post, 0));
	pair_restart_a(&p, defaults);
	for (uint64_t class = 0; class < POST_CLASSES; class++)
		send_in_class(p.b.post, p.to_a, 1, class);
	PAIR_UNTIL(&p, p.b.seen.restarted == 1);
	assert_int_equal(p.b.seen.lost, POST_CLASSES);
	for (uint64_t class = 0; class < POST_CLASSES; class++)
		send_in_class(p.b.post, p.to_a, 1, class);
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

enum { HUGE = 30 }; /* a message of 342,315 bytes */

/* Each connection carries a share of the message, before and after the listener restarts. */
static void a_restarted_far_listener_has_all_connections(void **state)
{
	(void)state;
	struct classes got = {{0}};
	size_t largest = 0, before;
	const struct link_hook hook = {note_largest, &largest};
	struct pair p;
	pair_open_far(&p, defaults, (struct post_options){.hook = &hook, .connections = 8});
	p.a.on_data = check_class;
	p.a.context = &got;
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

static void exactly_once_under_mischief(void **state)
{
	(void)state;
	struct pair p;
	struct rng ra, rb;
	rng_init(&ra, 1);
	rng_init(&rb, 2);
	const struct link_hook ha = {mischief, &ra}, hb = {mischief, &rb};
	struct checker ca = {.size = mixed_size}, cb = {.size = mixed_size};
	struct post_options oa = {.hook = &ha, .silence_us = 1000000};
	struct post_options ob = {.hook = &hb, .silence_us = 1000000};
	pair_open(&p, oa, ob);
	p.a.on_data = p.b.on_data = check_message;
	p.a.context = &ca;
	p.b.context = &cb;
	PAIR_UNTIL(&p, p.a.seen.up == 1);
	post_peer_id to_b = p.a.seen.peer;
	for (uint64_t i = 0; i < 40; i++) {
		send_message(p.b.post, p.to_a, mixed_size(i), i);
		send_message(p.a.post, to_b, mixed_size(i), i);
		pair_turn(&p);
	}
	PAIR_UNTIL(&p, ca.next == 40 && cb.next == 40);
	struct post_counters c = counters_of(p.a.post);
	assert_true(c.link.refused[LINK_BAD_SEAL] + c.link.refused[LINK_REPLAY] > 0);
	assert_true(c.resent_frames + counters_of(p.b.post).resent_frames > 0);
	assert_int_equal(p.a.seen.restarted + p.b.seen.restarted, 0);
	assert_int_equal(p.a.seen.lost + p.b.seen.lost, 0);
	free(ca.expect);
	free(cb.expect);
	pair_close(&p);
}

static void a_restarted_listener_is_noticed(void **state)
{
	(void)state;
	struct pair p;
	pair_open(&p, defaults, defaults);
	assert_int_equal(send_text(p.b.post, p.to_a, "one", POST_RELIABLE), 0);
	PAIR_UNTIL(&p, p.a.seen.data == 1 && post_idle(p.b.post, 0));
	pair_restart_a(&p, defaults);
	assert_int_equal(send_text(p.b.post, p.to_a, "for the old one", POST_RELIABLE), 0);
	PAIR_UNTIL(&p, p.b.seen.restarted == 1);
	assert_int_equal(p.b.seen.lost, 1);
	assert_int_equal(p.a.seen.data, 1);
	assert_int_equal(send_text(p.b.post, p.to_a, "for the new one", POST_RELIABLE), 0);
	PAIR_UNTIL(&p, p.a.seen.data == 2 && post_idle(p.b.post, 0));
	pair_close(&p);
}

static void a_restarted_dialer_keeps_its_number(void **state)
{
	(void)state;
	struct pair p;
	pair_open(&p, defaults, defaults);
	PAIR_UNTIL(&p, p.a.seen.up == 1);
	post_peer_id to_b = p.a.seen.peer;
	pair_restart_b(&p, defaults);
	assert_int_equal(send_text(p.a.post, to_b, "for the old one", POST_RELIABLE), 0);
	PAIR_UNTIL(&p, p.a.seen.restarted == 1);
	assert_int_equal(p.a.seen.peer, to_b);
	assert_int_equal(p.a.seen.lost, 1);
	assert_int_equal(send_text(p.a.post, to_b, "for the new one", POST_RELIABLE), 0);
	PAIR_UNTIL(&p, p.b.seen.data == 1 && post_idle(p.a.post, 0));
	pair_close(&p);
}

static void retained_bytes_are_bounded(void **state)
{
	(void)state;
	struct pair p;
	struct post_options small = {.retained_most_bytes = 1 << 20};
	static uint8_t block[100000];
	const struct post_part part = {block, sizeof(block)}, empty = {block, 0};
	int rc, sent = 0;
	pair_open(&p, defaults, small);
	/* Nobody calls the listener's loop, so nothing is acknowledged. */
	while ((rc = post_send(p.b.post, p.to_a, &part, 1, POST_RELIABLE, 0)) == 0)
		sent++;
	assert_int_equal(rc, -EAGAIN);
	assert_int_equal(sent, 10);
	while ((rc = post_send(p.b.post, p.to_a, &empty, 1, POST_RELIABLE, 0)) == 0)
		sent++;
	assert_int_equal(rc, -EAGAIN);
	assert_true(sent < 20000);
	PAIR_UNTIL(&p, p.a.seen.data == (unsigned)sent);
	PAIR_UNTIL(&p, post_idle(p.b.post, 0));
	assert_true(post_room(p.b.post, p.to_a) == 1 << 20);
	pair_close(&p);
}

static void incomplete_messages_are_bounded(void **state)
{
	(void)state;
	struct pair p;
	struct post_options tight = { .assembling_most_bytes = 1 << 20,
				      .message_most_bytes = 8 << 20 };
	struct checker c = {.size = mixed_size};
	pair_open(&p, tight, defaults);
	p.a.on_data = check_message;
	p.a.context = &c;
	for (uint64_t i = 0; i < 16; i++)
		send_message(p.b.post, p.to_a, mixed_size(i), i);
	PAIR_UNTIL(&p, c.next == 16);
	free(c.expect);
	/* A message longer than the receiver accepts never arrives, and other messages do. */
	send_message(p.b.post, p.to_a, (size_t)9 << 20, 0);
	PAIR_UNTIL(&p, counters_of(p.a.post).link.refused[LINK_MALFORMED] > 0);
	assert_int_equal(counters_of(p.a.post).assembling_bytes, 0);
	pair_close(&p);
}

static void keep_message(struct end *e, struct post_message *m)
{
	struct post_message *kept = e->context;
	if (kept->owner == NULL) {
		post_keep(e->post, m);
		*kept = *m;
	}
}

static void a_kept_message_outlives_the_post(void **state)
{
	(void)state;
	struct pair p;
	struct post_message kept = {0};
	pair_open(&p, defaults, defaults);
	p.a.on_data = keep_message;
	p.a.context = &kept;
	send_text(p.b.post, p.to_a, "kept", POST_RELIABLE);
	send_text(p.b.post, p.to_a, "not kept", POST_RELIABLE);
	PAIR_UNTIL(&p, p.a.seen.data == 2);
	pair_close(&p);
	assert_int_equal(kept.size, 4);
	assert_memory_equal(kept.data, "kept", 4);
	post_release(&kept);
	post_release(&kept);
}

static void forgetting_drops_everything(void **state)
{
	(void)state;
	struct pair p;
	struct post_peer_info info;
	pair_open(&p, defaults, defaults);
	PAIR_UNTIL(&p, p.a.seen.up == 1);
	post_peer_id to_b = p.a.seen.peer;
	send_message(p.a.post, to_b, 3000000, 0);
	assert_int_equal(post_forget(p.a.post, to_b), 0);
	assert_int_equal(post_forget(p.a.post, to_b), -ENOENT);
	assert_int_equal(post_peer(p.a.post, to_b, &info), -ENOENT);
	assert_int_equal(counters_of(p.a.post).retained_bytes, 0);
	/* The dialer is still running. It reconnects to a listener that remembers nothing. */
	send_text(p.b.post, p.to_a, "hello?", POST_RELIABLE);
	PAIR_UNTIL(&p, p.a.seen.up == 2 && p.b.seen.restarted == 1);
	assert_true(p.a.seen.peer != to_b);
	send_text(p.b.post, p.to_a, "again", POST_RELIABLE);
	PAIR_UNTIL(&p, p.a.seen.data >= 1 && post_idle(p.b.post, 0));
	assert_int_equal(post_forget(p.b.post, p.to_a), 0);
	assert_int_equal(counters_of(p.b.post).peers, 0);
	pair_close(&p);
}

static void addresses_are_checked(void **state)
{
	(void)state;
	struct end e, f;
	struct error err;
	char bound[LINK_ADDRESS_SIZE], path[64];
	end_new(&e, defaults);
	end_new(&f, defaults);
	assert_int_equal(post_listen(e.post, "tcp://127.0.0.1:0", bound, &err), 0);
	assert_int_equal(post_listen(f.post, bound, NULL, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, bound));
	assert_int_equal(post_listen(f.post, "tcp://192.0.2.1:4000", NULL, &err), -EADDRNOTAVAIL);
	assert_int_equal(post_listen(f.post, "http://x", NULL, &err), -EPROTONOSUPPORT);
	assert_int_equal(post_listen(f.post, "", NULL, &err), -EINVAL);
	assert_int_equal(post_listen(f.post, "tcp://127.0.0.1", NULL, &err), -EINVAL);
	assert_int_equal(post_listen(f.post, "ipc:///nonexistent/x", NULL, &err), -ENOENT);
	int rc = post_listen(f.post, "tcp://[::1]:0", bound, &err);
	assert_true(rc == -EADDRNOTAVAIL || (rc == 0 && strncmp(bound, "tcp://[::1]:", 12) == 0));
	snprintf(path, sizeof(path), "ipc:///tmp/skippipe-post-test.%d", rand());
	assert_int_equal(post_listen(f.post, path, NULL, &err), 0);
	post_peer_id peer;
	assert_int_equal(post_dial(f.post, "nowhere", keys_public_of(e.id), &peer, &err), -EINVAL);
	assert_int_equal(counters_of(f.post).peers, 0);
	end_free(&e);
	end_free(&f);
	remove(path + 6);
}

static void silence_ends_a_session(void **state)
{
	(void)state;
	struct pair p;
	struct post_options quick = {.silence_us = 1000000};
	pair_open(&p, quick, quick);
	PAIR_UNTIL(&p, p.a.seen.up == 1 && p.b.seen.up == 1);
	/* Both ends are idle, and keep-alive frames keep the session. */
	int64_t until = clock_monotonic_us() + 2500000;
	while (clock_monotonic_us() < until)
		pair_turn(&p);
	assert_int_equal(p.a.seen.down + p.b.seen.down, 0);
	/* b stops. */
	until = clock_monotonic_us() + 20000000;
	while (p.a.seen.down == 0 && clock_monotonic_us() < until)
		end_turn(&p.a);
	assert_int_equal(p.a.seen.down, 1);
	assert_int_equal(p.a.seen.reason, LINK_SILENT);
	/* b continues: its process is the same, and nothing was lost. */
	send_text(p.a.post, p.a.seen.peer, "while you were out", POST_RELIABLE);
	PAIR_UNTIL(&p, p.a.seen.up == 2 && p.b.seen.data == 1);
	assert_int_equal(p.a.seen.restarted + p.b.seen.restarted, 0);
	assert_int_equal(p.a.seen.lost, 0);
	pair_close(&p);
}

static void new_keys_lose_nothing(void **state)
{
	(void)state;
	struct pair p;
	struct checker ca = {.size = mixed_size}, cb = {.size = mixed_size};
	struct post_options often = {.rekey_us = 20000};
	pair_open(&p, defaults, often);
	p.a.on_data = p.b.on_data = check_message;
	p.a.context = &ca;
	p.b.context = &cb;
	PAIR_UNTIL(&p, p.a.seen.up == 1);
	post_peer_id to_b = p.a.seen.peer;
	uint64_t sent = 0;
	while (counters_of(p.a.post).link.handshakes < 6) {
		send_message(p.b.post, p.to_a, mixed_size(sent), sent);
		send_message(p.a.post, to_b, mixed_size(sent), sent);
		sent++;
		PAIR_UNTIL(&p, counters_of(p.a.post).retained_bytes < 32 << 20);
	}
	PAIR_UNTIL(&p, ca.next == sent && cb.next == sent);
	assert_int_equal(p.a.seen.up + p.b.seen.up, 2);
	assert_int_equal(p.a.seen.down + p.b.seen.down, 0);
	assert_int_equal(counters_of(p.a.post).link.sessions, 1);
	free(ca.expect);
	free(cb.expect);
	pair_close(&p);
}

static void an_absent_peer_costs_nothing(void **state)
{
	(void)state;
	struct end e;
	post_peer_id peer;
	unsigned turns = 0;
	end_new(&e, defaults);
	assert_int_equal(
		post_dial(e.post, "tcp://127.0.0.1:1", keys_public_of(e.id), &peer, NULL), 0);
	send_text(e.post, peer, "waits", POST_RELIABLE);
	int64_t until = clock_monotonic_us() + 500000;
	while (clock_monotonic_us() < until) {
		struct pollfd fd = {.fd = post_fd(e.post), .events = POLLIN};
		int64_t left = post_deadline_us(e.post) - clock_monotonic_us();
		if (left > 0)
			poll(&fd, 1, left > 100000 ? 100 : (int)(left / 1000) + 1);
		end_turn(&e);
		turns++;
	}
	assert_true(turns < 100);
	assert_int_equal(post_send(e.post, peer, NULL, 0, POST_LOSSY, 0), -ENOTCONN);
	end_free(&e);
}

/* On a busy link every tensor measures it. On an idle link probes do. */
static void finished_transfers_are_reported(void **state)
{
	(void)state;
	struct pair p;
	struct post_transfer t;
	struct post_peer_info info;
	static uint8_t block[100000];
	const struct post_part part = {block, sizeof(block)};
	pair_open(&p, defaults, defaults);
	assert_int_equal(post_probe(p.b.post, p.to_a, false, clock_monotonic_us()), -ENOTCONN);
	assert_int_equal(post_probe(p.b.post, 77, false, clock_monotonic_us()), -ENOENT);
	PAIR_UNTIL(&p, p.a.seen.up == 1 && p.b.seen.up == 1);
	assert_int_equal(post_peer(p.b.post, p.to_a, &info), 0);
	assert_int_equal(info.round_trip_us, 0);
	assert_int_equal(post_probe(p.b.post, p.to_a, false, clock_monotonic_us()), 0);
	PAIR_UNTIL(&p, post_peer(p.b.post, p.to_a, &info) == 0 && info.round_trip_us > 0);
	assert_true(info.least_round_trip_us > 0 && info.rto_us > info.round_trip_us);
	assert_int_equal(p.a.seen.data, 0); /* probes are no messages */
	assert_int_equal(info.delivery_bytes_per_s, 0);
	assert_int_equal(post_transfer(p.b.post, &t), -EAGAIN);

	const int64_t before = clock_monotonic_us();
	assert_int_equal(send_text(p.b.post, p.to_a, "control", POST_RELIABLE), 0);
	assert_int_equal(post_send(p.b.post, p.to_a, &part, 1, POST_ACTIVATIONS, before), 0);
	assert_int_equal(post_send(p.b.post, p.to_a, &part, 1, POST_SUMS, before), 0);
	assert_int_equal(post_send(p.b.post, p.to_a, &part, 1, 1 << 4, before), -EINVAL);
	PAIR_UNTIL(&p, post_idle(p.b.post, 0) && p.a.seen.data == 3);
	assert_int_equal(post_peer(p.b.post, p.to_a, &info), 0);
	assert_true(info.delivery_bytes_per_s > 0);
	assert_int_equal(info.under_way_bytes, 0);
	for (unsigned seen = 0; seen != 3;) { /* one of each class, in any order */
		assert_int_equal(post_transfer(p.b.post, &t), 0);
		assert_int_equal(t.peer, p.to_a);
		assert_int_equal(t.bytes, sizeof(block));
		assert_int_equal(t.queued_us, before);
		assert_true(t.left_us >= before && t.acked_us > t.left_us);
		assert_true(t.under_way_bytes <= sizeof(block) + 7);
		assert_true(t.class == POST_CLASS_ACTIVATIONS || t.class == POST_CLASS_SUMS);
		seen |= t.class == POST_CLASS_ACTIVATIONS ? 1u : 2u;
	}
	assert_int_equal(post_transfer(p.b.post, &t), -EAGAIN);
	pair_close(&p);
}

/* Loses frames of more than 1,200 bytes while *context is true. */
static int lose_large(void *context, uint8_t *frame, size_t size)
{
	(void)frame;
	return *(bool *)context && size > 1200 ? 0 : 1;
}

/* A network that loses full packets answers small probes. Only a large probe shows that it works.
 */
static void a_large_probe_shows_that_large_packets_pass(void **state)
{
	(void)state;
	struct pair p;
	struct post_peer_info info;
	bool loses = false;
	const struct link_hook hook = {lose_large, &loses};
	struct post_options narrow = {.hook = &hook};
	static uint8_t block[100000];
	const struct post_part part = {block, sizeof(block)};
	pair_open(&p, defaults, narrow);
	PAIR_UNTIL(&p, p.a.seen.up == 1 && p.b.seen.up == 1);
	assert_int_equal(post_peer(p.b.post, p.to_a, &info), 0);
	assert_int_equal(info.stalled_us, 0);
	loses = true;
	const int64_t queued_us = clock_monotonic_us();
	assert_int_equal(post_send(p.b.post, p.to_a, &part, 1, POST_ACTIVATIONS, queued_us), 0);
	assert_int_equal(send_text(p.b.post, p.to_a, "small", POST_RELIABLE), 0);
	assert_int_equal(post_probe(p.b.post, p.to_a, true, queued_us), 0);
	PAIR_UNTIL(&p, p.a.seen.data == 1);
	assert_int_equal(post_probe(p.b.post, p.to_a, false, clock_monotonic_us()), 0);
	PAIR_UNTIL(&p, post_peer(p.b.post, p.to_a, &info) == 0 && info.round_trip_us > 0);
	/* although a small message was acknowledged */
	assert_int_equal(info.stalled_us, queued_us);
	assert_int_equal(info.large_passed_us, 0);
	loses = false;
	assert_int_equal(post_probe(p.b.post, p.to_a, true, clock_monotonic_us()), 0);
	PAIR_UNTIL(&p, post_peer(p.b.post, p.to_a, &info) == 0 &&
			       info.large_passed_us > queued_us);
	PAIR_UNTIL(&p, post_idle(p.b.post, 0) && p.a.seen.data == 2);
	assert_int_equal(post_peer(p.b.post, p.to_a, &info), 0);
	assert_int_equal(info.stalled_us, 0);
	assert_int_equal(info.malformed_frames, 0);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_come_up_and_talk),
		cmocka_unit_test(many_small_messages_arrive_in_both_directions),
		cmocka_unit_test(large_messages_arrive_in_both_directions),
		cmocka_unit_test(exactly_once_under_mischief),
		cmocka_unit_test(a_restarted_listener_is_noticed),
		cmocka_unit_test(a_restarted_dialer_keeps_its_number),
		cmocka_unit_test(retained_bytes_are_bounded),
		cmocka_unit_test(incomplete_messages_are_bounded),
		cmocka_unit_test(a_kept_message_outlives_the_post),
		cmocka_unit_test(forgetting_drops_everything),
		cmocka_unit_test(addresses_are_checked),
		cmocka_unit_test(silence_ends_a_session),
		cmocka_unit_test(new_keys_lose_nothing),
		cmocka_unit_test(an_absent_peer_costs_nothing),
		cmocka_unit_test(finished_transfers_are_reported),
		cmocka_unit_test(a_large_probe_shows_that_large_packets_pass),
		cmocka_unit_test(every_class_in_its_order_over_many_connections),
		cmocka_unit_test(bursts_get_connections),
		cmocka_unit_test(near_peers_have_one_connection),
		cmocka_unit_test(deferred_messages_arrive_later),
		cmocka_unit_test(a_restarted_far_listener_is_noticed),
		cmocka_unit_test(a_restarted_far_listener_has_all_connections),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
