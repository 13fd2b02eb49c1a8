/* post_receive.c - the receiving half of a post: sessions that begin and end, frames that arrive.
 * This half assigns each session to a peer, enforces the quota of each key, and turns frames into
 * messages. */
#include <string.h>

#include "base/clock.h"
#include "wire/delivery/post_frame.h"
#include "wire/delivery/post_private.h"

/* Longest chunk that this process accepts from a dialer: below the smallest buffer of any system
 * (post_peer.c). */
#define TAKEN_CHUNK ((size_t)65536)

/* The quota of a key is counted in frames. */
#define CHARGE_BYTES 4096.0 /* bytes of a message that count as much as one frame */
/* A session counts as this number of frames, because its handshake is expensive. */
#define CHARGE_SESSION 50.0
#define CHARGE_BURST_S 10.0 /* seconds of the quota that a key may use up at once */

static void charge_peer(struct post *p, struct peer *peer, double frames, int64_t now_us)
{
	const double per_s = p->options.charge_per_s;
	if (per_s <= 0 || peer->account == NULL)
		return;
	peer->account->spent = post_account_spent(peer->account, per_s, now_us) + frames;
	if (peer->account->spent <= CHARGE_BURST_S * per_s)
		return;
	/* keys_list_bar refuses the key until an operator admits it again, after a look at the
	 * cause. The key then starts with its whole quota. */
	peer->account->spent = 0;
	p->counters.link.refused[LINK_FLOOD]++;
	keys_list_bar(p->options.admitted, &peer->info.key);
}

void post_charge(struct post *p, post_peer_id id, double frames, int64_t now_us)
{
	struct peer *peer = post_peer_find(p, id);
	if (peer != NULL)
		charge_peer(p, peer, frames, now_us);
}

static void queue_message(struct post *p, const struct post_message *m)
{
	if (p->n_queue < POST_QUEUE)
		p->queue[p->n_queue++] = *m;
}

/* Returns the peer of a new session. For a key that several processes share, each process is a
 * peer. Any other key has a single peer, because the processes with this key run one after
 * another. */
static struct peer *peer_for(struct post *p, struct line *line, const struct link_event *e)
{
	if (line->peer != NULL)
		return line->peer;
	bool many = (p->options.shared_roles & KEYS_ROLE_BIT(e->role)) != 0;
	struct peer *peer = post_peer_of_key(p, &e->key, many ? e->instance : 0);
	if (peer == NULL) {
		peer = post_peer_new(p, line, false);
		if (peer != NULL)
			peer->ephemeral = (POST_EPHEMERAL_ROLES & KEYS_ROLE_BIT(e->role)) != 0;
	}
	return peer;
}

static void drop_retained(struct post *p, struct peer *peer)
{
	p->counters.retained_bytes -= peer->retained_bytes;
	uint64_t lost = post_peer_drop(peer);
	if (lost > 0)
		queue_message(p, &(struct post_message){.kind = POST_LOST, .peer = peer->id,
			.lost = lost});
}

/* Gives a new session to its peer, in place of the previous session. If the peer's process is the
 * same, the channels continue. If the peer has a new process, the channels restart and retained
 * messages are dropped. */
