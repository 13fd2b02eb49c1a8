/* Tests attacks by strangers and by admitted processes. No message of an attacker may be
 * accepted, and no message of an honest peer may be lost. Memory must not grow, and every attempt
 * must be counted. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/tests/test.h"
#include "wire/sessions/frame.h"
#include "wire/delivery/post_frame.h"
#include "wire/sessions/socket.h"
#include "wire/tests/pair.h"

static const struct post_options defaults;

static uint64_t refused(const struct end *e, enum link_reason reason)
{
	return counters_of(e->post).link.refused[reason];
}

/* Checks that the two ends of the pair still exchange messages, and that no other message has
 * arrived. */
static void still_well(struct pair *p)
{
	unsigned a = p->a.seen.data, b = p->b.seen.data;
	assert_int_equal(send_text(p->b.post, p->to_a, "still there?", POST_RELIABLE), 0);
	PAIR_UNTIL(p, p->a.seen.data == a + 1 && post_idle(p->b.post, 0));
	assert_int_equal(send_text(p->a.post, p->a.seen.peer, "yes", POST_RELIABLE), 0);
	PAIR_UNTIL(p, p->b.seen.data == b + 1 && post_idle(p->a.post, 0));
	assert_int_equal(p->a.seen.restarted + p->b.seen.restarted, 0);
	assert_int_equal(p->a.seen.lost + p->b.seen.lost, 0);
}

static void turn_for(struct pair *p, int64_t us)
{
	int64_t until = clock_monotonic_us() + us;
	while (clock_monotonic_us() < until)
		pair_turn(p);
}

/* ---- wrong keys ---- */

static void stranger(struct pair *p, struct end *s, const struct keys_public *key)
{
	post_peer_id peer;
	assert_int_equal(post_dial(s->post, p->address, key, &peer, NULL), 0);
	send_text(s->post, peer, "let me in", POST_RELIABLE);
	int64_t until = clock_monotonic_us() + TEST_PATIENCE_US;
	while (s->seen.refused == 0 && clock_monotonic_us() < until) {
		pair_turn(p);
		end_turn(s);
	}
	assert_true(s->seen.refused > 0);
	assert_int_equal(s->seen.up, 0);
}

