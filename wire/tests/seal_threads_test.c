/* Tests posts whose frames are sealed and opened by threads. Every message must arrive once,
 * whole and in the order of its class, even while frames are corrupted, keys are replaced and
 * peers are forgotten. Run this test under ThreadSanitizer and AddressSanitizer. */
#include "wire/post.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/tests/test.h"
#include "wire/sessions/sealers.h"
#include "wire/tests/pair.h"

static const struct post_options threads = {.seal_threads = 3, .piece_least_bytes = 16384};

/* Number of the next expected message of each class. A message contains its number and its
 * class. */
struct checks {
	uint64_t next[POST_CLASSES];
};

/* Number of loans that were not released yet. */
struct loans {
	int held;
};

struct loan_of {
	struct loans *loans;
	uint8_t *data;
};

static size_t size_of(uint64_t number)
{
	static const size_t sizes[] = {3000000, 16, 30000, 9000000, 100000, 24, 1100000};
	return sizes[number % 7];
}

static void check_data(struct end *e, struct post_message *m)
{
	struct checks *c = e->context;
	uint64_t number, class;
	uint8_t *expect = malloc(m->size);
	assert_int_equal(post_join(e->post, m), 0);
	memcpy(&number, m->data, 8);
	memcpy(&class, m->data + 8, 8);
	assert_true(class < POST_CLASSES);
	assert_int_equal(number, c->next[class]++);
	assert_int_equal(m->size, size_of(number));
	pair_fill_message(expect, m->size, number);
	memcpy(expect + 8, &class, 8);
	assert_memory_equal(m->data, expect, m->size);
	free(expect);
}

static void release_loan(void *context)
{
	struct loan_of *l = context;
	l->loans->held--;
	/* If a thread still reads the loan, it now sends wrong bytes, and the receiver notices. */
	memset(l->data, 0xee, 4);
	free(l->data);
	free(l);
}

/* Sends message `number` of a class. The message's first 16 bytes are copied, and the other bytes
 * are lent. */
static void lend(struct post *post, post_peer_id peer, struct loans *loans, uint64_t number,
	uint64_t class)
{
	const size_t size = size_of(number);
	uint8_t *data = malloc(size);
	struct loan_of *of = malloc(sizeof(*of));
	pair_fill_message(data, size, number);
	memcpy(data + 8, &class, 8);
	*of = (struct loan_of){loans, data};
	const struct post_part head = {data, 16};
	const struct post_loan loan = {data + 16, size - 16, release_loan, of};
	loans->held++;
	assert_int_equal(post_lend(post, peer, &head, &loan, (enum post_flags)(class << 1),
				 clock_monotonic_us()),
		0);
}

static void expect(struct pair *p, struct checks *a, struct checks *b)
{
	p->a.on_data = p->b.on_data = check_data;
	p->a.context = a;
	p->b.context = b;
	PAIR_UNTIL(p, p->a.seen.up == 1 && p->b.seen.up == 1);
}

static bool all_came(const struct checks *c, uint64_t n)
{
	return c->next[1] == n && c->next[2] == n && c->next[3] == n;
}

static void exchange(struct pair *p, uint64_t n)
{
	struct checks ca = {{0}}, cb = {{0}};
	struct loans loans = {.held = 0};
	expect(p, &ca, &cb);
	for (uint64_t i = 0; i < n; i++) {
		for (uint64_t class = POST_CLASS_ACTIVATIONS; class < POST_CLASSES; class++)
			lend(p->b.post, p->to_a, &loans, i, class);
		if (i < 2)
			lend(p->a.post, p->a.seen.peer, &loans, i, POST_CLASS_SUMS);
		pair_turn(p);
	}
	PAIR_UNTIL(p, all_came(&ca, n) && cb.next[POST_CLASS_SUMS] == (n < 2 ? n : 2));
	PAIR_UNTIL(p, post_idle(p->a.post, 0) && post_idle(p->b.post, 0));
	PAIR_UNTIL(p, loans.held == 0);
	assert_int_equal(counters_of(p->a.post).assembling_bytes, 0);
}

TEST(messages_of_all_classes_arrive_in_order)
{
	struct pair p;
	pair_open(&p, threads, threads);
	exchange(&p, 14);
	pair_close(&p);
}

