/* post.c - the message endpoint of a process: its links, its poll set, the calls of its main loop.
 *
 * A post owns links (link.h): one for each address at which the post listens, and one for each
 * peer that the post dials. Every peer has a channel (channel.h) for each class of messages. A
 * channel decides which of its chunks is sent next. The post carries chunks between channels and
 * links. Each chunk also acknowledges the chunks received in its class. The post sends a separate
 * acknowledgement when nothing more waits to be received, or after ACK_FRAMES frames.
 */
#include "wire/post.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <sodium.h>

#include "base/alloc.h"
#include "wire/delivery/channel.h"
#include "wire/delivery/post_frame.h"
#include "wire/delivery/post_private.h"
#include "wire/sessions/sealers.h"

#define MIB        ((size_t)1 << 20)
#define CHUNK_MOST (4 * MIB)
/* Number of timeouts in a row after which a trunk is redialed. */
#define OVERDUE_MOST 4
#define SEAL_THREADS_MOST 64
/* Limit of a peer's silence while chunks are overdue, as a multiple of the time after which the
 * peer's answer was due. */
#define SILENCE_TIMES 4
/* Limit of the frames that are handled in one call. It keeps the call short, so that the call's
 * now_us is still nearly the present time at the end. */
#define TURNS_PER_CALL 32
/* Limit of the bytes that are opened and sealed in one call, so that the caller can soon serve
 * its other posts. */
#define CALL_BYTES MIB

/* ---- opening and closing ---- */

static void fill_default(size_t *value, size_t otherwise)
{
	if (*value == 0)
		*value = otherwise;
}

/* Replaces zeros by default values, and refuses values out of range. */
static int check_options(struct post_options *o, struct error *err)
{
	if (o->identity == NULL)
		return error_set(err, -EINVAL, "a post needs an identity");
	fill_default(&o->chunk_bytes, MIB);
	fill_default(&o->message_most_bytes, 256 * MIB);
	fill_default(&o->retained_most_bytes, 256 * MIB);
	fill_default(&o->assembling_most_bytes, 1024 * MIB);
	if (o->peers_most == 0)
		o->peers_most = 1100;
	if (o->silence_us == 0)
		o->silence_us = 5000000;
	if (o->rekey_us == 0)
		o->rekey_us = INT64_C(3600000000);
	if (o->chunk_bytes < LINK_CHUNK_LEAST || o->chunk_bytes > CHUNK_MOST)
		return error_set(err, -EINVAL, "chunk_bytes is %zu: expected %d to %zu",
			o->chunk_bytes, LINK_CHUNK_LEAST, CHUNK_MOST);
	if (o->connections == 0)
		o->connections = 1;
	if (o->connections > LINK_CONNECTIONS_MOST)
		return error_set(err, -EINVAL, "connections is %u: expected at most %d",
			o->connections, LINK_CONNECTIONS_MOST);
	if (o->peers_most > 60000)
		return error_set(err, -EINVAL, "peers_most is %u: expected at most 60000",
			o->peers_most);
	if (o->seal_threads > SEAL_THREADS_MOST)
		return error_set(err, -EINVAL, "seal_threads is %u: expected at most %d",
			o->seal_threads, SEAL_THREADS_MOST);
	if (o->silence_us < 1000)
		return error_set(err, -EINVAL, "silence_us is %lld: expected at least 1000",
			(long long)o->silence_us);
	return 0;
}

static void *make_nothing(void *context)
{
	return context;
}

/* Checks that the system can start another thread, because nanomsg ends the process if it cannot
 * start its threads. */
static int check_threads(struct error *err)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, make_nothing, NULL);
	if (rc != 0)
		return error_set(err, -rc, "no thread can be started: %s; %s", strerror(rc),
				 rc == EPERM ? "a container may forbid clone3, as Docker before "
					       "20.10.10 does: update its runtime"
					     : "raise the limit of memory, ulimit -u, or the "
					       "container's limit of processes");
	pthread_join(thread, NULL);
	return 0;
}

/* Opens the poll set and starts the threads that seal frames. The threads' descriptor is in the
 * poll set. */
