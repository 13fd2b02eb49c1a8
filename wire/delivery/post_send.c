/* post_send.c - the sending half of a post: chunks, LOSSY messages, probes, acknowledgements.
 * This half decides which class is sent first and on which trunk, so that bulk never delays
 * control. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "wire/delivery/post_frame.h"
#include "wire/delivery/post_private.h"

#define ACK_FRAMES 32 /* an acknowledgement is sent after at most this many frames */
/* An acknowledgement is sent after at most this many bytes. */
#define ACK_BYTES  ((size_t)4 << 20)
#define PROBES_A_ROUND 8
#define PROBE_LEAST_US INT64_C(2000)
#define LOOK_US INT64_C(5000) /* least time between two checks of a peer's deadlines */

/* Returns true if the message belongs on the bulk trunk, where TCP paces bytes (BBR). An
 * activation that fills the link belongs there too, because it takes several round trips anyway.
 * On the quick trunk such an activation would fill the network's queues, and delay the
 * acknowledgements of messages in the other direction. */
static bool wants_bulk_trunk(const struct peer *peer, enum post_class class, size_t bytes)
{
	return class >= POST_CLASS_SUMS ||
	       (class == POST_CLASS_ACTIVATIONS && flow_fills(&peer->flow, bytes));
}

unsigned post_trunk_of(const struct peer *peer, enum post_class class, size_t bytes)
{
	const struct link *link = peer->line->link;
	if (class >= POST_CLASS_SUMS && link_has_trunk(link, POST_TRUNK_BULK))
		return POST_TRUNK_BULK;
	if (wants_bulk_trunk(peer, class, bytes) && link_trunk_connected(link, POST_TRUNK_BULK))
		return POST_TRUNK_BULK;
	if (class == POST_CLASS_ACTIVATIONS && link_trunk_connected(link, POST_TRUNK_QUICK))
		return POST_TRUNK_QUICK;
	return POST_TRUNK_CONTROL;
}

/* Returns the trunk for LOSSY messages. If possible, returns the quick trunk with its several
 * connections, so that one lost packet does not delay the messages after it. */
static unsigned trunk_of_lossy(const struct peer *peer)
{
	const struct link *link = peer->line->link;
	return link_has_trunk(link, POST_TRUNK_QUICK) && !link_blocked(link, POST_TRUNK_QUICK)
		? POST_TRUNK_QUICK : POST_TRUNK_CONTROL;
}

static int send_content(struct post *p, struct peer *peer, unsigned trunk, uint8_t *content,
	size_t size, int64_t now_us)
{
	int rc = link_send(peer->line->link, peer->session, trunk, content, size, now_us);
	post_line_changed(p, peer->line);
	return rc;
}

static int send_chunk(struct post *p, struct peer *peer, const struct post_frame *f, unsigned trunk,
	int64_t now_us)
{
	const size_t size = POST_FRAME_HEAD + f->chunk.size;
	uint8_t *content = link_buffer(size);
	if (content == NULL)
		return -ENOMEM;
	post_frame_put_head(content, f);
	channel_hold(f->chunk.letter);
	const struct link_source source = {
		.pieces = {{f->chunk.data, f->chunk.size - f->chunk.lent_bytes},
			{f->chunk.lent, f->chunk.lent_bytes}},
		.release = channel_drop_letter,
		.context = f->chunk.letter,
		.at_once = f->class == POST_CLASS_CONTROL,
	};
	int rc = link_send_from(peer->line->link, peer->session, trunk, content, size, &source,
		now_us);
	post_line_changed(p, peer->line);
	if (rc == 0 && !channel_holes(peer->channels[f->class])) {
		/* The head of the chunk's frame acknowledges all frames received so far. */
		peer->unacked[f->class].frames = 0;
		peer->unacked[f->class].bytes = 0;
	}
	return rc;
}

