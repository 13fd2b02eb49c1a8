/* live.c - reads one snapshot of a controller: nodes, links and the journal. The doctor attaches as
 * a console that only watches, so the controller needs no special message for it. */
#include "doctor/run/live.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/user_folder.h"
#include "wire/invite/enroll.h"
#include "wire/msg.h"
#include "wire/post.h"

enum { JOIN_US = 15000000, SNAPSHOT_US = 20000000, TURN_MS = 1000 };
#define MESSAGE_MOST (256u << 20)

struct session {
	struct post *post;
	post_peer_id peer;
	struct picture picture;
	bool is_complete;
};

bool live_suits(const char *text)
{
	return text[0] == '@' || token_is(text);
}

/* ---- the snapshot ---- */

static void take_node(struct picture *p, const struct msg_see_node *m)
{
	struct picture_node *n;

	if (m->node >= p->n)
		return;
	n = &p->nodes[m->node];
	memcpy(n->name, m->name, sizeof(n->name));
	memcpy(n->place, m->location, sizeof(n->place));
	memcpy(n->host, m->host, sizeof(n->host));
	memcpy(n->device, m->device, sizeof(n->device));
	memcpy(n->why, m->why, sizeof(n->why));
	n->state = m->state;
	n->has_state = true;
}

static void take_links(struct picture *p, const struct msg_see_links *m)
{
	for (uint32_t i = 0; i < m->n_links; i++) {
		const struct msg_link *l = &m->links[i];

		if (l->from >= p->n || l->to >= p->n || l->from == l->to)
			continue;
		p->links[l->from * p->n + l->to] =
			(struct picture_link){ l->latency_s < 0   ? LINK_BROKEN
					       : l->latency_s > 0 ? LINK_WORKS
								  : LINK_UNKNOWN,
					       (double)l->latency_s,
					       (double)l->bandwidth_bytes_per_s };
	}
}

static void take_note(struct picture *p, const struct msg_see_note *m)
{
	struct picture_note note = { m->node, m->kind == NOTE_ALERT, m->iteration, "" };

	if (m->kind != NOTE_WARNING && m->kind != NOTE_ALERT && m->kind != NOTE_AGENT)
		return;
	memcpy(note.text, m->text, sizeof(note.text));
	picture_add_note(p, &note);
}

static void take_message(struct session *s, const struct msg *m)
{
	switch (m->type) {
	case MSG_SEE_RUN:
		picture_size(&s->picture, m->u.see_run.n_nodes);
		s->picture.is_emulated = m->u.see_run.emulated;
		break;
	case MSG_SEE_NODE:
		take_node(&s->picture, &m->u.see_node);
		break;
	case MSG_SEE_LINKS:
		take_links(&s->picture, &m->u.see_links);
		break;
	case MSG_SEE_NOTE:
		take_note(&s->picture, &m->u.see_note);
		break;
	case MSG_SEE_SYNCED:
		s->is_complete = true;
		break;
	default:
		break;
	}
}

/* ---- the session ---- */

static void attach(struct session *s, int64_t now_us)
{
	struct msg m = { .type = MSG_ATTACH,
			 .u.attach = { .protocol = MSG_VERSION, .readonly = 1, .name = "doctor" } };
	unsigned char data[512];
	const long size = msg_encode(&m, data, sizeof(data));
	struct post_part part = { data, (size_t)size };

	if (size > 0)
		post_send(s->post, s->peer, &part, 1, POST_RELIABLE, now_us);
}

/* Handles the messages that have arrived. */
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
		take_message(s, &m);
		msg_clear(&m);
	}
	return 0;
}

static int read_snapshot(struct session *s, struct error *err)
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

/* Takes the token out of `value` and joins the run with it. Sets *own, and the controller's address
 * and key in *joined. */
static int join(char *value, struct keys_identity **own, struct enrolled *joined,
		struct token *token, struct error *err)
{
	const struct log log = { .to = stderr, .least = LOG_ERROR, .who = "doctor" };
	struct keys_identity *invitation = NULL;
	char text[TOKEN_SIZE], path[4096];
	bool is_new;
	int rc = token_take(value, text, err);

	if (rc == 0)
		rc = token_parse(text, token, &invitation, err);
	token_wipe(text);
	if (rc == 0 && token->role == KEYS_AGENT)
		rc = error_set(err, -EINVAL,
			       "this token is for an agent: skippipe invite --role "
			       "watcher makes one for this");
	if (rc == 0)
		rc = user_state_file(path, sizeof(path), "doctor.key", err);
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
						      .log = &log },
			    joined, err);
	keys_free(invitation);
	return rc;
}

int live_read(struct picture *out, char *value, struct error *err)
{
	struct post_options options = { .peers_most = 1, .message_most_bytes = MESSAGE_MOST };
	struct session s = { .picture.is_running = true };
	struct keys_identity *own = NULL;
	struct enrolled joined;
	struct token token;
	int rc = join(value, &own, &joined, &token, err);

	options.identity = own;
	if (rc == 0)
		rc = post_open(&s.post, &options, err);
	if (rc == 0)
		rc = post_dial(s.post, joined.address, &token.controller, &s.peer, err);
	if (rc == 0)
		rc = read_snapshot(&s, err);
	post_close(s.post);
	keys_free(own);
	if (rc == 0)
		*out = s.picture;
	else
		picture_free(&s.picture);
	return rc;
}
