/* link.c - carries encrypted frames between this process and its peers, and ends the sessions of
 * silent peers. session.c holds the sessions, handshake.c makes new sessions, and socket.c moves
 * the bytes. */
#include "wire/sessions/link.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "wire/sessions/accept.h"
#include "wire/sessions/session.h"

#define FRAMES_PER_CALL   64
#define PENDING_LIFE_US   INT64_C(5000000)
#define FILES_OWN 32       /* descriptors that a process without connections needs */
#define FILES_OF_PEER 4    /* descriptors that the connections to one peer need */
#define INITS_PER_S 2000.0 /* limit of handshakes that a listener computes in a second */
#define REFUSALS_PER_S    2000.0
#define REPAIR_US           INT64_C(100000)
#define CROWD_CHECK_US          INT64_C(3000000)
/* A listener may end a connection on which nothing has arrived for this number of milliseconds.
 * Such a connection has no session, because both ends of a session send keep-alive frames. */
#define SILENT_MS 10000
/* The sender encrypts a frame of this size or more only after it has asked nanomsg if there is
 * room. */
#define PEEK_BYTES 4096

const char *link_reason_text(enum link_reason reason)
{
	static const char *const texts[LINK_REASON_COUNT] = {
		[LINK_REASON_NONE] = "no reason",
		[LINK_MALFORMED] = "not a message of this protocol",
		[LINK_VERSION_OTHER] = "another protocol version",
		[LINK_BAD_SEAL] = "authentication failed (tampered with, or the wrong key)",
		[LINK_REPLAY] = "seen before, or too old",
		[LINK_NOT_ADMITTED] = "the key is not admitted",
		[LINK_ROLE] = "admitted, but in a role that may not connect here",
		[LINK_SUPERSEDED] = "a newer process with the same key has taken over",
		[LINK_TOO_MANY] = "too many connections, sessions or handshakes",
		[LINK_UNKNOWN_SESSION] = "no such session (the listener restarted, or dropped it)",
		[LINK_OVERSIZE] = "longer than agreed",
		[LINK_SILENT] = "nothing was received for too long",
		[LINK_FLOOD] = "the key exceeded its quota",
	};
	return reason < LINK_REASON_COUNT ? texts[reason] : "?";
}

void link_tune_malloc(void)
{
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, INT32_MAX);
	mallopt(M_TOP_PAD, 256 << 20);
}

uint64_t link_raise_files(uint64_t wanted)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	rlim_t to = limit.rlim_max < wanted ? limit.rlim_max : (rlim_t)wanted;
	if (to > limit.rlim_cur) {
		limit.rlim_cur = to;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	return limit.rlim_cur;
}

uint64_t link_files_for(uint64_t peers)
{
	return accept_limit_for(FILES_OWN + FILES_OF_PEER * peers);
}

int link_check_files(uint64_t peers, struct error *err)
{
	if (accept_most() >= FILES_OWN + FILES_OF_PEER * peers)
		return 0;
	return error_set(err, -EMFILE,
			 "too few open files are allowed for %" PRIu64
			 " peers: raise the limit (ulimit -n) to %" PRIu64,
			 peers, link_files_for(peers));
}

/* ---- opening and closing ---- */

static int link_new(struct link **out, const struct link_options *options, bool listens,
	uint32_t n_slots, struct error *err)
{
	if (sodium_init() < 0)
		return error_set(err, -EIO, "the system gives no randomness");
	if (options->identity == NULL || options->frame_most < FRAME_LEAST_MOST ||
	    n_slots == 0 || n_slots > 0xffff || (listens && options->admitted == NULL))
		return error_set(err, -EINVAL, "a link's options are contradictory");
	struct link *link = sodium_malloc(sizeof(*link)); /* locked memory, outside core dumps */
	if (link == NULL)
		return error_set(err, -ENOMEM, "out of memory");
	memset(link, 0, sizeof(*link));
	link->options = *options;
	link->counters = options->counters != NULL ? options->counters : &link->own_counters;
	for (unsigned i = 0; i < LINK_TRUNKS; i++)
		link->sockets[i].nn = -1;
	link->listens = listens;
	link->aes = seal_has_aes() && !options->no_aes;
	link->n_slots = n_slots;
	link->slots = calloc(n_slots, sizeof(struct session *));
	link->uses = malloc(n_slots * sizeof(*link->uses));
	if (link->slots == NULL || link->uses == NULL) {
		link_close(link);
		return error_set(err, -ENOMEM, "out of memory");
	}
	/* Session numbers start at random, so that a restarted listener refuses frames of old
	 * sessions. */
	randombytes_buf(link->uses, n_slots * sizeof(*link->uses));
	randombytes_buf(link->cookie_key, sizeof(link->cookie_key));
	link->inits = (struct bucket){.tokens = INITS_PER_S, .per_s = INITS_PER_S};
	link->refusals = (struct bucket){.tokens = REFUSALS_PER_S, .per_s = REFUSALS_PER_S};
	*out = link;
	return 0;
}