static int open_poll_set(struct post *p, struct error *err)
{
	struct epoll_event event = {.events = EPOLLIN};
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll < 0)
		return error_set(err, -errno, "epoll: %s", strerror(errno));
	int rc = p->options.seal_threads == 0
			 ? 0 : sealers_new(&p->sealers, p->options.seal_threads, err);
	if (rc == 0 && p->sealers != NULL &&
	    epoll_ctl(p->epoll, EPOLL_CTL_ADD, sealers_fd(p->sealers), &event) < 0)
		rc = error_set(err, -errno, "epoll: %s", strerror(errno));
	if (rc < 0) {
		sealers_free(p->sealers);
		close(p->epoll);
	}
	return rc;
}

int post_open(struct post **out, const struct post_options *options, struct error *err)
{
	struct post_options o = *options;
	int rc = check_options(&o, err);
	if (rc == 0)
		rc = check_threads(err);
	if (rc < 0)
		return rc;
	if (sodium_init() < 0)
		return error_set(err, -EIO, "the system gives no randomness");
	struct post *p = alloc_new(sizeof(*p));
	p->options = o;
	p->options.shared_roles |= POST_EPHEMERAL_ROLES;
	p->memory.most_bytes = o.assembling_most_bytes;
	p->turn_bytes = POST_TURN_BYTES;
	rc = open_poll_set(p, err);
	if (rc < 0) {
		free(p);
		return rc;
	}
	p->slots = alloc_array(o.peers_most, sizeof(struct peer *));
	p->uses = alloc_array(o.peers_most, sizeof(*p->uses));
	p->transfers = alloc_array(POST_TRANSFERS, sizeof(*p->transfers));
	randombytes_buf(p->uses, o.peers_most * sizeof(*p->uses));
	*out = p;
	return 0;
}

/* ---- the ready list: lines that may have something to do ---- */

static void set_ready(struct post *p, struct line *line)
{
	if (line->ready)
		return;
	line->ready = true;
	line->next_ready = NULL;
	if (p->last_ready != NULL)
		p->last_ready->next_ready = line;
	else
		p->first_ready = line;
	p->last_ready = line;
}

/* Removes the line that has waited longest from the ready list and returns it; NULL: no line is
 * ready. */
static struct line *take_ready(struct post *p)
{
	struct line *line = p->first_ready;
	if (line == NULL)
		return NULL;
	p->first_ready = line->next_ready;
	if (p->first_ready == NULL)
		p->last_ready = NULL;
	line->ready = false;
	return line;
}

static void remove_ready(struct post *p, const struct line *line)
{
	struct line *next, *others = p->first_ready;
	p->first_ready = p->last_ready = NULL;
	for (; others != NULL; others = next) {
		next = others->next_ready;
		others->ready = false;
		if (others != line)
			set_ready(p, others);
	}
}

static void line_close(struct post *p, struct line *line)
{
	if (line->ready)
		remove_ready(p, line);
	timers_set(&p->line_timers, &line->due, INT64_MAX);
	p->connections_added -= line->added;
	p->n_lines--;
	p->lines[line->index] = p->lines[p->n_lines];
	p->lines[line->index]->index = line->index;
	/* link_close closes the link's descriptors, which also removes them from the epoll
	 * set. */
	link_close(line->link);
	free(line);
}

void post_close(struct post *p)
{
	if (p == NULL)
		return;
	/* An acknowledgement that cannot be sent at once is dropped. */
	post_flush_acks(p, 0);
	post_release(&p->lent);
	for (uint32_t i = 0; i < p->options.peers_most; i++) {
		if (p->slots[i] != NULL)
			post_peer_free(p, p->slots[i]);
	}
	post_accounts_fini(p);
	while (p->n_lines > 0)
		line_close(p, p->lines[0]);
	timers_fini(&p->line_timers);
	timers_fini(&p->peer_timers);
	close(p->epoll);
	sealers_free(p->sealers);
	free(p->slots);
	free(p->uses);
	free(p->transfers);
	free(p);
}

/* ---- links ---- */

/* Implements `known` of struct link_options. */
static uint64_t known_instance(void *context, const struct keys_public *key, uint64_t instance)
{
	const struct peer *peer = post_peer_of_key(context, key, instance);
	return peer == NULL ? 0 : peer->own_instance;
}

static int watch_line(struct post *p, struct line *line, int fd, int operation)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = line};
	return epoll_ctl(p->epoll, operation, fd, &event) < 0 ? -errno : 0;
}

