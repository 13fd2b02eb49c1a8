/* post_send.c - what leaves a post: chunks, LOSSY messages, acknowledgements. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/post_frame.h"
#include "wire/post_private.h"

#define ACK_FRAMES 32
#define ACK_BYTES  ((size_t)4 << 20)
#define SWEEP_US   INT64_C(5000) /* timeouts of all peers are looked at no more often */

static int send_frame(struct post *p, struct peer *peer, const struct post_frame *f,
	int64_t now_us)
{
	uint8_t *content = link_buffer(POST_FRAME_HEAD + f->chunk.size);
	if (content == NULL)
		return -ENOMEM;
	post_frame_put_head(content, f);
	if (f->chunk.size > 0)
		memcpy(content + POST_FRAME_HEAD, f->chunk.data, f->chunk.size);
	int rc = link_send(peer->line->link, peer->session, content,
		POST_FRAME_HEAD + f->chunk.size, now_us);
	post_watch_write(p, peer->line);
	if (rc == 0) {
		peer->unacked_frames = 0;
		peer->unacked_bytes = 0;
		peer->gap = false;
	}
	return rc;
}

void post_note_deadline(struct post *p, const struct peer *peer, int64_t now_us)
{
	int64_t at = channel_deadline_us(peer->channel);
	if (at < now_us + SWEEP_US)
		at = now_us + SWEEP_US;
	if (channel_deadline_us(peer->channel) != INT64_MAX && at < p->sweep_us)
		p->sweep_us = at;
}

/* Sends what the channel lets go. */
void post_pump(struct post *p, struct peer *peer, int64_t now_us)
{
	struct post_frame f = {.kind = POST_FRAME_CHUNK};
	uint64_t resent = channel_resent(peer->channel);
	if (peer->session == 0)
		return;
	while (channel_next(peer->channel, &f.chunk)) {
		f.ack = channel_expected(peer->channel);
		f.gap = peer->gap;
		if (send_frame(p, peer, &f, now_us) < 0)
			break;
		channel_sent(peer->channel, &f.chunk, now_us);
	}
	p->counters.resent_frames += channel_resent(peer->channel) - resent;
	post_note_deadline(p, peer, now_us);
}

static int send_lossy(struct post *p, struct peer *peer, const struct post_part *parts,
	size_t n, size_t total, int64_t now_us)
{
	struct post_frame f = {.kind = POST_FRAME_LOSSY, .gap = peer->gap,
		.ack = channel_expected(peer->channel), .chunk = {.total = total}};
	if (peer->session == 0) {
		p->counters.lossy_dropped++;
		return -ENOTCONN;
	}
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
	int rc = link_send(peer->line->link, peer->session, content, filled, now_us);
	post_watch_write(p, peer->line);
	if (rc < 0)
		p->counters.lossy_dropped++;
	return rc;
}

static int send_reliable(struct post *p, struct peer *peer, const struct post_part *parts,
	size_t n, int64_t now_us)
{
	struct channel_part small[8], *copy = small;
	if (n > sizeof(small) / sizeof(small[0])) {
		copy = malloc(n * sizeof(*copy));
		if (copy == NULL)
			return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		copy[i] = (struct channel_part){parts[i].data, parts[i].size};
	size_t before = channel_retained(peer->channel);
	int rc = channel_queue(peer->channel, copy, n);
	if (copy != small)
		free(copy);
	if (rc < 0)
		return rc;
	p->counters.retained_bytes += channel_retained(peer->channel) - before;
	post_pump(p, peer, now_us);
	return 0;
}

int post_send(struct post *p, post_peer_id id, const struct post_part *parts, size_t n,
	enum post_flags flags, int64_t now_us)
{
	struct peer *peer = post_peer_find(p, id);
	size_t total = 0;
	if (peer == NULL)
		return -ENOENT;
	for (size_t i = 0; i < n; i++) {
		if (parts[i].size > p->options.message_most_bytes - total)
			return -EMSGSIZE;
		total += parts[i].size;
	}
	int rc = (flags & POST_LOSSY) != 0 ? send_lossy(p, peer, parts, n, total, now_us)
					   : send_reliable(p, peer, parts, n, now_us);
	if (rc < 0)
		return rc;
	peer->info.sent_messages++;
	peer->info.sent_bytes += total;
	p->counters.sent_messages++;
	p->counters.sent_bytes += total;
	return 0;
}

size_t post_room(const struct post *p, post_peer_id id)
{
	const struct peer *peer = post_peer_find(p, id);
	return peer == NULL ? 0 : channel_room(peer->channel);
}

bool post_idle(const struct post *p, post_peer_id id)
{
	if (id != 0) {
		const struct peer *peer = post_peer_find(p, id);
		return peer == NULL || channel_empty(peer->channel);
	}
	for (uint32_t i = 0; i < p->options.peers_most; i++) {
		if (p->slots[i] != NULL && !channel_empty(p->slots[i]->channel))
			return false;
	}
	return true;
}

/* ---- acknowledging ---- */

static void send_ack(struct post *p, struct peer *peer, int64_t now_us)
{
	const struct post_frame f = {.kind = POST_FRAME_ACK, .gap = peer->gap,
		.ack = channel_expected(peer->channel)};
	if (peer->session != 0)
		(void)send_frame(p, peer, &f, now_us);
	peer->unacked_frames = 0;
}

/* Those that something was sent to meanwhile have their acknowledgement already. */
void post_flush_acks(struct post *p, int64_t now_us)
{
	while (p->acks != NULL) {
		struct peer *peer = p->acks;
		p->acks = peer->next_ack;
		peer->ack_due = false;
		peer->next_ack = NULL;
		if (peer->unacked_frames > 0)
			send_ack(p, peer, now_us);
	}
}

void post_owe_ack(struct post *p, struct peer *peer, size_t size, int64_t now_us)
{
	peer->unacked_frames++;
	peer->unacked_bytes += size;
	if (peer->unacked_frames >= ACK_FRAMES || peer->unacked_bytes >= ACK_BYTES) {
		send_ack(p, peer, now_us);
	} else if (!peer->ack_due) {
		peer->ack_due = true;
		peer->next_ack = p->acks;
		p->acks = peer;
	}
}
