/* enroll.c - the exchange with a controller by which an invitation admits a machine (enroll.h).
 * enroll runs before the program's main loop, so it may block. enroll has its own connections. */
#include "wire/invite/enroll.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/msg.h"
#include "wire/post.h"

/* Time for which the machine keeps asking although the controller reports the invitation as
 * unknown. The invitation may be new, and the controller reads the list of keys only a few times a
 * second. */
#define UNKNOWN_US INT64_C(5000000)
#define TURN_MS 100

/* The phases of the exchange. In each phase, this machine dials with a different key: */
enum phase {
	PHASE_KNOCK, /* this machine's own key, which may already be admitted */
	PHASE_ASK    /* the invitation's key, with which this machine asks for admission */
};

struct exchange {
	const struct enroll_options *options;
	enum phase phase;
	struct post *post;
	post_peer_id peers[TOKEN_ADDRESSES]; /* the controller at each of the token's addresses */
	post_peer_id asked;                  /* the peer to which the request was sent; 0: none */
	/* Time at which the controller first reported the invitation as unknown; 0: it has not
	 * done so. */
	int64_t unknown_us;
	/* For each address, the last logged reason why the controller cannot be reached there. */
	char troubles[TOKEN_ADDRESSES][sizeof(((struct error *)0)->text)];
	bool is_done;
};

static int begin_phase(struct exchange *e, enum phase phase, struct error *err)
{
	const struct enroll_options *o = e->options;
	const struct post_options post = {
		.identity = phase == PHASE_KNOCK ? o->own : o->invitation,
		.peers_most = TOKEN_ADDRESSES,
		.message_most_bytes = 1 << 16,
	};
	memset(e->troubles, 0, sizeof(e->troubles)); /* drops the reasons of the previous phase */
	post_close(e->post);
	e->post = NULL;
	e->phase = phase;
	int rc = post_open(&e->post, &post, err);
	for (unsigned i = 0; rc == 0 && i < o->token->n_addresses; i++)
		rc = post_dial(e->post, o->token->addresses[i], &o->token->controller, &e->peers[i],
			       err);
	return rc;
}

static void take_address(const struct exchange *e, post_peer_id peer, struct enrolled *out)
{
	for (unsigned i = 0; i < e->options->token->n_addresses; i++) {
		if (e->peers[i] == peer)
			memcpy(out->address, e->options->token->addresses[i], LINK_ADDRESS_SIZE);
	}
}

static int ask(struct exchange *e, post_peer_id peer, int64_t now_us)
{
	const struct enroll_options *o = e->options;
	struct msg m = { .type = MSG_JOIN,
			 .u.join = { .protocol = MSG_VERSION,
				     .role = (uint8_t)o->token->role,
				     .is_exact = o->name != NULL } };
	uint8_t data[512];
	memcpy(m.u.join.key, keys_public_of(o->own)->bytes, sizeof(m.u.join.key));
	if (o->name != NULL)
		snprintf(m.u.join.name, sizeof(m.u.join.name), "%s", o->name);
	else if (gethostname(m.u.join.name, sizeof(m.u.join.name) - 1) < 0 && errno != ENAMETOOLONG)
		m.u.join.name[0] = 0;
	const long size = msg_encode(&m, data, sizeof(data));
	if (size < 0)
		return (int)size;
	e->asked = peer;
	return post_send(e->post, peer, &(struct post_part){ data, (size_t)size }, 1, POST_RELIABLE,
			 now_us);
}

static int take_answer(struct exchange *e, const struct post_message *p, struct enrolled *out,
		       struct error *err)
{
	struct msg m;
	if (msg_is_foreign(p->data, p->size))
		return error_set(err, -EPROTO,
				 "the controller is of another version of skippipe; this "
				 "is " SKIPPIPE_VERSION);
	if (msg_decode(&m, p->data, p->size) != 0)
		return error_set(err, -EPROTO, "the controller's answer cannot be read");
	int rc = 0;
	if (m.type == MSG_ADMITTED && p->peer == e->asked) {
		memcpy(out->name, m.u.admitted.name, sizeof(out->name));
		take_address(e, p->peer, out);
		e->is_done = true;
	} else if (m.type == MSG_REFUSED) {
		rc = error_set(err, m.u.refused.final ? -EPERM : -EACCES,
			       "the controller refused this machine: %s", m.u.refused.reason);
	}
	msg_clear(&m);
	return rc;
}

/* Handles a refusal. Anybody on the network can forge a refusal, because refusals are not
 * authenticated. A forged refusal can only make this machine use the invitation, or give up. */
