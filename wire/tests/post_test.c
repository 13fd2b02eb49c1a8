/* Tests delivery over real sockets: every message must arrive once, whole and in order, despite
 * losses, restarts and floods. */
#include "wire/post.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/tests/test.h"
#include "wire/tests/pair.h"

static const struct post_options defaults;

/* ---- messages that the receiver can check: a number, and bytes that follow from it ---- */

/* Checks that messages arrive with the numbers 0, 1, 2 ... and with their expected sizes. */
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
	pair_fill_message(c->expect, size, c->next);
	assert_memory_equal(m->data, c->expect, size);
	c->next++;
}

static void send_message(struct post *post, post_peer_id peer, size_t size, uint64_t number)
{
	uint8_t *data = malloc(size + 1);
	pair_fill_message(data, size, number);
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

/* Forbids this process to make a system call, as the seccomp profile of a container does. */
static bool forbid(unsigned call)
{
	struct sock_filter lines[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(lines) / sizeof(lines[0]), lines };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* A process cannot remove its filter of system calls. Therefore a child process sets the filter
 * and opens the post. */
TEST(a_container_that_forbids_threads_is_named_as_the_cause)
{
	struct keys_identity *id;
	int status;
	assert_int_equal(keys_generate(&id, NULL), 0);
	const pid_t child = fork();
	if (child == 0) {
		const struct post_options options = { .identity = id };
		struct post *post;
		struct error err = { "" };
		if (!forbid(SYS_clone3) || syscall(SYS_clone3, NULL, 0) == 0 || errno != EPERM)
			_exit(0); /* filters cannot be set here */
		/* An old C library does not use clone3, so it can start the thread. */
		const int rc = post_open(&post, &options, &err);
		_exit(rc != 0 && (rc != -EPERM || strstr(err.text, "forbid clone3") == NULL));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	keys_free(id);
}

TEST(both_come_up_and_talk)
{
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

TEST(many_small_messages_arrive_in_both_directions)
{
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

TEST(large_messages_arrive_in_both_directions)
{
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

TEST(exactly_once_under_mischief)
{
	struct pair p;
	struct rng ra, rb;
	rng_init(&ra, 1);
	rng_init(&rb, 2);
	const struct link_hook ha = {pair_mischief, &ra}, hb = {pair_mischief, &rb};
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

TEST(a_restarted_listener_is_noticed)
{
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

TEST(a_restarted_dialer_keeps_its_number)
{
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

TEST(retained_bytes_are_bounded)
{
	struct pair p;
	struct post_options small = {.retained_most_bytes = 1 << 20};
	static uint8_t block[100000];
	const struct post_part part = {block, sizeof(block)}, empty = {block, 0};
	int rc, sent = 0;
	pair_open(&p, defaults, small);
	/* The listener's loop does not run, so the listener acknowledges nothing. */
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

TEST(incomplete_messages_are_bounded)
{
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
	/* A message above the receiver's limit must never arrive, but the messages after it must
	 * arrive. */
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

TEST(a_kept_message_outlives_the_post)
{
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

/* ---- messages in pieces ---- */

enum { LONG = 3000001 };

struct long_messages {
	struct post_message kept;
	unsigned in_pieces, whole;
};

static bool is_message(const uint8_t *data, uint64_t number)
{
	uint8_t *expect = malloc(LONG);
	pair_fill_message(expect, LONG, number);
	const bool is_same = memcmp(data, expect, LONG) == 0;
	free(expect);
	return is_same;
}

/* Keeps the first message, joins the second message, and leaves the third message to the post. */
static void take_long(struct end *e, struct post_message *m)
{
	struct long_messages *l = e->context;
	if (m->pieces.n == 0) {
		assert_true(is_message(m->data, 9));
		l->whole++;
		return;
	}
	assert_null(m->data);
	assert_int_equal(m->size, LONG);
	if (l->in_pieces == 0) {
		post_keep(e->post, m);
		l->kept = *m;
	} else if (l->in_pieces == 1) {
		assert_int_equal(post_join(e->post, m), 0);
		assert_int_equal(m->pieces.n, 0);
		assert_int_equal(post_join(e->post, m), 0);
		assert_true(is_message(m->data, 1));
	}
	l->in_pieces++;
}

TEST(long_activations_are_given_in_pieces)
{
	static const struct post_options apart = {.piece_least_bytes = 16384};
	struct pair p;
	struct long_messages l = {.in_pieces = 0};
	uint8_t *bytes = malloc(LONG);
	pair_open(&p, apart, defaults);
	p.a.on_data = take_long;
	p.a.context = &l;
	for (uint64_t i = 0; i < 4; i++) {
		pair_fill_message(bytes, LONG, i < 3 ? i : 9);
		const struct post_part part = {bytes, LONG};
		assert_int_equal(post_send(p.b.post, p.to_a, &part, 1,
					 POST_RELIABLE | (i < 3 ? POST_ACTIVATIONS : POST_SUMS),
					 clock_monotonic_us()), 0);
	}
	PAIR_UNTIL(&p, l.in_pieces == 3 && l.whole == 1);
	pair_close(&p);
	pieces_join(&l.kept.pieces, 0, bytes);
	assert_true(is_message(bytes, 0));
	/* Joins the message from a byte inside the second piece to the end. */
	const size_t from = l.kept.pieces.list[0].size + 5;
	uint8_t *rest = malloc(LONG - from);
	pieces_join(&l.kept.pieces, from, rest);
	assert_memory_equal(rest, bytes + from, LONG - from);
	post_release(&l.kept);
	post_release(&l.kept);
	free(rest);
	free(bytes);
}

TEST(forgetting_drops_everything)
{
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
	/* The dialer still has its old session, which the restarted listener does not know. The
	 * dialer must reconnect. */
	send_text(p.b.post, p.to_a, "hello?", POST_RELIABLE);
	PAIR_UNTIL(&p, p.a.seen.up == 2 && p.b.seen.restarted == 1);
	assert_true(p.a.seen.peer != to_b);
	send_text(p.b.post, p.to_a, "again", POST_RELIABLE);
	PAIR_UNTIL(&p, p.a.seen.data >= 1 && post_idle(p.b.post, 0));
	assert_int_equal(post_forget(p.b.post, p.to_a), 0);
	assert_int_equal(counters_of(p.b.post).peers, 0);
	pair_close(&p);
}

TEST(addresses_are_checked)
{
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

TEST(only_left_over_sockets_are_replaced)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	char folder[] = "/tmp/skippipe-post-XXXXXX", address[64];
	struct end e;
	struct error err;
	struct stat st;
	assert_non_null(mkdtemp(folder));
	snprintf(address, sizeof(address), "ipc://%s/file", folder);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", address + 6);
	end_new(&e, defaults);
	int fd = open(at.sun_path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(post_listen(e.post, address, NULL, &err), -EEXIST);
	assert_non_null(strstr(err.text, address));
	assert_int_equal(lstat(at.sun_path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	unlink(at.sun_path);
	/* Leaves a socket file at the path, as a killed process does. */
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
	assert_int_equal(post_listen(e.post, address, NULL, &err), 0);
	end_free(&e);
	unlink(at.sun_path);
	rmdir(folder);
}

TEST(silence_ends_a_session)
{
	struct pair p;
	struct post_options quick = {.silence_us = 2000000};
	pair_open(&p, quick, quick);
	PAIR_UNTIL(&p, p.a.seen.up == 1 && p.b.seen.up == 1);
	/* Neither end sends messages. Keep-alive frames must keep the session. */
	int64_t until = clock_monotonic_us() + 4500000;
	while (clock_monotonic_us() < until)
		pair_turn(&p);
	assert_int_equal(p.a.seen.down + p.b.seen.down, 0);
	/* The loop of end b does not run. */
	until = clock_monotonic_us() + TEST_PATIENCE_US;
	while (p.a.seen.down == 0 && clock_monotonic_us() < until)
		end_turn(&p.a);
	assert_int_equal(p.a.seen.down, 1);
	assert_int_equal(p.a.seen.reason, LINK_SILENT);
	/* The loop of end b runs again. The process of end b is the same, so no message may be
	 * lost. */
	send_text(p.a.post, p.a.seen.peer, "while you were out", POST_RELIABLE);
	PAIR_UNTIL(&p, p.a.seen.up == 2 && p.b.seen.data == 1);
	assert_int_equal(p.a.seen.restarted + p.b.seen.restarted, 0);
	assert_int_equal(p.a.seen.lost, 0);
	pair_close(&p);
}

TEST(new_keys_lose_nothing)
{
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

TEST(an_absent_peer_costs_nothing)
{
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

/* Every finished transfer must be reported, as a measurement of the busy link. Probes measure the
 * idle link. */
TEST(finished_transfers_are_reported)
{
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
	assert_int_equal(p.a.seen.data, 0); /* a probe must not be delivered as a message */
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
	/* One message of each class arrives, in any order. */
	for (unsigned seen = 0; seen != 3;) {
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

/* On a network that loses full packets, small probes are still answered. An answer to a small
 * probe must not count as a sign that large messages arrive again. An answer to a large probe
 * must count. */
TEST(a_large_probe_shows_that_large_packets_pass)
{
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
	/* The transfer must count as stalled although a small probe was answered. */
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

static int refuse_some(void *context, uint8_t *frame, size_t size)
{
	int *left = context;
	(void)frame;
	if (*left == 0 || size > 200)
		return 1;
	--*left;
	return LINK_NO_ROOM;
}

/* End b finds no room for its acknowledgement at first, and must send the acknowledgement later.
 * Otherwise end a would send its message again. */
TEST(an_acknowledgement_without_room_is_sent_later)
{
	struct pair p;
	struct post_peer_info info;
	int refused = 0;
	const struct link_hook hook = {refuse_some, &refused};
	struct post_options busy = {.hook = &hook};
	pair_open(&p, defaults, busy);
	PAIR_UNTIL(&p, p.a.seen.up == 1 && p.b.seen.up == 1);
	PAIR_UNTIL(&p, post_idle(p.a.post, 0) && post_idle(p.b.post, 0));
	refused = 3;
	assert_int_equal(send_text(p.a.post, p.a.seen.peer, "small", POST_RELIABLE), 0);
	PAIR_UNTIL(&p, p.b.seen.data == 1 && post_idle(p.a.post, 0));
	assert_int_equal(refused, 0);
	assert_int_equal(post_peer(p.a.post, p.a.seen.peer, &info), 0);
	assert_int_equal(info.resent_frames, 0);
	pair_close(&p);
}

/* After a large probe, many small probes are sent before its answer arrives, as on a long link that
 * may be broken. The answer to the large probe must still count. */
TEST(small_probes_do_not_displace_a_large_one)
{
	struct pair p;
	struct post_peer_info info;
	pair_open(&p, defaults, defaults);
	PAIR_UNTIL(&p, p.a.seen.up == 1 && p.b.seen.up == 1);
	assert_int_equal(post_probe(p.b.post, p.to_a, true, clock_monotonic_us()), 0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(post_probe(p.b.post, p.to_a, false, clock_monotonic_us()), 0);
	PAIR_UNTIL(&p, post_peer(p.b.post, p.to_a, &info) == 0 && info.large_passed_us > 0);
	pair_close(&p);
}