int link_listen(struct link **out, const struct link_options *options, const char *address,
	char *bound, struct error *err)
{
	struct link *link = NULL;
	int rc = link_new(&link, options, true, options->sessions_most, err);
	if (rc < 0)
		return rc;
	link->admitted_version = keys_list_version(options->admitted);
	rc = socket_listen(&link->sockets[0], address, bound, options->frame_most, err);
	if (rc < 0) {
		link_close(link);
		return rc;
	}
	*out = link;
	return 0;
}

int link_dial(struct link **out, const struct link_options *options, const char *address,
	const struct keys_public *key, uint64_t instance, struct error *err)
{
	struct link *link = NULL;
	int rc = link_new(&link, options, false, 4, err);
	if (rc < 0)
		return rc;
	link->dial.key = *key;
	link->dial.instance = instance;
	link->dial.state = DIAL_REST;
	link->dial.deadline_us = 0;
	link->dial.backoff_us = 250000;
	link->dial.handshake_wanted = true;
	rc = socket_dial(&link->sockets[0], address, 1, false, options->frame_most, err);
	if (rc < 0) {
		link_close(link);
		return rc;
	}
	memcpy(link->dial.target, address, strlen(address) + 1);
	if (!search_is_name(address))
		memcpy(link->address, address, strlen(address) + 1);
	*out = link;
	return 0;
}

void link_close(struct link *link)
{
	if (link == NULL)
		return;
	link_drop_transits(link, 0);
	for (uint32_t i = 0; link->slots != NULL && i < link->n_slots; i++) {
		if (link->slots[i] != NULL)
			session_free(link, link->slots[i]);
	}
	for (unsigned i = 0; i < link->events.n; i++)
		link_release(link->events.queue[i].owner);
	socket_frame_free(link->held.bytes);
	socket_frame_free(link->dial.waiting);
	search_free(link->dial.search);
	for (unsigned i = 0; i < LINK_TRUNKS; i++)
		socket_close(&link->sockets[i]);
	free(link->slots);
	free(link->uses);
	free(link->records);
	sodium_free(link); /* wipes the memory and frees it */
}

/* ---- sending ---- */

bool link_has_trunk(const struct link *link, unsigned trunk)
{
	return link->sockets[trunk].nn >= 0;
}

void link_trunk_dialed(struct link *link, unsigned trunk)
{
	link->blocked[trunk] = true; /* there is no connection yet */
	link->connected[trunk] = false;
	link->renewed_us = clock_monotonic_us();
}

int64_t link_renewed_us(const struct link *link)
{
	return link->renewed_us;
}

int link_open_trunk(struct link *link, unsigned trunk)
{
	if (link_has_trunk(link, trunk))
		return 0;
	if (link->listens || link->options.connections < 2 || link->address[0] == 0 ||
	    socket_is_near(link->address))
		return -ENOTSUP;
	link_trunk_dialed(link, trunk);
	return socket_dial(&link->sockets[trunk], link->address, link->options.connections,
		trunk == LINK_TRUNK_BULK, link->options.frame_most, NULL);
}

bool link_trunk_connected(const struct link *link, unsigned trunk)
{
	return link_has_trunk(link, trunk) && link->connected[trunk];
}

unsigned link_connections(const struct link *link, unsigned trunk)
{
	return link->sockets[trunk].n_endpoints;
}