static struct link_options link_options_of(struct post *p)
{
	return (struct link_options){
		.identity = p->options.identity,
		.admitted = p->options.admitted,
		.roles = p->options.roles,
		.shared_roles = p->options.shared_roles,
		.sessions_most = p->options.peers_most + 128,
		.frame_most = (uint32_t)(p->options.chunk_bytes + POST_FRAME_HEAD + LINK_OVERHEAD),
		.silence_us = p->options.silence_us,
		.rekey_us = p->options.rekey_us,
		.connections = p->options.connections,
		.no_aes = p->options.no_aes,
		.sealers = p->sealers,
		.hook = p->options.hook,
		.known = known_instance,
		.known_context = p,
		.counters = &p->counters.link,
	};
}

static int line_new(struct post *p, struct line **out, struct error *err)
{
	if (p->n_lines == POST_LINKS_MOST)
		return error_set(err, -ENOSPC, "a process may have %d sockets", POST_LINKS_MOST);
	*out = alloc_new(sizeof(**out));
	return 0;
}

static int line_add(struct post *p, struct line *line, struct error *err)
{
	int rc = watch_line(p, line, link_read_fd(line->link, 0), EPOLL_CTL_ADD);
	if (rc < 0)
		return error_set(err, rc, "epoll: %s", strerror(-rc));
	line->polls_read[0] = true;
	line->index = p->n_lines;
	line->due.owner = line;
	p->lines[p->n_lines++] = line;
	set_ready(p, line);
	timers_set(&p->line_timers, &line->due, 0);
	return 0;
}

int post_listen(struct post *p, const char *address, char *bound, struct error *err)
{
	struct line *line = NULL;
	struct link_options options = link_options_of(p);
	if (p->options.admitted == NULL)
		return error_set(err, -EINVAL, "to listen, a post needs a list of admitted keys");
	int rc = line_new(p, &line, err);
	if (rc < 0)
		return rc;
	rc = link_listen(&line->link, &options, address, bound, err);
	if (rc == 0)
		rc = line_add(p, line, err);
	if (rc < 0) {
		link_close(line->link);
		free(line);
	}
	return rc;
}

int post_dial(struct post *p, const char *address, const struct keys_public *key,
	post_peer_id *out, struct error *err)
{
	struct line *line = NULL;
	struct link_options options = link_options_of(p);
	int rc = line_new(p, &line, err);
	if (rc < 0)
		return rc;
	line->peer = post_peer_new(p, line, true);
	if (line->peer == NULL) {
		free(line);
		return error_set(err, -ENOSPC, "no room for another peer (peers_most is %u)",
			p->options.peers_most);
	}
	line->peer->info.key = *key;
	while (line->peer->own_instance == 0)
		randombytes_buf(&line->peer->own_instance, sizeof(uint64_t));
	rc = link_dial(&line->link, &options, address, key, line->peer->own_instance, err);
	if (rc == 0)
		rc = line_add(p, line, err);
	if (rc < 0) {
		link_close(line->link);
		post_peer_free(p, line->peer);
		free(line);
		return rc;
	}
	*out = line->peer->id;
	return 0;
}

static void watch_write(struct post *p, struct line *line)
{
	for (unsigned i = 0; i < LINK_TRUNKS; i++) {
		bool wanted = link_has_trunk(line->link, i) && link_blocked(line->link, i);
		if (wanted == line->polls_write[i])
			continue;
		int fd = link_write_fd(line->link, i);
		if (fd >= 0 && watch_line(p, line, fd, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL) == 0)
			line->polls_write[i] = wanted;
	}
}

void post_line_changed(struct post *p, struct line *line)
{
	const int64_t at = link_deadline_us(line->link);
	watch_write(p, line);
	timers_set(&p->line_timers, &line->due, at);
	if (at == 0)
		set_ready(p, line);
}

bool post_open_trunk(struct post *p, struct line *line, unsigned trunk)
{
	if (line->polls_read[trunk])
		return true;
	if (link_open_trunk(line->link, trunk) < 0 ||
	    watch_line(p, line, link_read_fd(line->link, trunk), EPOLL_CTL_ADD) < 0)
		return false;
	line->polls_read[trunk] = true;
	post_line_changed(p, line);
	set_ready(p, line);
	return true;
}

/* ---- the loop's calls ---- */

static bool next_queued(struct post *p, struct post_message *out)
{
	if (p->n_queue == 0)
		return false;
	*out = p->queue[0];
	p->n_queue--;
	memmove(&p->queue[0], &p->queue[1], p->n_queue * sizeof(p->queue[0]));
	return true;
}