static void on_up(struct post *p, struct line *line, const struct link_event *e, int64_t now_us)
{
	struct peer *peer = peer_for(p, line, e);
	if (peer != NULL)
		peer->info.key = e->key;
	if (peer == NULL) {
		p->counters.link.refused[LINK_TOO_MANY]++;
		link_drop(line->link, e->session);
		return;
	}
	if (!peer->info.dialed)
		post_account_open(p, peer, now_us);
	bool same = peer->known && peer->info.incarnation == e->instance &&
		    peer->own_instance == e->own_instance;
	bool restarted = peer->known && !same, was_up = peer->session != 0;
	size_t room = e->frame_most - POST_FRAME_HEAD - LINK_OVERHEAD;

	if (peer->line != line && was_up)
		link_drop(peer->line->link, peer->session);
	peer->line = line;
	peer->session = e->session;
	peer->own_instance = e->own_instance;
	peer->info.role = e->role;
	memcpy(peer->info.name, e->name, sizeof(peer->info.name));
	peer->info.incarnation = e->instance;
	peer->info.heard_us = now_us;
	peer->lossy_most = room;
	peer->known = true;
	link_set_tag(line->link, e->session, peer->id);
	if (restarted)
		drop_retained(p, peer);
	const bool quick = peer->info.dialed && post_open_trunk(p, line, POST_TRUNK_QUICK);
	if (quick && !(channel_empty(peer->channels[POST_CLASS_SUMS]) &&
			     channel_empty(peer->channels[POST_CLASS_WEIGHTS])))
		(void)post_open_trunk(p, line, POST_TRUNK_BULK);
	peer->session_us = clock_monotonic_us();
	if (same)
		post_peer_resume(peer);
	else
		post_peer_start(peer, peer->info.dialed || room < TAKEN_CHUNK ? room : TAKEN_CHUNK,
			quick ? link_connections(line->link, POST_TRUNK_QUICK) : 1);
	if (!was_up)
		p->counters.peers_up++;
	if (!was_up || restarted)
		queue_message(p, &(struct post_message){.kind = POST_UP, .peer = peer->id,
			.restarted = restarted});
	post_pump(p, peer, now_us);
	charge_peer(p, peer, CHARGE_SESSION, now_us);
}

static struct peer *peer_of_session(struct post *p, struct line *line, const struct link_event *e)
{
	struct peer *peer =
		line->peer != NULL ? line->peer : post_peer_find(p, (post_peer_id)e->tag);
	/* A session's first frame may have been received before the session got its tag. In this
	 * case the session's number finds the peer. */
	for (uint32_t i = 0; peer == NULL && i < p->options.peers_most; i++) {
		struct peer *other = p->slots[i];
		if (other != NULL && other->line == line && other->session == e->session)
			peer = other;
	}
	return peer != NULL && peer->line == line && peer->session == e->session ? peer : NULL;
}

static void on_down(struct post *p, struct line *line, const struct link_event *e, int64_t now_us)
{
	struct peer *peer = peer_of_session(p, line, e);
	if (peer == NULL)
		return; /* the peer already has another session */
	peer->session = 0;
	peer->info.down_us = now_us;
	p->counters.peers_up--;
	post_peer_pause(peer);
	queue_message(p, &(struct post_message){.kind = POST_DOWN, .peer = peer->id,
		.reason = e->reason});
}

/* Removes the ping with this number from the ring. Returns false if the ring has no such ping. */
static bool take_ping(struct ping_ring *sent, uint64_t number)
{
	for (unsigned i = 0; i < POST_PINGS; i++) {
		if (sent->left_us[i] == 0 || (uint64_t)sent->left_us[i] != number)
			continue;
		sent->left_us[i] = 0;
		return true;
	}
	return false;
}

/* Handles the answer to a ping. Ignores an answer that belongs to no ping of this post. The time
 * of a large ping includes the transfer of its bytes, so this time is not counted as a round
 * trip. */
static void on_pong(struct peer *peer, uint64_t number, int64_t now_us)
{
	if (take_ping(&peer->small_pings, number))
		flow_sample(&peer->flow, now_us - (int64_t)number, now_us);
	else if (take_ping(&peer->large_pings, number))
		peer->info.large_passed_us = (int64_t)number;
}

bool post_next_given(struct post *p, struct post_message *out)
{
	struct peer *peer = p->giving;
	struct channel_message m;
	for (int i = 0; peer != NULL && i < POST_CLASSES; i++) {
		if (!channel_give(peer->channels[i], &m))
			continue;
		*out = (struct post_message){.kind = POST_DATA, .peer = peer->id, .data = m.data,
			.size = m.size, .pieces = m.pieces};
		out->owner = m.data != NULL ? m.data - LINK_BUFFER_HEAD : (void *)m.pieces.list;
		return true;
	}
	p->giving = NULL;
	return false;
}

void post_count_received(struct post *p, const struct post_message *m)
{
	struct peer *peer = post_peer_find(p, m->peer);
	peer->info.received_messages++;
	peer->info.received_bytes += m->size;
	p->counters.received_messages++;
	p->counters.received_bytes += m->size;
}