void post_note_deadline(struct post *p, struct peer *peer, int64_t now_us)
{
	int64_t first = INT64_MAX;
	for (int i = 0; i < POST_CLASSES; i++) {
		int64_t at = channel_deadline_us(peer->channels[i]);
		if (at < first)
			first = at < now_us + LOOK_US ? now_us + LOOK_US : at;
	}
	/* This moves the timer only to an earlier time, never to a later time. If the deadline is
	 * later now, the timer expires too early, and post_tick sets it again. */
	if (peer->deadline.place == 0 || first < peer->deadline.at_us)
		timers_set(&p->peer_timers, &peer->deadline, first);
}

static int send_ping(struct post *p, struct peer *peer, bool large, int64_t now_us);

/* Sends a ping if one is due. While bulk is sent, PROBES_A_ROUND pings are due in every round
 * trip. */
static void probe_link(struct post *p, struct peer *peer, int64_t now_us)
{
	int64_t every = flow_least_us(&peer->flow) / PROBES_A_ROUND;
	if (!flow_wants_probes(&peer->flow) ||
	    now_us - peer->probed_us < (every < PROBE_LEAST_US ? PROBE_LEAST_US : every))
		return;
	peer->probed_us = now_us;
	(void)send_ping(p, peer, false, now_us);
}

/* Puts the peer on the list of peers whose chunks are sent in the next turn. */
static void pump_later(struct post *p, struct peer *peer)
{
	if (peer->pump_due)
		return;
	peer->pump_due = true;
	peer->next_pump = NULL;
	if (p->last_pump != NULL)
		p->last_pump->next_pump = peer;
	else
		p->first_pump = peer;
	p->last_pump = peer;
}

/* Sends the chunks of a class. Returns false if this turn's bytes are used up and a chunk waits for
 * the next turn. Control messages are small, so any turn sends them. */
static bool pump_class(struct post *p, struct peer *peer, enum post_class class,
	bool full[LINK_TRUNKS], int64_t now_us)
{
	struct channel *c = peer->channels[class];
	const uint64_t resent = channel_resent(c);
	struct post_frame f = {.kind = POST_FRAME_CHUNK, .class = class,
		.ack = channel_expected(c)};
	bool in_turn = true;
	while (in_turn && channel_next(c, &f.chunk)) {
		const unsigned trunk = post_trunk_of(peer, class, f.chunk.total);
		if (full[trunk])
			break;
		in_turn = p->turn_bytes > 0 || class == POST_CLASS_CONTROL;
		if (!in_turn)
			break;
		/* The clock is read again here, because round trips are measured from this time
		 * and now_us is some time old. */
		const int64_t left_us = clock_monotonic_us();
		const int rc = send_chunk(p, peer, &f, trunk, now_us);
		full[trunk] = rc < 0;
		/* If the trunk is blocked, the peer need not wait for the next turn, because the
		 * poll set reports when the trunk has room again. */
		if (rc == -EBUSY && !link_blocked(peer->line->link, trunk))
			pump_later(p, peer);
		if (rc < 0)
			continue;
		p->turn_bytes -= f.chunk.size < p->turn_bytes ? f.chunk.size : p->turn_bytes;
		channel_sent(c, &f.chunk, left_us);
	}
	p->counters.resent_frames += channel_resent(c) - resent;
	peer->info.resent_frames += channel_resent(c) - resent;
	return in_turn;
}

/* Sends the chunks of the most urgent class first. If a class finds the trunk of its next chunk
 * full, less urgent classes do not use this trunk either. */
void post_pump(struct post *p, struct peer *peer, int64_t now_us)
{
	bool full[LINK_TRUNKS] = {false}, in_turn = true;
	if (peer->session == 0)
		return;
	for (int i = 0; in_turn && i < POST_CLASSES; i++)
		in_turn = pump_class(p, peer, (enum post_class)i, full, now_us);
	if (!in_turn)
		pump_later(p, peer);
	probe_link(p, peer, now_us);
	post_note_deadline(p, peer, now_us);
}