int post_fd(const struct post *p)
{
	return p->epoll;
}

int post_threads_fd(const struct post *p)
{
	return sealers_fd(p->sealers);
}

static bool is_blocked(const struct line *line)
{
	bool blocked = false;
	for (unsigned i = 0; i < LINK_TRUNKS; i++)
		blocked = blocked || line->polls_write[i];
	return blocked;
}

/* Sends the frames that threads have sealed. Puts the lines whose frames threads have opened on the
 * ready list. */
static void take_from_threads(struct post *p, int64_t now_us)
{
	if (p->sealers == NULL)
		return;
	sealers_clear(p->sealers);
	for (uint32_t i = 0; i < p->n_lines; i++) {
		struct line *line = p->lines[i];
		/* If the frames that the link was opening were dropped, nothing else resumes
		 * reading from the link. */
		if (!link_in_transit(line->link) && line->reads_paused)
			set_ready(p, line);
		if (!link_in_transit(line->link))
			continue;
		/* link_transmit_sealed may find room in a blocked trunk. In this case no event
		 * reports the room, so this function must send the waiting chunks. */
		const bool blocked = is_blocked(line);
		link_transmit_sealed(line->link);
		post_line_changed(p, line);
		if (link_has_opened(line->link))
			set_ready(p, line);
		if (blocked && line->peer != NULL)
			post_pump(p, line->peer, now_us);
	}
}

static void poll_lines(struct post *p, int64_t now_us)
{
	struct epoll_event events[64];
	int n = epoll_wait(p->epoll, events, 64, 0);
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr != NULL)
			set_ready(p, events[i].data.ptr);
		else
			take_from_threads(p, now_us);
	}
}

/* While the threads have enough frames of a link to open, stops polling the link's descriptors.
 * Afterwards resumes polling. */
static void watch_reads(struct post *p, struct line *line)
{
	const bool full = link_full(line->link);
	struct epoll_event event = {.events = full ? 0 : EPOLLIN, .data.ptr = line};
	if (full == line->reads_paused)
		return;
	line->reads_paused = full;
	for (unsigned i = 0; i < LINK_TRUNKS; i++) {
		if (line->polls_read[i])
			(void)epoll_ctl(p->epoll, EPOLL_CTL_MOD, link_read_fd(line->link, i),
				&event);
	}
}

/* Does the periodic work of a line's link. Then sends chunks that have waited for a blocked
 * trunk. */
static void tick_line(struct post *p, struct line *line, int64_t now_us)
{
	const bool blocked = is_blocked(line);
	link_tick(line->link, now_us);
	post_line_changed(p, line);
	if (blocked && line->peer != NULL)
		post_pump(p, line->peer, now_us);
}

/* Handles one event of a line from the ready list. Returns true if *out is a message to deliver. A
 * line may also be on the list because a blocked trunk has room again. */
static bool receive_from(struct post *p, struct line *line, int64_t now_us,
			 struct post_message *out)
{
	struct link_event e;
	const int rc = link_receive(line->link, now_us, &e);
	watch_reads(p, line);
	if (rc == 0) {
		set_ready(p, line);
		return post_on_event(p, line, &e, now_us, out);
	}
	if (is_blocked(line))
		tick_line(p, line, now_us);
	else
		post_line_changed(p, line);
	return false;
}

static void tidy_up(struct post *p)
{
	post_release(&p->lent);
	if (p->leaving != 0) {
		const struct peer *peer = post_peer_find(p, p->leaving);
		if (peer != NULL && peer->session == 0)
			(void)post_forget(p, p->leaving);
		p->leaving = 0;
	}
}

/* Gives one message. Complete messages come first, then queued events, then the frames of ready
 * lines. If there is no message, sends the due acknowledgements. */