TEST(a_stranger_is_refused_with_its_reason)
{
	static const struct {
		uint32_t roles;          /* roles that the listener accepts; 0: all */
		enum keys_role admitted; /* role of the stranger's key; 0: not admitted */
		/* The stranger dials a, but expects b's key at that address. */
		bool believes_in_b;
		enum link_reason reason;
	} cases[] = {
		{ 0, 0, false, LINK_NOT_ADMITTED },
		/* End a cannot prove that it owns b's key. */
		{ 0, KEYS_AGENT, true, LINK_BAD_SEAL },
		{ KEYS_ROLE_BIT(KEYS_AGENT), KEYS_WATCHER, false, LINK_ROLE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct post_options listener = { .roles = cases[i].roles };
		struct pair p;
		struct end s;

		pair_open(&p, listener, defaults);
		PAIR_UNTIL(&p, p.b.seen.up == 1);
		end_new(&s, defaults);
		if (cases[i].admitted)
			assert_int_equal(keys_list_admit(p.a.list, keys_public_of(s.id),
							 cases[i].admitted, "s", NULL),
					 0);
		stranger(&p, &s, keys_public_of(cases[i].believes_in_b ? p.b.id : p.a.id));
		assert_int_equal(s.seen.reason, cases[i].reason);
		if (!cases[i].admitted)
			assert_true(refused(&p.a, LINK_NOT_ADMITTED) > 0);
		assert_int_equal(counters_of(p.a.post).peers, 1);
		still_well(&p);
		end_free(&s);
		pair_close(&p);
	}
}

TEST(an_expelled_key_is_cut_at_once)
{
	struct pair p;
	pair_open(&p, defaults, defaults);
	PAIR_UNTIL(&p, p.a.seen.up == 1 && p.b.seen.up == 1);
	assert_int_equal(keys_list_expel(p.a.list, "b", NULL), 0);
	end_turn(&p.a);
	assert_int_equal(p.a.seen.down, 1);
	assert_int_equal(p.a.seen.reason, LINK_NOT_ADMITTED);
	send_text(p.b.post, p.to_a, "hello?", POST_RELIABLE);
	PAIR_UNTIL(&p, p.b.seen.refused > 0);
	assert_int_equal(p.b.seen.reason, LINK_NOT_ADMITTED);
	turn_for(&p, 300000);
	assert_int_equal(p.a.seen.data, 0);
	/* When the key is admitted again, the session continues. */
	assert_int_equal(keys_list_admit(p.a.list, keys_public_of(p.b.id), KEYS_AGENT, "b", NULL),
			 0);
	PAIR_UNTIL(&p, p.a.seen.data == 1);
	assert_int_equal(p.b.seen.lost, 0);
	pair_close(&p);
}

TEST(of_two_with_one_key_the_newer_stays)
{
	struct pair p;
	struct end s;
	post_peer_id peer;
	pair_open(&p, defaults, defaults);
	PAIR_UNTIL(&p, p.b.seen.up == 1 && p.a.seen.up == 1);
	memset(&s, 0, sizeof(s));
	struct post_options o = {.identity = p.b.id};
	assert_int_equal(post_open(&s.post, &o, NULL), 0);
	assert_int_equal(post_dial(s.post, p.address, keys_public_of(p.a.id), &peer, NULL), 0);
	int64_t until = clock_monotonic_us() + TEST_PATIENCE_US;
	while ((s.seen.up == 0 || p.b.seen.refused == 0) && clock_monotonic_us() < until) {
		send_text(p.b.post, p.to_a, "I was first", POST_LOSSY);
		pair_turn(&p);
		end_turn(&s);
	}
	assert_int_equal(p.b.seen.reason, LINK_SUPERSEDED);
	assert_int_equal(counters_of(p.a.post).peers, 1);
	unsigned ups = s.seen.up;
	until = clock_monotonic_us() + 600000;
	while (clock_monotonic_us() < until) {
		pair_turn(&p);
		end_turn(&s);
	}
	/* The replaced process must not reconnect. Otherwise the two processes would replace each
	 * other forever. */
	assert_int_equal(s.seen.up, ups);
	assert_int_equal(s.seen.down, 0);
	post_close(s.post);
	pair_close(&p);
}

TEST(consoles_may_share_a_key)
{
	struct pair p;
	struct end s;
	post_peer_id peer;
	pair_open(&p, (struct post_options){.silence_us = 300000}, defaults);
	assert_int_equal(keys_list_admit(p.a.list, keys_public_of(p.b.id), KEYS_CONSOLE, "b", NULL),
		0);
	PAIR_UNTIL(&p, p.b.seen.up == 1 && p.a.seen.up == 1);
	memset(&s, 0, sizeof(s));
	struct post_options o = {.identity = p.b.id, .silence_us = 300000};
	assert_int_equal(post_open(&s.post, &o, NULL), 0);
	assert_int_equal(post_dial(s.post, p.address, keys_public_of(p.a.id), &peer, NULL), 0);
	int64_t until = clock_monotonic_us() + TEST_PATIENCE_US;
	while (p.a.seen.up < 2 && clock_monotonic_us() < until) {
		pair_turn(&p);
		end_turn(&s);
	}
	assert_int_equal(counters_of(p.a.post).peers_up, 2);
	assert_int_equal(p.a.seen.down, 0);
	/* When a console leaves, the console's peer number becomes invalid after the POST_DOWN
	 * event. */
	post_close(s.post);
	PAIR_UNTIL(&p, p.a.seen.down == 1);
	PAIR_UNTIL(&p, counters_of(p.a.post).peers == 1);
	pair_close(&p);
}

/* ---- a recorded stream ---- */

struct tape {
	uint8_t *frames[512];
	size_t sizes[512];
	size_t n;
};

static int record(void *context, uint8_t *frame, size_t size)
{
	struct tape *t = context;
	if (t->n < 512) {
		t->frames[t->n] = malloc(size);
		memcpy(t->frames[t->n], frame, size);
		t->sizes[t->n++] = size;
	}
	return 1;
}

static void inject(struct socket *s, const uint8_t *bytes, size_t size)
{
	uint8_t *frame = socket_frame(size);
	memcpy(frame, bytes, size);
	(void)socket_send(s, NULL, frame);
}

TEST(replayed_and_bit_flipped)
{
	struct pair p;
	struct tape tape = {.n = 0};
	struct link_hook hook = {record, &tape};
	struct socket wire;
	struct rng r;
	rng_init(&r, 5);
	pair_open(&p, defaults, (struct post_options){.hook = &hook});
	for (int i = 0; i < 20; i++)
		send_text(p.b.post, p.to_a, "secret", POST_RELIABLE);
	PAIR_UNTIL(&p, p.a.seen.data == 20 && post_idle(p.b.post, 0));
	/* The layers above the encryption would not notice a repeated frame. The encryption itself
	 * must refuse it. */
	for (int i = 0; i < 10; i++)
		send_text(p.b.post, p.to_a, "secret", POST_LOSSY);
	PAIR_UNTIL(&p, p.a.seen.data == 30);
	size_t n = tape.n;
	assert_true(n > 20);
	/* The bytes on the wire must contain neither the message nor b's key. */
	for (size_t i = 0; i < n; i++) {
		assert_null(memmem(tape.frames[i], tape.sizes[i], "secret", 6));
		assert_null(memmem(tape.frames[i], tape.sizes[i],
			keys_public_of(p.b.id)->bytes, KEYS_BYTES));
	}
	assert_int_equal(socket_dial(&wire, p.address, 1, false, 65536, NULL), 0);
	turn_for(&p, 200000);
	for (int round = 0; round < 50; round++) {
		for (size_t i = 0; i < n; i++) {
			uint8_t copy[4096];
			memcpy(copy, tape.frames[i], tape.sizes[i]);
			if (round > 0)
				copy[rng_below(&r, (uint32_t)tape.sizes[i])] ^=
					(uint8_t)(1u << rng_below(&r, 8));
			inject(&wire, copy, tape.sizes[i]);
		}
		turn_for(&p, 2000);
	}
	PAIR_UNTIL(&p, refused(&p.a, LINK_BAD_SEAL) > 10 && refused(&p.a, LINK_REPLAY) > 20 &&
		refused(&p.a, LINK_MALFORMED) > 0 && refused(&p.a, LINK_UNKNOWN_SESSION) > 0);
	assert_int_equal(p.a.seen.data, 30);
	assert_int_equal(p.a.seen.up, 1);
	assert_int_equal(p.a.seen.down, 0);
	still_well(&p);
	socket_close(&wire);
	pair_close(&p);
	for (size_t i = 0; i < tape.n; i++)
		free(tape.frames[i]);
}

static int double_inits(void *context, uint8_t *frame, size_t size)
{
	(void)context;
	return size == FRAME_INIT_SIZE && frame[3] == FRAME_INIT ? 2 : 1;
}

/* A recorded handshake is sent again on the same connection, because the handshake's cookie is
 * still valid there. The listener must refuse the handshake. */
TEST(a_handshake_counts_once)
{
	struct pair p;
	struct link_hook hook = {double_inits, NULL};
	pair_open(&p, defaults, (struct post_options){.hook = &hook});
	PAIR_UNTIL(&p, p.a.seen.up == 1 && p.b.seen.up == 1);
	PAIR_UNTIL(&p, refused(&p.a, LINK_REPLAY) == 1);
	assert_int_equal(counters_of(p.a.post).link.sessions, 1);
	still_well(&p);
	pair_close(&p);
}

/* ---- floods and noise ---- */

static long resident_kib(void)
{
	long pages = 0, skip;
	FILE *f = fopen("/proc/self/statm", "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld %ld", &skip, &pages), 2);
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Clang defines no macro for ASan. Its __has_feature shows that ASan is on. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

/* Checks that this process's memory exceeds `before` by at most `kib` KiB. ASan keeps freed
 * memory, so under ASan the function checks nothing. */
static void expect_no_growth(long before, long kib)
{
#if defined(__SANITIZE_ADDRESS__)
	(void)before;
	(void)kib;
#else
	assert_in_range(resident_kib(), 0, before + kib);
#endif
}

TEST(greetings_without_end)
{
	struct pair p;
	struct socket wire;
	uint8_t hello[FRAME_HELLO_SIZE], nonce[FRAME_NONCE] = {1}, init[FRAME_INIT_SIZE] = {0};
	uint8_t forged[FRAME_COOKIE] = {0}; /* a cookie with a recent time and a wrong hash */
	pair_open(&p, defaults, defaults);
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	assert_int_equal(socket_dial(&wire, p.address, 1, false, 65536, NULL), 0);
	turn_for(&p, 200000);
	frame_put_hello(hello, nonce);
	frame_put_u64(forged, (uint64_t)clock_monotonic_us() + 5000000);
	frame_put_init_head(init, 7, forged);
	long before = resident_kib();
	for (int i = 0; i < 20000; i++) {
		struct socket_route route;
		uint8_t *frame;
		size_t size;
		inject(&wire, hello, sizeof(hello));
		inject(&wire, init, sizeof(init));
		while (socket_receive(&wire, &route, &frame, &size) == 0)
			socket_frame_free(frame);
		if (i % 20 == 0)
			pair_turn(&p);
	}
	PAIR_UNTIL(&p, refused(&p.a, LINK_REPLAY) > 1000);
	assert_int_equal(counters_of(p.a.post).peers, 1);
	/* The strangers' greetings have made no session; the only session is that of b. */
	assert_int_equal(counters_of(p.a.post).link.sessions, 1);
	expect_no_growth(before, 32 * 1024);
	hello[2] = LINK_VERSION + 1;
	inject(&wire, hello, sizeof(hello));
	PAIR_UNTIL(&p, refused(&p.a, LINK_VERSION_OTHER) == 1);
	still_well(&p);
	socket_close(&wire);
	pair_close(&p);
}

/* Changes the version of a frame, as if a process of another version had sent it. */
static int age_frame(void *context, uint8_t *frame, size_t size)
{
	(void)context;
	(void)size;
	frame[2] = LINK_VERSION + 1;
	return 1;
}

/* Each end sees frames of another version. The dialer must report the version as the reason of the
 * refusal. */
TEST(another_version_is_reported)
{
	const struct link_hook hook = {.fate = age_frame};
	struct pair p;
	pair_open(&p, (struct post_options){.hook = &hook}, (struct post_options){.hook = &hook});
	PAIR_UNTIL(&p, p.b.seen.refused > 0);
	assert_int_equal(p.b.seen.reason, LINK_VERSION_OTHER);
	assert_true(refused(&p.a, LINK_VERSION_OTHER) > 0);
	assert_int_equal(p.a.seen.up + p.b.seen.up, 0);
	pair_close(&p);
}

static int plain_connect(const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1))};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		assert_int_equal(errno, EINPROGRESS);
	return fd;
}

