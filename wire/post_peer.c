/* post_peer.c - a post's table of peers. See post_private.h. */
#include <stdlib.h>
#include <string.h>

#include "wire/post_private.h"

#define MIB ((size_t)1 << 20)
/* Towards a listener nanomsg pushes back; towards a dialer what does not fit the socket's buffer
 * is lost, so chunks and window stay below the least one a system gives. */
#define DIALED_WINDOW      (16 * MIB)
#define DIALED_WINDOW_MOST (64 * MIB)
#define TAKEN_WINDOW       ((size_t)131072)
#define TAKEN_WINDOW_MOST  MIB

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

struct peer *post_peer_new(struct post *p, struct line *line, bool dialed)
{
	uint32_t slot = 0;
	while (slot < p->options.peers_most && p->slots[slot] != NULL)
		slot++;
	if (slot == p->options.peers_most)
		return NULL;
	struct peer *peer = calloc(1, sizeof(*peer));
	if (peer == NULL)
		return NULL;
	const struct channel_options options = {
		.message_most_bytes = p->options.message_most_bytes,
		.retained_most_bytes = p->options.retained_most_bytes,
		.window_bytes = dialed ? DIALED_WINDOW : TAKEN_WINDOW,
		.window_most_bytes = dialed ? DIALED_WINDOW_MOST : TAKEN_WINDOW_MOST,
		.assembling_bytes = &p->assembling_bytes,
		.assembling_most_bytes = p->options.assembling_most_bytes,
		.alloc = allocate_message,
		.release = release_message,
	};
	if (channel_new(&peer->channel, &options) < 0) {
		free(peer);
		return NULL;
	}
	p->uses[slot]++;
	if (p->uses[slot] == 0)
		p->uses[slot] = 1; /* so that no number is 0 */
	peer->id = (uint32_t)p->uses[slot] << 16 | slot;
	peer->line = line;
	peer->info.dialed = dialed;
	p->slots[slot] = peer;
	p->counters.peers++;
	return peer;
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

void post_peer_free(struct post *p, struct peer *peer)
{
	for (struct peer **at = &p->acks; *at != NULL; at = &(*at)->next_ack) {
		if (*at == peer) {
			*at = peer->next_ack;
			break;
		}
	}
	if (peer->session != 0)
		p->counters.peers_up--;
	p->counters.retained_bytes -= channel_retained(peer->channel);
	p->counters.peers--;
	channel_free(peer->channel);
	p->slots[peer->id & POST_SLOT_MASK] = NULL;
	free(peer);
}