TEST(an_end_without_threads_understands_an_end_with_threads)
{
	for (int i = 0; i < 2; i++) {
		const struct post_options none = {.no_aes = true};
		struct pair p;
		pair_open(&p, i == 0 ? threads : none, i == 0 ? none : threads);
		exchange(&p, 5);
		pair_close(&p);
	}
}

TEST(many_connections_carry_sealed_frames)
{
	struct pair p;
	struct post_options far = threads;
	far.connections = 8;
	pair_open_far(&p, threads, far);
	exchange(&p, 7);
	pair_close(&p);
}

TEST(corrupted_and_repeated_frames_are_refused)
{
	struct pair p;
	struct rng ra, rb;
	rng_init(&ra, 5);
	rng_init(&rb, 6);
	const struct link_hook ha = {pair_mischief, &ra}, hb = {pair_mischief, &rb};
	struct post_options oa = threads, ob = threads;
	oa.hook = &ha;
	ob.hook = &hb;
	oa.chunk_bytes = ob.chunk_bytes = 100000;
	pair_open(&p, oa, ob);
	/* The hook repeats one frame in 25. On a busy machine all messages may travel in so few
	 * frames that no frame is repeated. The test therefore exchanges messages until the
	 * receiver has refused a repeated frame and a corrupted frame. */
	for (int i = 0; i < 20; i++) {
		exchange(&p, 8);
		const struct post_counters c = counters_of(p.a.post);
		if (c.link.refused[LINK_BAD_SEAL] > 0 && c.link.refused[LINK_REPLAY] > 0)
			break;
	}
	const struct post_counters c = counters_of(p.a.post);
	assert_true(c.link.refused[LINK_BAD_SEAL] > 0);
	assert_true(c.link.refused[LINK_REPLAY] > 0);
	assert_int_equal(p.a.seen.restarted + p.b.seen.restarted, 0);
	pair_close(&p);
}

TEST(new_keys_lose_no_frame_in_transit)
{
	struct pair p;
	struct post_options often = threads;
	struct checks ca = {{0}}, cb = {{0}};
	struct loans loans = {.held = 0};
	uint64_t n = 0;
	often.rekey_us = 20000;
	pair_open(&p, threads, often);
	expect(&p, &ca, &cb);
	while (counters_of(p.a.post).link.handshakes < 8) {
		lend(p.b.post, p.to_a, &loans, n++, POST_CLASS_SUMS);
		PAIR_UNTIL(&p, counters_of(p.b.post).retained_bytes < 32 << 20);
	}
	PAIR_UNTIL(&p, ca.next[POST_CLASS_SUMS] == n && loans.held == 0);
	assert_int_equal(p.a.seen.up + p.b.seen.up, 2);
	assert_int_equal(p.a.seen.down + p.b.seen.down, 0);
	pair_close(&p);
}

struct arrivals {
	/* before_beat: number of tensors that arrived before the heartbeat. */
	unsigned tensors, before_beat;
	bool has_beat;
};

static void count_arrival(struct end *e, struct post_message *m)
{
	struct arrivals *in = e->context;
	if (m->size > 1000) {
		in->tensors++;
	} else {
		in->has_beat = true;
		in->before_beat = in->tensors;
	}
}

/* A peer on the same machine has one connection for all messages. The heartbeat must overtake at
 * least one of the three tensors that were sent before it. */
TEST(a_heartbeat_overtakes_large_tensors_on_one_connection)
{
	enum { TENSORS = 3 };
	struct pair p;
	struct arrivals at_a = { 0 }, at_b = { 0 };
	struct loans loans = { .held = 0 };
	pair_open(&p, threads, threads);
	p.a.on_data = p.b.on_data = count_arrival;
	p.a.context = &at_a;
	p.b.context = &at_b;
	PAIR_UNTIL(&p, p.a.seen.up == 1 && p.b.seen.up == 1);
	for (unsigned i = 0; i < TENSORS; i++) {
		lend(p.b.post, p.to_a, &loans, 3, POST_CLASS_ACTIVATIONS);
		lend(p.a.post, p.a.seen.peer, &loans, 3, POST_CLASS_ACTIVATIONS);
	}
	PAIR_UNTIL(&p, at_a.tensors > 0);
	assert_int_equal(send_text(p.a.post, p.a.seen.peer, "beat", POST_CONTROL), 0);
	assert_int_equal(send_text(p.b.post, p.to_a, "beat", POST_CONTROL), 0);
	PAIR_UNTIL(&p, at_a.has_beat && at_b.has_beat);
	assert_true(at_a.before_beat < TENSORS);
	PAIR_UNTIL(&p, at_a.tensors == TENSORS && at_b.tensors == TENSORS && loans.held == 0);
	pair_close(&p);
}