/* Writes nanomsg's greeting for a REQ socket, and then the head of a message of `length` bytes. */
static size_t sp_greeting(uint8_t out[16], uint64_t length)
{
	static const uint8_t greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
	memcpy(out, greeting, 8);
	for (int i = 0; i < 8; i++)
		out[8 + i] = (uint8_t)(length >> (8 * (7 - i)));
	return 16;
}

TEST(oversized_and_endless)
{
	struct pair p;
	struct socket wire;
	static uint8_t block[65536];
	pair_open(&p, defaults, defaults);
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	assert_int_equal(socket_dial(&wire, p.address, 1, false, 65536, NULL), 0);
	turn_for(&p, 200000);
	long before = resident_kib();
	/* A peer that speaks nanomsg's protocol sends a frame above the limit. The listener must
	 * end the peer's connection. */
	for (int i = 0; i < 10; i++) {
		uint8_t *frame = socket_frame(3 << 20);
		memset(frame, 1, 3 << 20);
		(void)socket_send(&wire, NULL, frame);
		turn_for(&p, 20000);
	}
	assert_true(counters_of(p.a.post).link.broken >= 1);
	/* Announces messages of up to 2^64 - 1 bytes and sends bytes until the listener ends the
	 * connection. */
	static const uint64_t lengths[] = {UINT64_MAX, UINT64_C(1) << 62, UINT64_C(1) << 40,
		(1 << 20) + 100, 0, 3};
	for (int i = 0; i < 60; i++) {
		uint8_t greeting[16];
		int fd = plain_connect(p.address);
		turn_for(&p, 2000);
		sp_greeting(greeting, lengths[i % 6]);
		(void)!send(fd, greeting, 16, MSG_NOSIGNAL);
		for (int k = 0; k < 64; k++)
			if (send(fd, block, sizeof(block), MSG_NOSIGNAL) < 0)
				break;
		turn_for(&p, 2000);
		close(fd);
	}
	expect_no_growth(before, 64 * 1024);
	assert_int_equal(counters_of(p.a.post).peers, 1);
	still_well(&p);
	socket_close(&wire);
	pair_close(&p);
}

