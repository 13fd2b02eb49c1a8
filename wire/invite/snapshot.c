/* snapshot.c - reads one snapshot of a controller, for programs on other machines that print the
 * state of a run. */
#include "wire/invite/snapshot.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/user_folder.h"
#include "wire/invite/enroll.h"
#include "wire/post.h"

enum { JOIN_US = 15000000, SNAPSHOT_US = 20000000, TURN_MS = 1000 };
#define MESSAGE_MOST (256u << 20)

struct session {
	const struct snapshot_options *options;
	struct post *post;
	post_peer_id peer;
	bool is_complete;
};

bool snapshot_suits(const char *text)
{
	return text[0] == '@' || token_is(text);
}

static void attach(struct session *s, int64_t now_us)
{
	struct msg m = { .type = MSG_ATTACH,
			 .u.attach = { .protocol = MSG_VERSION, .readonly = 1 } };
	unsigned char data[512];
	struct post_part part = { data, 0 };
	long size;

	snprintf(m.u.attach.name, sizeof(m.u.attach.name), "%s", s->options->who);
	size = msg_encode(&m, data, sizeof(data));
	part.size = size > 0 ? (size_t)size : 0;
	if (size > 0)
		post_send(s->post, s->peer, &part, 1, POST_RELIABLE, now_us);
}

/* Handles what has arrived. */
static int receive(struct session *s, int64_t now_us, struct error *err)
{
	struct post_message p;
	struct msg m;

	while (!s->is_complete && post_receive(s->post, now_us, &p) == 0) {
		if (p.kind == POST_UP)
			attach(s, now_us);
		if (p.kind == POST_REFUSED)
			return error_set(err, -EPERM, "the controller refuses: %s",
					 link_reason_text(p.reason));
		if (p.kind != POST_DATA)
			continue;
		if (msg_is_foreign(p.data, p.size))
			return error_set(err, -EPROTO,
					 "the controller is of another version of skippipe; this "
					 "is " SKIPPIPE_VERSION);
		if (msg_decode(&m, p.data, p.size) != 0)
			continue;
		s->is_complete = m.type == MSG_SEE_SYNCED;
		s->options->take(s->options->context, &m);
		msg_clear(&m);
	}
	return 0;
}

static int read_messages(struct session *s, struct error *err)
{
	const int64_t until_us = clock_monotonic_us() + SNAPSHOT_US;
	int rc = 0;

	for (int64_t now_us = until_us - SNAPSHOT_US; rc == 0 && !s->is_complete;
	     now_us = clock_monotonic_us()) {
		struct pollfd fd = { .fd = post_fd(s->post), .events = POLLIN };
		int64_t wait_ms;

		if (now_us > until_us)
			return error_set(err, -ETIMEDOUT, "the controller sent no snapshot");
		post_tick(s->post, now_us);
		rc = receive(s, now_us, err);
		wait_ms = (post_deadline_us(s->post) - now_us) / 1000 + 1;
		if (rc == 0 && !s->is_complete && wait_ms > 0)
			poll(&fd, 1, wait_ms < TURN_MS ? (int)wait_ms : TURN_MS);
	}
	return rc;
}

/* Reads the token, and uses it to have this user's key admitted. Gives the key in *own, and the
 * controller's address and key. */
static int join(const struct snapshot_options *o, struct keys_identity **own,
		struct enrolled *joined, struct token *token, struct error *err)
{
	struct keys_identity *invitation = NULL;
	char text[TOKEN_SIZE], path[4096];
	bool is_new;
	int rc = token_take(o->token, text, err);

	if (rc == 0)
		rc = token_parse(text, token, &invitation, err);
	token_wipe(text);
	if (rc == 0 && token->role == KEYS_AGENT)
		rc = error_set(err, -EINVAL,
			       "this token is for an agent: skippipe invite --role "
			       "watcher makes one for this");
	if (rc == 0)
		rc = user_state_file(path, sizeof(path), "watcher.key", err);
	is_new = rc == 0 && access(path, F_OK) != 0;
	if (rc == 0)
		rc = keys_load_or_make(own, path, err);
	if (rc == 0)
		rc = enroll(&(struct enroll_options){ .token = token,
						      .invitation = invitation,
						      .own = *own,
						      .is_new = is_new,
						      .wait_us = JOIN_US,
						      .signals = -1,
						      .log = o->log },
			    joined, err);
	keys_free(invitation);
	return rc;
}

int snapshot_read(const struct snapshot_options *o, struct error *err)
{
	struct post_options options = { .peers_most = 1, .message_most_bytes = MESSAGE_MOST };
	struct session s = { .options = o };
	struct keys_identity *own = NULL;
	struct enrolled joined;
	struct token token;
	int rc = join(o, &own, &joined, &token, err);

	options.identity = own;
	if (rc == 0)
		rc = post_open(&s.post, &options, err);
	if (rc == 0)
		rc = post_dial(s.post, joined.address, &token.controller, &s.peer, err);
	if (rc == 0)
		rc = read_messages(&s, err);
	post_close(s.post);
	keys_free(own);
	return rc;
}
