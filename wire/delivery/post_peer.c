/* post_peer.c - a post's table of peers: their channels, and the quota accounts of their keys. A
 * peer's number contains the number of times that its slot was used. An old number therefore never
 * names a new peer. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/delivery/post_private.h"

#define MIB ((size_t)1 << 20)
/* Windows by the kind of connection: one connection that this process dialed, several such
 * connections, and a connection that the peer dialed.
 *
 * nanomsg blocks a dialer's frames while its connection is full. A listener's frames are dropped
 * if they do not fit the socket's buffer. On such a connection, chunks and window therefore stay
 * below the smallest buffer of any system. With several connections, the window begins with twice
 * the bytes that TCP sends at once. */
static const struct flow_limits near_limits = {FLOW_NEAR, 64 * MIB, 65536, 64 * MIB};
static const struct flow_limits far_limits = {FLOW_FAR, 262144, 131072, 64 * MIB};
static const struct flow_limits taken_limits = {FLOW_DROPS, 131072, 65536, MIB};

struct peer *post_peer_find(const struct post *p, post_peer_id id)
{
	uint32_t slot = id & POST_SLOT_MASK;
	if (id == 0 || slot >= p->options.peers_most || p->slots[slot] == NULL ||
	    p->slots[slot]->id != id)
		return NULL;
	return p->slots[slot];
}

static uint8_t *allocate_message(size_t size)
{
	return link_buffer(size);
}

static void release_message(void *memory)
{
	link_buffer_free(memory);
}

int64_t post_peer_renewed_us(const struct peer *peer)
{
	const int64_t dialed_us = link_renewed_us(peer->line->link);
	return dialed_us > peer->session_us ? dialed_us : peer->session_us;
}

static void note_finished(struct peer *peer, enum post_class class,
	const struct channel_finished *m)
{
	struct post *p = peer->post;
	const int64_t renewed_us = post_peer_renewed_us(peer);
	if (peer->carried_us[class] <= renewed_us && m->left_us >= renewed_us)
		peer->carried_us[class] = m->acked_us;
	const bool first = peer->carried_us[class] <= renewed_us ||
			   m->queued_us < peer->carried_us[class];
	p->transfers[p->transfers_in++ % POST_TRANSFERS] = (struct post_transfer){.peer = peer->id,
		.class = class, .bytes = m->bytes, .queued_us = m->queued_us,
		.left_us = m->left_us, .acked_us = m->acked_us,
		.under_way_bytes = m->under_way_bytes, .first = first};
	if (p->transfers_in - p->transfers_taken > POST_TRANSFERS)
		p->transfers_taken = p->transfers_in - POST_TRANSFERS;
}

static void note_activation(void *context, const struct channel_finished *m)
{
	note_finished(context, POST_CLASS_ACTIVATIONS, m);
}

static void note_sum(void *context, const struct channel_finished *m)
{
	note_finished(context, POST_CLASS_SUMS, m);
}

static void note_weights(void *context, const struct channel_finished *m)
{
	note_finished(context, POST_CLASS_WEIGHTS, m);
}

static void make_channels(struct peer *peer)
{
	static void (*const notes[POST_CLASSES])(void *, const struct channel_finished *) = {
		NULL, note_activation, note_sum, note_weights};
	struct post *p = peer->post;
	struct channel_options options = {
		.message_most_bytes = p->options.message_most_bytes,
		.retained_most_bytes = p->options.retained_most_bytes,
		.memory = &p->memory,
		.peer_bytes = &peer->assembling_bytes,
		.retained_bytes = &peer->retained_bytes,
		.alloc = allocate_message,
		.release = release_message,
		.drop = link_release,
		.flow = &peer->flow,
		.context = peer,
	};
	for (int i = 0; i < POST_CLASSES; i++) {
		options.urgent = i <= POST_CLASS_ACTIVATIONS;
		options.finished = notes[i];
		options.piece_least_bytes =
			i == POST_CLASS_ACTIVATIONS ? p->options.piece_least_bytes : 0;
		peer->channels[i] = channel_new(&options);
	}
}

static void free_channels(struct peer *peer)
{
	for (int i = 0; i < POST_CLASSES; i++)
		channel_free(peer->channels[i]);
}