TEST(noise_on_the_port)
{
	struct pair p;
	struct rng r;
	rng_init(&r, 11);
	pair_open(&p, defaults, defaults);
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	int fds[100];
	for (int i = 0; i < 100; i++) {
		uint8_t bytes[512];
		fds[i] = plain_connect(p.address);
		pair_turn(&p);
		size_t n = i % 2 == 0 ? 0 : sp_greeting(bytes, rng_below(&r, 300));
		for (; n < sizeof(bytes); n++)
			bytes[n] = (uint8_t)rng_next(&r);
		(void)!send(fds[i], bytes, sizeof(bytes), MSG_NOSIGNAL);
		pair_turn(&p);
	}
	still_well(&p);
	for (int i = 0; i < 100; i++)
		close(fds[i]);
	turn_for(&p, 100000);
	still_well(&p);
	pair_close(&p);
}

/* A stranger opens so many connections that the listener's process has too few descriptors for
 * all of them. */
TEST(connections_without_end)
{
	struct pair p;
	struct rlimit limit, low;
	int fds[60], top = 0;
	pair_open(&p, defaults, defaults);
	PAIR_UNTIL(&p, p.b.seen.up == 1 && p.a.seen.up == 1);
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(strrchr(p.address, ':') + 1))};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 60; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		assert_true(fds[i] >= 0);
		top = fds[i] > top ? fds[i] : top;
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = (rlim_t)top + 6;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (int i = 0; i < 60; i++)
		(void)!connect(fds[i], (struct sockaddr *)&to, sizeof(to));
	turn_for(&p, 200000);
	still_well(&p);
	for (int i = 0; i < 60; i++)
		close(fds[i]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	turn_for(&p, 200000);
	still_well(&p);
	/* New peers must still be able to connect. */
	pair_restart_b(&p, defaults);
	PAIR_UNTIL(&p, p.b.seen.up == 2);
	pair_close(&p);
}