int post_receive(struct post *p, int64_t now_us, struct post_message *out)
{
	const struct link_counters *moved = &p->counters.link;
	const uint64_t before = moved->sent_bytes + moved->received_bytes;
	bool looked = false;
	p->turn_bytes = POST_TURN_BYTES;
	tidy_up(p);
	if (post_next_given(p, out)) {
		post_count_received(p, out);
		p->lent = *out;
		return 0;
	}
	for (unsigned turn = 0; turn < TURNS_PER_CALL &&
	     moved->sent_bytes + moved->received_bytes - before < CALL_BYTES;
	     turn++) {
		if (next_queued(p, out)) {
			const struct peer *peer = post_peer_find(p, out->peer);
			if (out->kind == POST_DOWN && peer != NULL && peer->ephemeral)
				p->leaving = out->peer;
			return 0;
		}
		struct line *line = take_ready(p);
		if (line != NULL) {
			if (receive_from(p, line, now_us, out))
				return 0;
		} else if (!looked) {
			looked = true;
			poll_lines(p, now_us);
		} else {
			break;
		}
	}
	post_pump_waiting(p, now_us);
	post_flush_acks(p, now_us);
	return -EAGAIN;
}

void post_keep(struct post *p, struct post_message *m)
{
	if (p->lent.owner == m->owner)
		p->lent = (struct post_message){.owner = NULL};
}

void post_release(struct post_message *m)
{
	for (uint32_t i = 0; i < m->pieces.n; i++)
		link_release(m->pieces.list[i].owner);
	if (m->pieces.n > 0)
		free(m->pieces.list);
	else
		link_release(m->owner);
	m->owner = NULL;
	m->data = NULL;
	m->pieces = (struct pieces){NULL, 0};
	m->size = 0;
}

int post_join(struct post *p, struct post_message *m)
{
	if (m->pieces.n == 0)
		return 0;
	struct post_message joined = *m;
	uint8_t *data = link_buffer(m->size);
	if (data == NULL)
		return -ENOMEM;
	pieces_join(&m->pieces, 0, data);
	joined.data = data;
	joined.pieces = (struct pieces){NULL, 0};
	joined.owner = data - LINK_BUFFER_HEAD;
	if (p->lent.owner == m->owner)
		p->lent = joined;
	post_release(m);
	*m = joined;
	return 0;
}

/* Checks the deadlines of a peer's channels. After OVERDUE_MOST timeouts in a row, redials the
 * trunk, because a new connection may work. While chunks are overdue, allows the session to be
 * silent for longer than silence_us. Otherwise a slow link would look like a dead peer. */
static void tick_peer(struct post *p, struct peer *peer, int64_t now_us)
{
	bool overdue = false;
	for (int i = 0; i < POST_CLASSES; i++) {
		if (channel_deadline_us(peer->channels[i]) > now_us)
			continue;
		unsigned times = channel_tick(peer->channels[i], now_us);
		const unsigned trunk = post_trunk_of(peer, (enum post_class)i,
			channel_oldest_bytes(peer->channels[i]));
		if (times > 0 && times % OVERDUE_MOST == 0 && trunk != POST_TRUNK_CONTROL)
			link_redial(peer->line->link, trunk);
		overdue = true;
	}
	if (overdue) {
		link_set_silence_limit(peer->line->link, peer->session,
			SILENCE_TIMES * (flow_overdue_us(&peer->flow.round_trip) +
						flow_drain_us(&peer->flow)));
		post_pump(p, peer, now_us);
	} else {
		post_note_deadline(p, peer, now_us);
	}
}

/* If the list of admitted keys has changed, calls link_tick for all lines. Listening links then end
 * the sessions of removed keys. */
static void follow_admitted(struct post *p, int64_t now_us)
{
	const struct keys_list *list = p->options.admitted;
	if (list == NULL || keys_list_version(list) == p->admitted_version)
		return;
	p->admitted_version = keys_list_version(list);
	for (uint32_t i = 0; i < p->n_lines; i++)
		tick_line(p, p->lines[i], now_us);
}

void post_tick(struct post *p, int64_t now_us)
{
	p->turn_bytes = POST_TURN_BYTES;
	take_from_threads(p, now_us);
	follow_admitted(p, now_us);
	for (uint32_t i = 0; i < p->n_lines && timers_first_us(&p->line_timers) <= now_us; i++)
		tick_line(p, timers_first(&p->line_timers)->owner, now_us);
	while (timers_first_us(&p->peer_timers) <= now_us) {
		struct peer *peer = timers_first(&p->peer_timers)->owner;
		timers_set(&p->peer_timers, &peer->deadline, INT64_MAX);
		if (peer->session != 0)
			tick_peer(p, peer, now_us);
	}
	post_pump_waiting(p, now_us);
}

bool post_waits_for_tick(const struct post *p)
{
	return p->first_pump != NULL && !sealers_busy(p->sealers);
}