static int take_refusal(struct exchange *e, enum link_reason reason, int64_t now_us,
			struct error *err)
{
	const bool is_unknown = reason == LINK_NOT_ADMITTED || reason == LINK_ROLE;
	if (e->phase == PHASE_KNOCK && is_unknown)
		return begin_phase(e, PHASE_ASK, err);
	if (reason == LINK_FLOOD)
		return error_set(err, -EPERM,
				 "the controller has barred this %s: too many attempts",
				 e->phase == PHASE_KNOCK ? "key" : "invitation");
	if (!is_unknown)
		return 0;
	if (reason == LINK_ROLE)
		return error_set(err, -EPERM, "this controller replays a run, and admits nobody");
	if (e->unknown_us == 0)
		e->unknown_us = now_us;
	if (now_us - e->unknown_us < UNKNOWN_US)
		return 0;
	return error_set(err, -EPERM,
			 "the controller does not know this invitation: it was withdrawn, or the "
			 "token is of "
			 "another list of admitted keys");
}

static int take_event(struct exchange *e, const struct post_message *p, int64_t now_us,
		      struct enrolled *out, struct error *err)
{
	switch (p->kind) {
	case POST_UP:
		if (e->phase == PHASE_KNOCK) {
			take_address(e, p->peer, out);
			e->is_done = true;
			return 0;
		}
		e->unknown_us = 0;
		return e->asked == 0 || p->restarted ? ask(e, p->peer, now_us) : 0;
	case POST_DATA:
		return take_answer(e, p, out, err);
	case POST_REFUSED:
		return take_refusal(e, p->reason, now_us, err);
	default:
		return 0;
	}
}

/* Logs why the controller cannot be reached, unless this reason was logged last for the address. */
static void note_troubles(struct exchange *e)
{
	struct post_peer_info info;
	for (unsigned i = 0; i < e->options->token->n_addresses; i++) {
		char *logged = e->troubles[i];
		if (post_peer(e->post, e->peers[i], &info) != 0 || info.up || !info.trouble[0] ||
		    strcmp(logged, info.trouble) == 0)
			continue;
		snprintf(logged, sizeof(e->troubles[i]), "%s", info.trouble);
		log_line(e->options->log, LOG_WARN, "no connection to the controller: %s", logged);
	}
}

/* Sets the error after the controller has not answered within the time limit. The error gives,
 * for every address, the last reason why the controller could not be reached. */
static int report_silence(const struct exchange *e, struct error *err)
{
	char all[sizeof(err->text)] = "";
	size_t n = 0;
	for (unsigned i = 0; i < e->options->token->n_addresses && n < sizeof(all); i++)
		if (e->troubles[i][0])
			n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", n ? "; " : ": ",
					      e->troubles[i]);
	return error_set(err, -ETIMEDOUT, "no answer from the controller for %lld s%s",
			 (long long)(e->options->wait_us / 1000000), all);
}

static int take_turn(struct exchange *e, struct enrolled *out, struct error *err)
{
	struct pollfd fds[] = { { post_fd(e->post), POLLIN, 0 },
				{ e->options->signals, POLLIN, 0 } };
	const int64_t left_us = post_deadline_us(e->post) - clock_monotonic_us();
	struct post_message p;
	int rc = 0;
	poll(fds, 2,
	     left_us <= 0               ? 0
	     : left_us < TURN_MS * 1000 ? (int)(left_us / 1000) + 1
					: TURN_MS);
	if (fds[1].revents != 0)
		return error_set(err, -EINTR, "ended by a signal before the controller answered");
	const int64_t now_us = clock_monotonic_us();
	post_tick(e->post, now_us);
	/* An event may begin the next phase, which sets e->post to a new post. */
	const struct post *post = e->post;
	while (rc == 0 && !e->is_done && e->post == post && post_receive(e->post, now_us, &p) == 0)
		rc = take_event(e, &p, now_us, out, err);
	return rc;
}

int enroll(const struct enroll_options *options, struct enrolled *out, struct error *err)
{
	struct exchange e = { .options = options };
	struct enrolled result = { .name = "" };
	const int64_t until_us = clock_monotonic_us() + options->wait_us;
	int rc = begin_phase(&e, options->is_new ? PHASE_ASK : PHASE_KNOCK, err);
	while (rc == 0 && !e.is_done) {
		rc = take_turn(&e, &result, err);
		if (rc == 0 && e.post != NULL)
			note_troubles(&e);
		if (rc == 0 && !e.is_done && clock_monotonic_us() >= until_us)
			rc = report_silence(&e, err);
	}
	post_close(e.post);
	if (rc == 0)
		*out = result;
	return rc;
}