/* ---- an admitted process that misbehaves ---- */

/* Admits the key of end s. Then dials end a with a bare link of end s, without a post. Returns
 * the session's number. */
static uint32_t open_link(struct pair *p, struct end *s, struct link **link)
{
	struct link_event e;
	uint32_t session = 0;
	end_new(s, defaults);
	assert_int_equal(
		keys_list_admit(p->a.list, keys_public_of(s->id), KEYS_AGENT, "s", NULL), 0);
	struct link_options o = {.identity = s->id, .frame_most = 1 << 20, .silence_us = 5000000,
		.rekey_us = 5000000};
	assert_int_equal(link_dial(link, &o, p->address, keys_public_of(p->a.id), 99, NULL), 0);
	int64_t until = clock_monotonic_us() + TEST_PATIENCE_US;
	while (session == 0 && clock_monotonic_us() < until) {
		link_tick(*link, clock_monotonic_us());
		if (link_receive(*link, clock_monotonic_us(), &e) == 0 && e.kind == LINK_UP)
			session = e.session;
		pair_turn(p);
	}
	assert_true(session != 0);
	return session;
}

TEST(a_compromised_agent)
{
	struct pair p;
	struct end s;
	struct link *link;
	struct link_event e;
	struct rng r;
	rng_init(&r, 3);
	pair_open(&p, (struct post_options){.assembling_most_bytes = 4 << 20}, defaults);
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	uint32_t session = open_link(&p, &s, &link);
	long before = resident_kib();
	for (int i = 0; i < 20000; i++) {
		struct post_frame f = {.kind = POST_FRAME_CHUNK, .ack = rng_next(&r) % 3,
			.class = (enum post_class)(i % POST_CLASSES),
			.chunk = {.number = rng_next(&r) % 4, .chunks = 1 + rng_below(&r, 3),
				.index = i % 5 == 0 ? rng_below(&r, 3) : 0,
				.total = i % 3 == 0 ? UINT64_MAX : rng_next(&r) % (200 << 20)}};
		uint8_t *content = link_buffer(POST_FRAME_HEAD + 1);
		post_frame_put_head(content, &f);
		if (i % 7 == 0)
			content[rng_below(&r, 4)] = (uint8_t)rng_next(&r);
		content[POST_FRAME_HEAD] = 0;
		(void)link_send(link, session, 0, content, POST_FRAME_HEAD + 1,
				clock_monotonic_us());
		if (i % 20 == 0)
			pair_turn(&p);
		while (link_receive(link, clock_monotonic_us(), &e) == 0)
			link_release(e.owner);
	}
	PAIR_UNTIL(&p, refused(&p.a, LINK_MALFORMED) > 100);
	assert_true(counters_of(p.a.post).assembling_bytes <= 256 << 20);
	expect_no_growth(before, 64 * 1024);
	p.a.seen.peer = post_next_peer(p.a.post, 0); /* the oldest peer is b */
	still_well(&p);
	link_close(link);
	end_free(&s);
	pair_close(&p);
}