/* A peer is forgotten while threads work on its frames. The loans of the peer's messages must be
 * released. */
TEST(a_forgotten_peer_gives_every_loan_back)
{
	for (int turns = 0; turns < 12; turns++) {
		struct pair p;
		struct checks ca = {{0}}, cb = {{0}};
		struct loans loans = {.held = 0};
		pair_open(&p, threads, threads);
		expect(&p, &ca, &cb);
		lend(p.b.post, p.to_a, &loans, 3, POST_CLASS_SUMS);
		ca.next[POST_CLASS_SUMS] = 3;
		for (int i = 0; i < turns; i++)
			pair_turn(&p);
		assert_int_equal(post_forget(p.b.post, p.to_a), 0);
		assert_int_equal(loans.held, 0);
		pair_close(&p);
	}
}

/* The listener's process is replaced while frames for the old process are with the threads. The
 * new process must not get these frames. */
TEST(a_restarted_listener_gets_no_frame_of_the_old_session)
{
	struct pair p;
	struct checks ca = {{0}}, cb = {{0}};
	struct loans loans = {.held = 0};
	pair_open(&p, threads, threads);
	expect(&p, &ca, &cb);
	for (uint64_t i = 0; i < 4; i++)
		lend(p.b.post, p.to_a, &loans, i, POST_CLASS_SUMS);
	for (int i = 0; i < 5; i++)
		pair_turn(&p);
	pair_restart_a(&p, threads);
	p.a.on_data = NULL;
	PAIR_UNTIL(&p, p.b.seen.restarted == 1);
	assert_int_equal(loans.held, 0);
	const unsigned before = p.a.seen.data;
	assert_int_equal(send_text(p.b.post, p.to_a, "for the new one", POST_RELIABLE), 0);
	PAIR_UNTIL(&p, p.a.seen.data == before + 1 && post_idle(p.b.post, 0));
	pair_close(&p);
}

/* ---- the threads without a post ---- */

struct work {
	/* This must be the first member, because the test converts a pointer to the job into a
	 * pointer to this struct. */
	struct sealer_job job;
	atomic_bool *may_end;
	int runs;
};

static void wait_and_count(struct sealer_job *job, struct aes_gcm *aes)
{
	(void)aes;
	struct work *w = (struct work *)job;
	while (!atomic_load(w->may_end))
		usleep(1000);
	w->runs++;
}

TEST(a_cancelled_job_has_ended_or_never_runs)
{
	struct sealers *s;
	struct work works[5];
	atomic_bool may_end = false;
	assert_int_equal(sealers_new(&s, 1, NULL), 0);
	assert_false(sealers_busy(s));
	for (int i = 0; i < 5; i++) {
		works[i] = (struct work){.job = {.run = wait_and_count}, .may_end = &may_end};
		sealers_add(s, &works[i].job);
	}
	assert_true(sealers_busy(s));
	assert_false(sealers_ended(s, &works[4].job));
	sealers_cancel(s, &works[4].job);
	sealers_cancel(s, &works[2].job);
	atomic_store(&may_end, true);
	sealers_cancel(s, &works[0].job);
	struct pollfd fd = {.fd = sealers_fd(s), .events = POLLIN};
	while (!sealers_ended(s, &works[1].job) || !sealers_ended(s, &works[3].job))
		assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_false(sealers_busy(s));
	assert_int_equal(works[1].runs + works[3].runs, 2);
	assert_int_equal(works[2].runs + works[4].runs, 0);
	sealers_clear(s);
	assert_int_equal(poll(&fd, 1, 0), 0);
	sealers_free(s);
	assert_true(works[0].runs <= 1);
}

TEST(too_many_threads_are_refused)
{
	struct end e;
	struct post *post;
	struct error err = {""};
	end_new(&e, threads);
	const struct post_options many = {.identity = e.id, .seal_threads = 1000};
	assert_int_equal(post_open(&post, &many, &err), -EINVAL);
	assert_non_null(strstr(err.text, "seal_threads"));
	end_free(&e);
}