void post_pump_none(struct post *p, const struct peer *peer)
{
	struct peer *next, *all = p->first_pump;
	p->first_pump = p->last_pump = NULL;
	for (; all != NULL; all = next) {
		next = all->next_pump;
		all->pump_due = false;
		if (all != peer)
			pump_later(p, all);
	}
}

void post_pump_waiting(struct post *p, int64_t now_us)
{
	const struct peer *last = p->last_pump;
	for (bool more = last != NULL; more && p->turn_bytes > 0;) {
		struct peer *peer = p->first_pump;
		more = peer != last;
		p->first_pump = peer->next_pump;
		if (p->first_pump == NULL)
			p->last_pump = NULL;
		peer->pump_due = false;
		post_pump(p, peer, now_us);
	}
}

static int send_lossy(struct post *p, struct peer *peer, const struct post_part *parts,
	size_t n, size_t total, int64_t now_us)
{
	struct post_frame f = {.kind = POST_FRAME_LOSSY, .chunk = {.total = total}};
	if (peer->session == 0)
		return -ENOTCONN;
	if (total > peer->lossy_most)
		return -EMSGSIZE;
	uint8_t *content = link_buffer(POST_FRAME_HEAD + total);
	if (content == NULL)
		return -ENOMEM;
	post_frame_put_head(content, &f);
	size_t filled = POST_FRAME_HEAD;
	for (size_t i = 0; i < n; i++) {
		if (parts[i].size > 0)
			memcpy(content + filled, parts[i].data, parts[i].size);
		filled += parts[i].size;
	}
	return send_content(p, peer, trunk_of_lossy(peer), content, filled, now_us);
}

/* Opens more connections if the present ones cannot send a burst of activations at once. After a
 * pause, TCP sends ten segments of each connection at once and the rest a round trip later. The new
 * connections serve the next burst. No connection is opened while the rate is unknown. */
static void widen_for_bursts(struct post *p, struct peer *peer, size_t bytes)
{
	struct channel *c = peer->channels[POST_CLASS_ACTIVATIONS];
	struct link *link = peer->line->link;
	if (post_trunk_of(peer, POST_CLASS_ACTIVATIONS, bytes) != POST_TRUNK_QUICK ||
	    flow_bytes_per_s(&peer->flow) == 0)
		return;
	const unsigned has = link_connections(link, POST_TRUNK_QUICK);
	const unsigned free = p->options.connections_more - p->connections_added;
	unsigned wanted = channel_flights(c);
	if (wanted > LINK_CONNECTIONS_MOST)
		wanted = LINK_CONNECTIONS_MOST;
	if (wanted <= has)
		return;
	if (wanted - has > free)
		wanted = has + free;
	link_widen(link, POST_TRUNK_QUICK, wanted);
	peer->line->added += link_connections(link, POST_TRUNK_QUICK) - has;
	p->connections_added += link_connections(link, POST_TRUNK_QUICK) - has;
	channel_spread(c, link_connections(link, POST_TRUNK_QUICK));
}