/* Frames count against the quota even if they contain no message: empty frames, and frames of a
 * kind that no post sends. */
TEST(a_flood_of_frames_without_messages)
{
	for (size_t size = 0; size < 2; size++) {
		struct pair p;
		struct end s;
		struct link *link;
		pair_open(&p, (struct post_options){.charge_per_s = 50}, defaults);
		PAIR_UNTIL(&p, p.b.seen.up == 1);
		uint32_t session = open_link(&p, &s, &link);
		for (int i = 0; i < 2000; i++) {
			uint8_t *content = link_buffer(size);
			memset(content, 0, size);
			(void)link_send(link, session, 0, content, size, clock_monotonic_us());
			if (i % 20 == 0)
				pair_turn(&p);
		}
		turn_for(&p, 200000);
		assert_true(keys_list_barred(p.a.list, keys_public_of(s.id)));
		assert_int_equal(p.a.seen.data, 0);
		p.a.seen.peer = post_next_peer(p.a.post, 0); /* the oldest peer is b */
		still_well(&p);
		link_close(link);
		end_free(&s);
		pair_close(&p);
	}
}

/* An admitted process sends far more valid messages than its quota allows. The key of this
 * process must be barred, and other peers must not notice. */
TEST(a_flood)
{
	struct pair p;
	struct end s;
	post_peer_id to_a;
	pair_open(&p, (struct post_options){.charge_per_s = 50}, defaults);
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	end_new(&s, defaults);
	assert_int_equal(
		keys_list_admit(p.a.list, keys_public_of(s.id), KEYS_AGENT, "s", NULL), 0);
	assert_int_equal(post_dial(s.post, p.address, keys_public_of(p.a.id), &to_a, NULL), 0);
	int64_t until = clock_monotonic_us() + TEST_PATIENCE_US;
	while (s.seen.refused == 0 && clock_monotonic_us() < until) {
		for (int i = 0; i < 20; i++)
			(void)send_text(s.post, to_a, "again", POST_LOSSY);
		pair_turn(&p);
		end_turn(&s);
	}
	assert_true(s.seen.refused > 0);
	assert_int_equal(s.seen.reason, LINK_FLOOD);
	assert_true(refused(&p.a, LINK_FLOOD) > 0);
	/* ten seconds of the quota, and messages that were accepted before the key was barred */
	assert_true(p.a.seen.data <= 50 * 10 + 256);
	assert_int_equal(p.b.seen.down, 0);
	unsigned taken = p.a.seen.data;
	for (int i = 0; i < 50; i++) {
		(void)send_text(s.post, to_a, "again", POST_LOSSY);
		end_turn(&s);
		pair_turn(&p);
	}
	assert_int_equal(p.a.seen.data, taken);
	p.a.seen.peer = post_next_peer(p.a.post, 0); /* the oldest peer is b */
	still_well(&p);
	/* If an operator writes the list, the operator has looked at the cause. The new list must
	 * therefore lift the bar.
	 */
	assert_int_equal(
		keys_list_admit(p.a.list, keys_public_of(s.id), KEYS_AGENT, "s", NULL), 0);
	taken = p.a.seen.data;
	assert_int_equal(send_text(s.post, to_a, "sorry", POST_RELIABLE), 0);
	until = clock_monotonic_us() + TEST_PATIENCE_US;
	while (p.a.seen.data == taken && clock_monotonic_us() < until) {
		pair_turn(&p);
		end_turn(&s);
	}
	assert_int_equal(p.a.seen.data, taken + 1);
	end_free(&s);
	pair_close(&p);
}