int64_t post_deadline_us(const struct post *p)
{
	const int64_t lines = timers_first_us(&p->line_timers);
	const int64_t peers = timers_first_us(&p->peer_timers);
	if (p->n_queue > 0 || (p->acks != NULL && !p->acks_wait) || p->giving != NULL ||
	    p->first_ready != NULL || post_waits_for_tick(p))
		return 0;
	return lines < peers ? lines : peers;
}

void post_limit(struct post *p, size_t message_most_bytes)
{
	p->options.message_most_bytes = message_most_bytes;
	p->memory.share_bytes = POST_CLASSES * message_most_bytes;
	for (uint32_t i = 0; i < p->options.peers_most; i++) {
		for (int k = 0; p->slots[i] != NULL && k < POST_CLASSES; k++)
			channel_limit(p->slots[i]->channels[k], message_most_bytes);
	}
}

int post_defer(struct post *p, post_peer_id id, enum post_class class, bool deferred)
{
	struct peer *peer = post_peer_find(p, id);
	if (peer == NULL)
		return -ENOENT;
	peer->deferred[class] = deferred;
	return 0;
}

int post_forget(struct post *p, post_peer_id id)
{
	struct peer *peer = post_peer_find(p, id);
	if (peer == NULL)
		return -ENOENT;
	struct line *line = peer->line;
	if (peer->info.dialed)
		line_close(p, line);
	else
		link_drop(line->link, peer->session);
	unsigned kept = 0;
	for (unsigned i = 0; i < p->n_queue; i++) {
		if (p->queue[i].peer != id)
			p->queue[kept++] = p->queue[i];
	}
	p->n_queue = kept;
	post_peer_free(p, peer);
	return 0;
}

/* ---- information ---- */

/* Returns the time from which messages have waited without any acknowledgement in their class; 0:
 * no message waits. If a more urgent class waits too, a class counts only if some of its chunks
 * are under way. Without such chunks, the class may be waiting only for the more urgent class. */
static int64_t stalled_since(const struct peer *peer)
{
	int64_t since = 0;
	for (int i = 0; i < POST_CLASSES; i++) {
		const struct channel *c = peer->channels[i];
		if (channel_empty(c) || (since != 0 && !channel_awaits_ack(c)))
			continue;
		if (since == 0 || peer->moved_us[i] < since)
			since = peer->moved_us[i];
	}
	return since;
}

int post_peer(const struct post *p, post_peer_id id, struct post_peer_info *out)
{
	const struct peer *peer = post_peer_find(p, id);
	if (peer == NULL)
		return -ENOENT;
	*out = peer->info;
	out->up = peer->session != 0;
	out->stalled_us = stalled_since(peer);
	out->trouble = peer->info.dialed ? link_trouble(peer->line->link) : "";
	out->address = peer->info.dialed ? link_address(peer->line->link) : "";
	out->least_round_trip_us = flow_least_us(&peer->flow);
	out->round_trip_us = peer->flow.round_trip.smoothed_us;
	out->round_trip_var_us = peer->flow.round_trip.deviation_us;
	out->rto_us = flow_overdue_us(&peer->flow.round_trip);
	out->delivery_bytes_per_s = flow_bytes_per_s(&peer->flow);
	out->delivery_limited = peer->flow.limited;
	out->under_way_bytes = peer->flow.under_way;
	out->retained_bytes = peer->retained_bytes;
	for (int i = 0; i < POST_CLASSES; i++)
		out->carried[i] = out->up && peer->carried_us[i] > post_peer_renewed_us(peer);
	return 0;
}

int post_transfer(struct post *p, struct post_transfer *out)
{
	if (p->transfers_taken == p->transfers_in)
		return -EAGAIN;
	*out = p->transfers[p->transfers_taken++ % POST_TRANSFERS];
	return 0;
}

post_peer_id post_next_peer(const struct post *p, post_peer_id after)
{
	uint32_t slot = after == 0 ? 0 : (after & POST_SLOT_MASK) + 1;
	for (; slot < p->options.peers_most; slot++) {
		if (p->slots[slot] != NULL)
			return p->slots[slot]->id;
	}
	return 0;
}

void post_count(const struct post *p, struct post_counters *out)
{
	*out = p->counters;
	out->assembling_bytes = p->memory.used_bytes;
	for (uint32_t i = 0; i < p->n_lines; i++)
		link_count_connections(p->lines[i]->link, &out->link);
}
