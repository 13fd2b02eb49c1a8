/* flood.c - connects to a controller again and again without an admitted key. AT_ONCE attempts run
 * at a time, each with its own connection. The program prints how many attempts the controller
 * refused, how many requests for admission it answered, and how many attempts got a session. Only a
 * session costs the controller a whole handshake. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/hostile/hostile.h"
#include "wire/invite/token.h"
#include "wire/msg.h"
#include "wire/post.h"

enum { AT_ONCE = 16, TURN_MS = 2, PATIENCE_US = 2000000 };

struct attempt {
	/* A new key for this attempt; NULL: the invitation's key is used. */
	struct keys_identity *stranger;
	struct post *post;
	post_peer_id to;
	int64_t began_us;
};

struct flood {
	struct token token;
	struct keys_identity *invitation;
	bool is_invited; /* attempts use the invitation's key */
	struct attempt attempts[AT_ONCE];
	uint64_t refused, answered, late, sessions;
};

static void end_attempt(struct attempt *a)
{
	post_close(a->post);
	keys_free(a->stranger);
	*a = (struct attempt){ .post = NULL };
}

static bool begin_attempt(struct flood *f, struct attempt *a, int64_t now_us)
{
	struct post_options o = { .identity = f->invitation };

	if (!f->is_invited && keys_generate(&a->stranger, NULL) != 0)
		return false;
	if (!f->is_invited)
		o.identity = a->stranger;
	a->began_us = now_us;
	return post_open(&a->post, &o, NULL) == 0 &&
	       post_dial(a->post, f->token.addresses[0], &f->token.controller, &a->to, NULL) == 0;
}

/* Asks the controller to admit a key that was not admitted before. */
static void ask(const struct attempt *a, int64_t now_us)
{
	struct msg m = { .type = MSG_JOIN,
			 .u.join = { .protocol = MSG_VERSION, .role = KEYS_AGENT } };
	uint8_t bytes[512];
	long size;

	memcpy(m.u.join.key, &now_us, sizeof(now_us));
	snprintf(m.u.join.name, sizeof(m.u.join.name), "flood");
	size = msg_encode(&m, bytes, sizeof(bytes));
	if (size > 0)
		(void)post_send(a->post, a->to,
				&(struct post_part){ bytes, (size_t)size }, 1, POST_RELIABLE,
				now_us);
}

/* Handles what has arrived for an attempt. Returns true if the attempt is over. */
static bool follow(struct flood *f, const struct attempt *a, int64_t now_us)
{
	struct post_message in;

	post_tick(a->post, now_us);
	while (post_receive(a->post, now_us, &in) == 0) {
		if (in.kind == POST_UP) {
			f->sessions++;
			ask(a, now_us);
		}
		f->refused += in.kind == POST_REFUSED;
		f->answered += in.kind == POST_DATA;
		if (in.kind == POST_REFUSED || in.kind == POST_DATA)
			return true;
	}
	if (now_us - a->began_us < PATIENCE_US)
		return false;
	f->late++;
	return true;
}

static void take_turn(struct flood *f)
{
	struct pollfd fds[AT_ONCE];
	const int64_t now_us = clock_monotonic_us();

	for (int i = 0; i < AT_ONCE; i++) {
		struct attempt *a = &f->attempts[i];

		if (a->post && follow(f, a, now_us))
			end_attempt(a);
		if (!a->post && !begin_attempt(f, a, now_us))
			end_attempt(a);
		fds[i] = (struct pollfd){ a->post ? post_fd(a->post) : -1, POLLIN, 0 };
	}
	poll(fds, AT_ONCE, TURN_MS);
}

int flood(int argc, char **argv)
{
	struct flood f = { .refused = 0 };
	struct error err = { "" };
	int64_t until_us;

	if (argc != 4 || token_parse(argv[3], &f.token, &f.invitation, &err) != 0) {
		fprintf(stderr, "usage: hostile_agent stranger|invited SECONDS TOKEN %s\n",
			err.text);
		return 2;
	}
	f.is_invited = strcmp(argv[1], "invited") == 0;
	until_us = clock_monotonic_us() + atoll(argv[2]) * 1000000;
	while (clock_monotonic_us() < until_us)
		take_turn(&f);
	for (int i = 0; i < AT_ONCE; i++)
		end_attempt(&f.attempts[i]);
	keys_free(f.invitation);
	printf("refused %llu answered %llu late %llu sessions %llu\n",
	       (unsigned long long)f.refused, (unsigned long long)f.answered,
	       (unsigned long long)f.late, (unsigned long long)f.sessions);
	return 0;
}