void link_widen(struct link *link, unsigned trunk, unsigned connections)
{
	const unsigned before = link->sockets[trunk].n_endpoints;
	socket_widen(&link->sockets[trunk], connections);
	if (link->sockets[trunk].n_endpoints > before)
		link->renewed_us = clock_monotonic_us();
}

void link_redial(struct link *link, unsigned trunk)
{
	if (link->listens || !link_has_trunk(link, trunk))
		return;
	socket_redial(&link->sockets[trunk]);
	link_trunk_dialed(link, trunk);
}

void link_count_connections(const struct link *link, struct link_counters *into)
{
	for (unsigned i = 0; i < LINK_TRUNKS; i++) {
		uint64_t now = 0, broken = 0;
		if (!link_has_trunk(link, i))
			continue;
		socket_connections(&link->sockets[i], &now, &broken);
		into->connections += (uint32_t)now;
		into->broken += broken;
	}
}

int link_read_fd(const struct link *link, unsigned trunk)
{
	return socket_read_fd(&link->sockets[trunk]);
}

int link_write_fd(const struct link *link, unsigned trunk)
{
	return socket_write_fd(&link->sockets[trunk]);
}

bool link_blocked(const struct link *link, unsigned trunk)
{
	return link->blocked[trunk];
}

void link_refused(struct link *link, enum link_reason reason)
{
	link->counters->refused[reason]++;
}

static int transmit_now(struct link *link, unsigned trunk, const struct socket_route *route,
	uint8_t *frame, size_t size)
{
	int rc = socket_send(&link->sockets[trunk], route, frame);
	if (rc < 0) {
		link->blocked[trunk] = true;
		link->counters->blocked++;
		return rc;
	}
	link->counters->sent_bytes += size;
	return 0;
}

/* Sends, loses, repeats or delays a frame as the test hook decides (struct link_hook). */
static int transmit_hooked(struct link *link, unsigned trunk, const struct socket_route *route,
	uint8_t *frame, size_t size)
{
	static const struct socket_route none;
	struct held_frame held = link->held;
	int rc = 0, fate = link->options.hook->fate(link->options.hook->context, frame, size);
	if (fate == LINK_NO_ROOM) {
		socket_frame_free(frame);
		return -EAGAIN;
	}
	if (fate < 0 && held.bytes == NULL) {
		link->held = (struct held_frame){frame, size, trunk, route != NULL ? *route : none};
		return 0;
	}
	for (int i = 1; i < fate; i++) {
		uint8_t *copy = socket_frame(size);
		if (copy != NULL) {
			memcpy(copy, frame, size);
			(void)transmit_now(link, trunk, route, copy, size);
		}
	}
	if (fate == 0)
		socket_frame_free(frame);
	else
		rc = transmit_now(link, trunk, route, frame, size);
	if (held.bytes != NULL) {
		link->held.bytes = NULL;
		(void)transmit_now(link, held.trunk, &held.route, held.bytes, held.size);
	}
	return rc;
}

int link_transmit(struct link *link, unsigned trunk, const struct socket_route *route,
	uint8_t *frame, size_t size)
{
	if (link->options.hook != NULL)
		return transmit_hooked(link, trunk, route, frame, size);
	return transmit_now(link, trunk, route, frame, size);
}

bool link_is_writable(struct link *link, unsigned trunk)
{
	struct pollfd p = {.fd = link_write_fd(link, trunk), .events = POLLIN};
	if (link->listens)
		return true;
	link->blocked[trunk] = poll(&p, 1, 0) != 1 || (p.revents & POLLIN) == 0;
	link->connected[trunk] = link->connected[trunk] || !link->blocked[trunk];
	return !link->blocked[trunk];
}

uint8_t *link_buffer(size_t size)
{
	uint8_t *frame = socket_frame(FRAME_DATA_HEAD + size + FRAME_TAG);
	return frame == NULL ? NULL : frame + FRAME_DATA_HEAD;
}

void link_buffer_free(uint8_t *content)
{
	if (content != NULL)
		socket_frame_free(content - FRAME_DATA_HEAD);
}