struct peer *post_peer_new(struct post *p, struct line *line, bool dialed)
{
	uint32_t slot = 0;
	while (slot < p->options.peers_most && p->slots[slot] != NULL)
		slot++;
	if (slot == p->options.peers_most)
		return NULL;
	struct peer *peer = alloc_new(sizeof(*peer));
	peer->post = p;
	peer->deadline.owner = peer;
	flow_init(&peer->flow);
	make_channels(peer);
	p->uses[slot]++;
	if (p->uses[slot] == 0)
		p->uses[slot] = 1; /* starts at 1, so that no peer's number is 0 */
	peer->id = (uint32_t)p->uses[slot] << 16 | slot;
	peer->line = line;
	peer->info.dialed = dialed;
	p->slots[slot] = peer;
	p->counters.peers++;
	p->memory.peers++;
	return peer;
}

void post_peer_start(struct peer *peer, size_t chunk_most, unsigned connections)
{
	flow_start(&peer->flow, !peer->info.dialed ? &taken_limits
						    : connections > 1 ? &far_limits : &near_limits);
	for (int i = 0; i < POST_CLASSES; i++) {
		const struct channel_cut cut = {chunk_most,
			i == POST_CLASS_CONTROL ? 1 : connections};
		channel_start(peer->channels[i], &cut);
	}
}

void post_peer_resume(struct peer *peer)
{
	for (int i = 0; i < POST_CLASSES; i++)
		channel_resume(peer->channels[i]);
}

void post_peer_pause(struct peer *peer)
{
	for (int i = 0; i < POST_CLASSES; i++)
		channel_pause(peer->channels[i]);
}

uint64_t post_peer_drop(struct peer *peer)
{
	uint64_t dropped = 0;
	for (int i = 0; i < POST_CLASSES; i++)
		dropped += channel_drop(peer->channels[i]);
	return dropped;
}

bool post_peer_empty(const struct peer *peer)
{
	for (int i = 0; i < POST_CLASSES; i++) {
		if (!channel_empty(peer->channels[i]))
			return false;
	}
	return true;
}

struct peer *post_peer_of_key(const struct post *p, const struct keys_public *key,
	uint64_t instance)
{
	for (uint32_t i = 0; i < p->options.peers_most; i++) {
		struct peer *peer = p->slots[i];
		if (peer != NULL && !peer->info.dialed && keys_equal(&peer->info.key, key) &&
		    (instance == 0 || peer->info.incarnation == instance))
			return peer;
	}
	return NULL;
}

double post_account_spent(struct account *a, double per_s, int64_t now_us)
{
	a->spent -= (double)(now_us - a->spent_us) * 1e-6 * per_s;
	a->spent = a->spent > 0 ? a->spent : 0;
	a->spent_us = now_us;
	return a->spent;
}

/* Opens the peer's account. Also frees each account that no peer uses and whose `spent` has
 * fallen to 0. Otherwise the accounts of keys that have left would remain forever. */
void post_account_open(struct post *p, struct peer *peer, int64_t now_us)
{
	struct account *own = NULL;
	if (peer->account != NULL)
		return;
	for (struct account **at = &p->accounts; *at != NULL;) {
		struct account *a = *at;
		if (keys_equal(&a->key, &peer->info.key)) {
			own = a;
		} else if (a->peers == 0 &&
			   post_account_spent(a, p->options.charge_per_s, now_us) <= 0) {
			*at = a->next;
			free(a);
			continue;
		}
		at = &a->next;
	}
	if (own == NULL) {
		own = alloc_new(sizeof(*own));
		*own = (struct account){.next = p->accounts, .key = peer->info.key,
			.spent_us = now_us};
		p->accounts = own;
	}
	own->peers++;
	peer->account = own;
}

static void close_account(struct peer *peer)
{
	if (peer->account != NULL)
		peer->account->peers--;
	peer->account = NULL;
}

void post_accounts_fini(struct post *p)
{
	while (p->accounts != NULL) {
		struct account *a = p->accounts;
		p->accounts = a->next;
		free(a);
	}
}

void post_peer_free(struct post *p, struct peer *peer)
{
	close_account(peer);
	for (struct peer **at = &p->acks; *at != NULL; at = &(*at)->next_ack) {
		if (*at == peer) {
			*at = peer->next_ack;
			break;
		}
	}
	if (peer->pump_due)
		post_pump_none(p, peer);
	if (peer->session != 0)
		p->counters.peers_up--;
	p->counters.retained_bytes -= peer->retained_bytes;
	p->counters.peers--;
	p->memory.peers--;
	if (p->giving == peer)
		p->giving = NULL;
	timers_set(&p->peer_timers, &peer->deadline, INT64_MAX);
	free_channels(peer);
	p->slots[peer->id & POST_SLOT_MASK] = NULL;
	free(peer);
}