/* Processes with the same key connect and end one after another, without a message. Their sessions
 * must count against the quota. */
TEST(coming_and_going)
{
	struct pair p;
	struct keys_identity *id;
	unsigned came = 0, refused_times = 0;
	pair_open(&p, (struct post_options){.charge_per_s = 20, .silence_us = 300000}, defaults);
	PAIR_UNTIL(&p, p.b.seen.up == 1);
	assert_int_equal(keys_generate(&id, NULL), 0);
	assert_int_equal(keys_list_admit(p.a.list, keys_public_of(id), KEYS_WATCHER, "w", NULL), 0);
	while (refused_times == 0 && came < 2000) {
		const struct post_options o = {.identity = id, .silence_us = 300000};
		struct end s = {.id = id};
		post_peer_id to_a;
		assert_int_equal(post_open(&s.post, &o, NULL), 0);
		assert_int_equal(post_dial(s.post, p.address, keys_public_of(p.a.id), &to_a, NULL),
				 0);
		while (s.seen.up == 0 && s.seen.refused == 0) {
			pair_turn(&p);
			end_turn(&s);
		}
		came += s.seen.up;
		refused_times += s.seen.refused;
		post_close(s.post);
	}
	assert_int_equal(refused_times, 1);
	assert_true(refused(&p.a, LINK_FLOOD) > 0);
	assert_true(keys_list_barred(p.a.list, keys_public_of(id)));
	/* Some sessions must be allowed, because an honest console may restart too. */
	assert_true(came >= 2);
	p.a.seen.peer = post_next_peer(p.a.post, 0); /* the oldest peer is b */
	still_well(&p);
	pair_close(&p);
	keys_free(id);
}