int link_send(struct link *link, uint32_t session, unsigned trunk, uint8_t *content, size_t size,
	int64_t now_us)
{
	struct session *s = session_find(link, session);
	uint8_t *frame = content - FRAME_DATA_HEAD;

	if (!session_may_send(s)) {
		socket_frame_free(frame);
		return -ENOTCONN;
	}
	if ((link->blocked[trunk] || size >= PEEK_BYTES) && !link_is_writable(link, trunk)) {
		socket_frame_free(frame);
		return -EAGAIN;
	}
	frame_put_data_head(frame, s->remote_id, s->counter);
	seal_close(&s->send, s->counter, frame, FRAME_DATA_HEAD, content, size);
	session_count_sent(link, s, size, now_us);
	return link_transmit(link, trunk, &s->route, frame, size + LINK_OVERHEAD);
}

void link_set_silence_limit(struct link *link, uint32_t session, int64_t silence_us)
{
	struct session *s = session_find(link, session);
	if (s != NULL)
		s->silence_limit_us = silence_us;
}

void link_set_tag(struct link *link, uint32_t session, uint64_t tag)
{
	struct session *s = session_find(link, session);
	if (s != NULL)
		s->tag = tag;
}

void link_drop(struct link *link, uint32_t session)
{
	struct session *s = session_find(link, session);
	if (s != NULL)
		session_free(link, s);
}

/* ---- receiving ---- */

void link_release(void *owner)
{
	socket_frame_free(owner);
}

void link_queue_event(struct link *link, const struct link_event *event)
{
	assert(link->events.n < LINK_QUEUE);
	link->events.queue[link->events.n++] = *event;
}

static bool next_queued(struct link *link, struct link_event *out)
{
	if (link->events.n == 0)
		return false;
	*out = link->events.queue[0];
	link->events.n--;
	memmove(&link->events.queue[0], &link->events.queue[1],
		link->events.n * sizeof(link->events.queue[0]));
	return true;
}

/* Handles a DATA frame of a session that this process does not have. A listener answers with a
 * REFUSE, and the dialer then makes a new session. */
static void on_stray(struct link *link, const struct frame *f, const struct socket_route *route,
	int64_t now_us)
{
	uint8_t echo[FRAME_NONCE] = {0};
	frame_put_u32(echo, f->session);
	frame_put_u64(echo + 4, f->counter);
	handshake_refuse(link, LINK_UNKNOWN_SESSION, echo, route, now_us);
}

/* Accepts an authenticated frame and queues a LINK_DATA event, which then owns the frame. */
static void on_opened(struct link *link, struct session *s, uint64_t counter, uint8_t *bytes,
	size_t size, const struct socket_route *route, int64_t now_us)
{
	if (counter >= s->window->next)
		/* Frames to the peer use the connection on which the peer's newest authentic
		 * frame arrived. */
		s->route = *route;
	seal_window_mark(s->window, counter);
	s->last_received_us = now_us;
	s->received_bytes += size;
	if (s->state == SESSION_PENDING)
		session_live(link, s, now_us);
	if (counter >= SEAL_FRAMES_MOST / 2 || s->received_bytes >= SEAL_BYTES_MOST / 2)
		handshake_want(link, now_us);
	link_queue_event(link, &(struct link_event){.kind = LINK_DATA, .session = s->id,
		.tag = s->tag, .data = bytes + FRAME_DATA_HEAD, .size = size, .owner = bytes});
}

/* Authenticates and decrypts a DATA frame, or hands it to a thread. Returns true if the function
 * has taken over the frame. */
static bool on_data(struct link *link, const struct frame *f, uint8_t *bytes,
	const struct socket_route *route, int64_t now_us)
{
	struct session *s = session_find(link, f->session);
	if (s == NULL || s->state == SESSION_ENDING) {
		on_stray(link, f, route, now_us);
		return false;
	}
	if (f->counter >= SEAL_FRAMES_MOST || !seal_window_fresh(s->window, f->counter)) {
		link_refused(link, LINK_REPLAY);
		return false;
	}
	if (link_opens_later(link, s, f, bytes, route))
		return true;
	if (seal_open(&s->receive, f->counter, bytes, FRAME_DATA_HEAD, bytes + FRAME_DATA_HEAD,
		    f->body_size) < 0) {
		link_refused(link, LINK_BAD_SEAL);
		return false;
	}
	on_opened(link, s, f->counter, bytes, f->body_size, route, now_us);
	return true;
}