static void count_malformed(struct post *p, struct peer *peer)
{
	p->counters.link.refused[LINK_MALFORMED]++;
	peer->info.malformed_frames++;
}

/* Handles a frame's content. Returns true if *out is a message to deliver now. */
static bool on_content(struct post *p, struct peer *peer, struct post_frame *f,
	struct link_event *e, int64_t now_us, struct post_message *out)
{
	*out = (struct post_message){.kind = POST_DATA, .peer = peer->id, .data = f->chunk.data,
		.size = f->chunk.size, .owner = e->owner};
	if (f->kind == POST_FRAME_PING)
		post_answer_ping(p, peer, f->chunk.number, now_us);
	else if (f->kind == POST_FRAME_PONG)
		on_pong(peer, f->chunk.number, clock_monotonic_us());
	if (f->kind >= POST_FRAME_ACK)
		return false;
	if (f->kind == POST_FRAME_LOSSY) {
		out->lossy = true;
		e->owner = NULL;
		return true;
	}
	struct channel *channel = peer->channels[f->class];
	f->chunk.owner = e->owner;
	enum channel_taken taken = peer->deferred[f->class] ? CHANNEL_DEFERRED
							    : channel_take(channel, &f->chunk);
	if (taken == CHANNEL_KEPT)
		e->owner = NULL;
	if (taken == CHANNEL_BAD)
		count_malformed(p, peer);
	else
		post_owe_ack(p, peer, f->class, f->chunk.size, now_us);
	p->counters.gap_frames += taken == CHANNEL_TOO_FAR;
	p->counters.duplicate_frames += taken == CHANNEL_DUPLICATE;
	peer->info.duplicate_frames += taken == CHANNEL_DUPLICATE;
	/* The chunk may have completed several messages, so this peer's messages are delivered
	 * next. */
	p->giving = peer;
	if (taken != CHANNEL_WHOLE)
		return post_next_given(p, out);
	e->owner = NULL;
	return true;
}

/* Handles a frame that arrived. Returns true if *out is a message to deliver now. */
static bool on_data(struct post *p, struct line *line, struct link_event *e, int64_t now_us,
	struct post_message *out)
{
	struct peer *peer = peer_of_session(p, line, e);
	struct post_frame f;
	bool delivers = false;
	if (peer == NULL)
		goto release;
	charge_peer(p, peer, 1.0 + (double)e->size / CHARGE_BYTES, now_us);
	if (e->size == 0)
		goto release; /* the frame is a keep-alive frame */
	if (post_frame_parse(e->data, e->size, &f) < 0) {
		count_malformed(p, peer);
		goto release;
	}
	peer->info.heard_us = now_us;
	size_t retained = peer->retained_bytes;
	if (f.kind == POST_FRAME_CHUNK || f.kind == POST_FRAME_ACK) {
		peer->moved_us[f.class] = clock_monotonic_us();
		channel_acked(peer->channels[f.class], f.ack, f.ranges, f.n_ranges,
			peer->moved_us[f.class]);
	}
	p->counters.retained_bytes -= retained - peer->retained_bytes;
	delivers = on_content(p, peer, &f, e, now_us, out);
	post_pump(p, peer, now_us);
	if (delivers)
		post_count_received(p, out);
release:
	link_release(e->owner);
	return delivers;
}

bool post_on_event(struct post *p, struct line *line, struct link_event *e, int64_t now_us,
	struct post_message *out)
{
	switch (e->kind) {
	case LINK_UP:
		on_up(p, line, e, now_us);
		break;
	case LINK_DOWN:
		on_down(p, line, e, now_us);
		break;
	case LINK_DATA:
		if (!on_data(p, line, e, now_us, out))
			return false;
		p->lent = *out;
		return true;
	case LINK_REFUSAL:
		if (line->peer != NULL)
			queue_message(p, &(struct post_message){.kind = POST_REFUSED,
				.peer = line->peer->id, .reason = e->reason});
		break;
	}
	return false;
}