static int send_reliable(struct post *p, struct peer *peer, const struct post_part *parts,
	size_t n, const struct post_loan *loan, enum post_class class, int64_t now_us)
{
	struct channel_part small[8], *copy = small;
	if (n > sizeof(small) / sizeof(small[0]))
		copy = alloc_array(n, sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		copy[i] = (struct channel_part){parts[i].data, parts[i].size};
	size_t before = peer->retained_bytes;
	if (channel_empty(peer->channels[class]))
		peer->moved_us[class] = now_us;
	int rc = channel_lend(peer->channels[class], copy, n, &(struct channel_loan){loan->data,
		loan->size, loan->release, loan->context}, now_us);
	if (copy != small)
		free(copy);
	if (rc < 0)
		return rc;
	p->counters.retained_bytes += peer->retained_bytes - before;
	const size_t bytes = peer->retained_bytes - before;
	if (wants_bulk_trunk(peer, class, bytes) && peer->session != 0)
		(void)post_open_trunk(p, peer->line, POST_TRUNK_BULK);
	post_pump(p, peer, now_us);
	if (class == POST_CLASS_ACTIVATIONS && peer->session != 0)
		widen_for_bursts(p, peer, bytes);
	return 0;
}

static int send_message(struct post *p, post_peer_id id, const struct post_part *parts, size_t n,
	const struct post_loan *loan, enum post_flags flags, int64_t now_us)
{
	struct peer *peer = post_peer_find(p, id);
	size_t total = loan->size;
	if (peer == NULL)
		return -ENOENT;
	if ((unsigned)flags >> 1 >= POST_CLASSES)
		return -EINVAL;
	if (total > p->options.message_most_bytes)
		return -EMSGSIZE;
	for (size_t i = 0; i < n; i++) {
		if (parts[i].size > p->options.message_most_bytes - total)
			return -EMSGSIZE;
		total += parts[i].size;
	}
	int rc = (flags & POST_LOSSY) != 0 ? send_lossy(p, peer, parts, n, total, now_us)
					   : send_reliable(p, peer, parts, n, loan,
						     (enum post_class)(flags >> 1), now_us);
	if (rc < 0)
		return rc;
	peer->info.sent_messages++;
	peer->info.sent_bytes += total;
	p->counters.sent_messages++;
	p->counters.sent_bytes += total;
	return 0;
}

int post_send(struct post *p, post_peer_id id, const struct post_part *parts, size_t n,
	enum post_flags flags, int64_t now_us)
{
	const struct post_loan none = {NULL, 0, NULL, NULL};
	return send_message(p, id, parts, n, &none, flags, now_us);
}

int post_lend(struct post *p, post_peer_id id, const struct post_part *head,
	const struct post_loan *loan, enum post_flags class, int64_t now_us)
{
	if ((class & POST_LOSSY) != 0)
		return -EINVAL;
	return send_message(p, id, head, 1, loan, class, now_us);
}

/* ---- probes ---- */

static int send_bare(struct post *p, struct peer *peer, const struct post_frame *f, unsigned trunk,
	size_t padding, int64_t now_us)
{
	uint8_t *content = link_buffer(POST_FRAME_HEAD + padding);
	if (content == NULL)
		return -ENOMEM;
	post_frame_put_head(content, f);
	memset(content + POST_FRAME_HEAD, 0, padding);
	return send_content(p, peer, trunk, content, POST_FRAME_HEAD + padding, now_us);
}

/* Returns the trunk for a ping. A large ping uses the trunk of the oldest waiting activation, to
 * find out what delays the activation. Every second small ping uses the control trunk, because
 * lost chunks do not block this trunk. */
static unsigned trunk_of_ping(const struct peer *peer, bool large)
{
	const struct channel *c = peer->channels[POST_CLASS_ACTIVATIONS];
	if (large)
		return post_trunk_of(peer, POST_CLASS_ACTIVATIONS, channel_oldest_bytes(c));
	return peer->small_pings.n_sent % 2 == 0 ? POST_TRUNK_CONTROL : trunk_of_lossy(peer);
}

static int send_ping(struct post *p, struct peer *peer, bool large, int64_t now_us)
{
	const int64_t left_us = clock_monotonic_us();
	const struct post_frame f = {.kind = POST_FRAME_PING,
		.chunk = {.number = (uint64_t)left_us}};
	const size_t most = peer->lossy_most < POST_PROBE_LARGE ? peer->lossy_most
								: POST_PROBE_LARGE;
	struct ping_ring *sent = large ? &peer->large_pings : &peer->small_pings;
	int rc = send_bare(p, peer, &f, trunk_of_ping(peer, large), large ? most : 0, now_us);
	if (rc < 0)
		return rc;
	sent->left_us[sent->n_sent++ % POST_PINGS] = left_us;
	return 0;
}

int post_probe(struct post *p, post_peer_id id, bool large, int64_t now_us)
{
	struct peer *peer = post_peer_find(p, id);
	if (peer == NULL)
		return -ENOENT;
	if (peer->session == 0)
		return -ENOTCONN;
	return send_ping(p, peer, large, now_us);
}

void post_answer_ping(struct post *p, struct peer *peer, uint64_t number, int64_t now_us)
{
	const struct post_frame f = {.kind = POST_FRAME_PONG, .chunk = {.number = number}};
	if (peer->session != 0)
		(void)send_bare(p, peer, &f, trunk_of_lossy(peer), 0, now_us);
}

size_t post_room(const struct post *p, post_peer_id id)
{
	return post_class_room(p, id, POST_CLASS_CONTROL);
}

size_t post_class_room(const struct post *p, post_peer_id id, enum post_class class)
{
	const struct peer *peer = post_peer_find(p, id);
	return peer == NULL ? 0 : channel_room(peer->channels[class]);
}

bool post_idle(const struct post *p, post_peer_id id)
{
	if (id != 0) {
		const struct peer *peer = post_peer_find(p, id);
		return peer == NULL || post_peer_empty(peer);
	}
	for (uint32_t i = 0; i < p->options.peers_most; i++) {
		if (p->slots[i] != NULL && !post_peer_empty(p->slots[i]))
			return false;
	}
	return true;
}

/* ---- acknowledging ---- */

static void queue_ack(struct post *p, struct peer *peer)
{
	if (peer->ack_due)
		return;
	peer->ack_due = true;
	peer->next_ack = p->acks;
	p->acks = peer;
}

static void send_ack(struct post *p, struct peer *peer, enum post_class class, int64_t now_us)
{
	struct post_frame f = {.kind = POST_FRAME_ACK, .class = class,
		.ack = channel_expected(peer->channels[class])};
	const struct unacked owed = peer->unacked[class];
	peer->unacked[class] = (struct unacked){0};
	if (peer->session == 0)
		return;
	f.n_ranges = channel_ranges(peer->channels[class], f.ranges);
	uint8_t *content = link_buffer(POST_FRAME_HEAD + 8u * f.n_ranges);
	if (content == NULL)
		return;
	if (send_content(p, peer, POST_TRUNK_CONTROL, content, post_frame_put_head(content, &f),
		    now_us) != -EAGAIN)
		return;
	/* The trunk has no room while a large frame is sent on it. The acknowledgement stays due.
	 * Otherwise the peer might send its chunks again. */
	peer->unacked[class] = owed;
	queue_ack(p, peer);
	p->acks_wait = true;
}

/* If a chunk of a class was sent to the peer in the meantime, sends no ACK for the class, because
 * the chunk's frame has acknowledged all received frames of the class. */
void post_flush_acks(struct post *p, int64_t now_us)
{
	struct peer *list = p->acks;
	p->acks = NULL;
	p->acks_wait = false;
	while (list != NULL) {
		struct peer *peer = list;
		list = peer->next_ack;
		peer->ack_due = false;
		peer->next_ack = NULL;
		for (int i = 0; i < POST_CLASSES; i++) {
			if (peer->unacked[i].frames > 0)
				send_ack(p, peer, (enum post_class)i, now_us);
		}
	}
}

void post_owe_ack(struct post *p, struct peer *peer, enum post_class class, size_t size,
	int64_t now_us)
{
	peer->unacked[class].frames++;
	peer->unacked[class].bytes += size;
	if (peer->unacked[class].frames >= ACK_FRAMES || peer->unacked[class].bytes >= ACK_BYTES) {
		send_ack(p, peer, class, now_us);
	} else {
		queue_ack(p, peer);
		p->acks_wait = false;
	}
}