/* Accepts or refuses the next frame that a thread has opened. Returns false if there is none.
 * Threads may have opened two copies of a frame at the same time, so the window is checked
 * again. */
static bool take_opened(struct link *link, int64_t now_us)
{
	struct transit t;
	if (!transit_take(&link->transits.opening, link->options.sealers, &t))
		return false;
	struct session *s = session_find(link, t.session);
	if (t.rc == 0 && seal_window_fresh(s->window, t.counter)) {
		on_opened(link, s, t.counter, t.frame, t.size, &t.route, now_us);
		return true;
	}
	link_refused(link, t.rc < 0 ? LINK_BAD_SEAL : LINK_REPLAY);
	socket_frame_free(t.frame);
	return true;
}

/* Handles a frame of a handshake. A frame that only the other kind of link (listening or dialing)
 * may receive counts as malformed. */
static enum link_reason on_other(struct link *link, const struct frame *f,
	const struct socket_route *route, int64_t now_us)
{
	switch (f->type) {
	case FRAME_HELLO:
	case FRAME_INIT:
		if (!link->listens)
			return LINK_MALFORMED;
		if (f->type == FRAME_HELLO)
			handshake_on_hello(link, f, route, now_us);
		else
			handshake_on_init(link, f, route, now_us);
		return LINK_REASON_NONE;
	case FRAME_COOKIE_ANSWER:
	case FRAME_RESPONSE:
	case FRAME_REFUSE:
		if (link->listens)
			return LINK_MALFORMED;
		if (f->type == FRAME_COOKIE_ANSWER)
			handshake_on_cookie(link, f, now_us);
		else if (f->type == FRAME_RESPONSE)
			handshake_on_response(link, f, now_us);
		else
			handshake_on_refuse(link, f, now_us);
		return LINK_REASON_NONE;
	case FRAME_DATA:
		break;
	}
	return LINK_MALFORMED;
}

/* Handles a received frame. Returns true if the function has taken over the frame. */
static bool on_frame(struct link *link, uint8_t *bytes, size_t size,
	const struct socket_route *route, int64_t now_us)
{
	struct frame f;
	enum link_reason reason = size > link->options.frame_most ? LINK_OVERSIZE
								  : frame_parse(bytes, size, &f);
	if (reason == LINK_REASON_NONE && f.type == FRAME_DATA)
		return on_data(link, &f, bytes, route, now_us);
	if (reason == LINK_REASON_NONE)
		reason = on_other(link, &f, route, now_us);
	else if (reason == LINK_VERSION_OTHER && f.type == FRAME_HELLO && link->listens) {
		handshake_refuse(link, reason, f.nonce, route, now_us);
		return false;
	}
	if (reason != LINK_REASON_NONE)
		link_refused(link, reason);
	return false;
}

/* Receives a frame from the trunks in turn. */
static int receive_frame(struct link *link, struct socket_route *route, uint8_t **bytes,
	size_t *size)
{
	for (unsigned i = 0; i < LINK_TRUNKS; i++) {
		const unsigned trunk = (link->turn + i) % LINK_TRUNKS;
		if (!link_has_trunk(link, trunk) ||
		    socket_receive(&link->sockets[trunk], route, bytes, size) < 0)
			continue;
		link->turn = (trunk + 1) % LINK_TRUNKS;
		return 0;
	}
	return -EAGAIN;
}

int link_receive(struct link *link, int64_t now_us, struct link_event *out)
{
	session_check_admitted(link);
	link_transmit_sealed(link);
	for (unsigned i = 0; i < FRAMES_PER_CALL; i++) {
		struct socket_route route;
		uint8_t *bytes;
		size_t size;
		if (next_queued(link, out) || session_next_ending(link, out))
			return 0;
		if (take_opened(link, now_us))
			continue;
		if (link_full(link) || receive_frame(link, &route, &bytes, &size) < 0)
			return -EAGAIN;
		link->counters->received_bytes += size;
		if (!on_frame(link, bytes, size, &route, now_us))
			socket_frame_free(bytes);
	}
	return next_queued(link, out) || session_next_ending(link, out) ? 0 : -EAGAIN;
}

/* ---- time ---- */

static void keep_alive(struct link *link, struct session *s, int64_t now_us)
{
	uint8_t *nothing = link_buffer(0);
	if (nothing != NULL)
		(void)link_send(link, s->id, 0, nothing, 0, now_us);
	s->last_sent_us = now_us;
}

/* Returns true if no frame waits to be received. While frames wait, no session may be ended as
 * silent, because after a pause of this process the frames of the session may be unread. */
static bool is_drained(const struct link *link)
{
	struct pollfd p[LINK_TRUNKS];
	nfds_t n = 0;
	if (link->transits.opening.first != NULL)
		return false;
	for (unsigned i = 0; i < LINK_TRUNKS; i++) {
		if (link_has_trunk(link, i))
			p[n++] = (struct pollfd){.fd = link_read_fd(link, i), .events = POLLIN};
	}
	return poll(p, n, 0) == 0;
}

/* Checks the deadlines of all sessions: frees old PENDING sessions, ends silent sessions, sends
 * keep-alive frames, and asks for new sessions in place of old sessions. Sets the time of the
 * next check. */
static void scan_deadlines(struct link *link, int64_t now_us)
{
	for (uint32_t i = 0; i < link->n_slots; i++) {
		struct session *s = link->slots[i];
		if (s == NULL || s->state == SESSION_ENDING)
			continue;
		if (s->state == SESSION_PENDING) {
			if (now_us - s->since_us > PENDING_LIFE_US)
				session_free(link, s);
			continue;
		}
		const int64_t silence = s->silence_limit_us > link->options.silence_us
						? s->silence_limit_us
						: link->options.silence_us;
		if (now_us - s->last_received_us > silence && is_drained(link)) {
			link_refused(link, LINK_SILENT);
			session_end(link, s, LINK_SILENT);
			handshake_want(link, now_us);
			continue;
		}
		if (now_us - s->last_sent_us >= s->keep_alive_us)
			keep_alive(link, s, now_us);
		if (now_us + s->keep_alive_us / 2 < link->next_scan_us)
			link->next_scan_us = now_us + s->keep_alive_us / 2;
		if (now_us - s->since_us > link->options.rekey_us)
			handshake_want(link, now_us);
		if (link->options.rekey_us < link->next_scan_us - now_us)
			link->next_scan_us = now_us + link->options.rekey_us;
	}
}

void link_tick(struct link *link, int64_t now_us)
{
	session_check_admitted(link);
	if (link->n_sessions > 0 && now_us >= link->next_scan_us) {
		link->next_scan_us = now_us + link->options.silence_us / 8;
		scan_deadlines(link, now_us);
	}
	if (link->listens && now_us >= link->next_repair_us) {
		link->next_repair_us = now_us + CROWD_CHECK_US;
		link->counters->refused[LINK_TOO_MANY] +=
			socket_end_silent(&link->sockets[0], SILENT_MS);
	}
	if (!link->listens && now_us >= link->next_repair_us) {
		/* The time is rounded, so that it is the same for all dialing links of a process.
		 * The process therefore wakes once for all its links. */
		link->next_repair_us = now_us - now_us % REPAIR_US + REPAIR_US;
		for (unsigned i = 0; i < LINK_TRUNKS; i++) {
			if (link_has_trunk(link, i))
				socket_repair(&link->sockets[i], now_us);
		}
	}
	for (unsigned i = 0; i < LINK_TRUNKS; i++) {
		if (link->blocked[i] && link_has_trunk(link, i))
			(void)link_is_writable(link, i);
	}
	link_transmit_sealed(link);
	dial_search_tick(link, now_us);
	handshake_tick(link, now_us);
}

const char *link_address(const struct link *link)
{
	return link->address;
}

const char *link_trouble(const struct link *link)
{
	return link->dial.trouble.text;
}

int64_t link_deadline_us(const struct link *link)
{
	int64_t at = INT64_MAX;
	if (link->events.n > 0 || link->n_ending > 0)
		return 0;
	if (link->n_sessions > 0)
		at = link->next_scan_us;
	if (link->next_repair_us < at)
		at = link->next_repair_us;
	if (handshake_deadline_us(link) < at)
		at = handshake_deadline_us(link);
	if (dial_search_deadline_us(link) < at)
		at = dial_search_deadline_us(link);
	return at > 0 ? at : 1;
}
