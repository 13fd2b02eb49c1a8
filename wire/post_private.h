/* post_private.h - the inside of a post, for its own files: post.c (the loop's calls, links),
 * post_peer.c (the table of peers), post_send.c (chunks and acknowledgements out) and
 * post_receive.c (what links report).
 */
#ifndef WIRE_POST_PRIVATE_H
#define WIRE_POST_PRIVATE_H

#include "wire/channel.h"
#include "wire/post.h"

#define POST_SLOT_MASK  0xffffu
#define POST_LINKS_MOST 500 /* nanomsg has 512 sockets a process */

struct peer {
	post_peer_id id;
	struct line *line;
	uint32_t session;      /* 0: down */
	bool known;            /* was up once */
	bool ephemeral;        /* forgotten after its POST_DOWN */
	bool ack_due, gap;
	unsigned unacked_frames;
	size_t unacked_bytes;
	size_t lossy_most;     /* bytes a LOSSY message may have */
	uint64_t own_instance;
	double spent;          /* of its limit, forgotten as time goes */
	int64_t spent_us;
	struct channel *channel;
	struct peer *next_ack; /* list of those with ack_due */
	struct post_peer_info info;
};

/* A link and its place in the poll set. */
struct line {
	struct link *link;
	struct peer *peer;  /* of a dialing link; NULL for a listening one */
	bool ready;         /* may have something to receive */
	bool polls_write;
	uint32_t index;
};

#define POST_QUEUE 4

struct post {
	struct post_options options;
	int epoll;
	struct line *lines[POST_LINKS_MOST];
	uint32_t n_lines, turn;
	struct peer **slots; /* (peers_most) */
	uint16_t *uses;      /* (peers_most) */
	struct peer *acks;
	struct post_message queue[POST_QUEUE];
	unsigned n_queue;
	void *lent;          /* what the last message's data lies in */
	post_peer_id leaving; /* forgotten at the next post_receive */
	int64_t sweep_us;    /* when timeouts are next looked at */
	size_t assembling_bytes;
	struct post_counters counters;
};

/* ---- post_peer.c ---- */
struct peer *post_peer_find(const struct post *p, post_peer_id id); /* NULL: no such */
struct peer *post_peer_new(struct post *p, struct line *line, bool dialed); /* NULL: no room */
void post_peer_free(struct post *p, struct peer *peer);
/* One that connected to us, of that key and process (0: any). NULL: none. */
struct peer *post_peer_of_key(const struct post *p, const struct keys_public *key,
	uint64_t instance);

/* ---- post_send.c ---- */
/* Sends what the channel lets go. */
void post_pump(struct post *p, struct peer *peer, int64_t now_us);
void post_note_deadline(struct post *p, const struct peer *peer, int64_t now_us);
/* A chunk arrived: acknowledge it, now or with the next post_flush_acks. */
void post_owe_ack(struct post *p, struct peer *peer, size_t size, int64_t now_us);
void post_flush_acks(struct post *p, int64_t now_us);

/* ---- post_receive.c ---- */
/* What a link's event means. True when *out is to be told at once. */
bool post_on_event(struct post *p, struct line *line, struct link_event *e, int64_t now_us,
	struct post_message *out);

/* ---- post.c ---- */
/* Wakes the poll when a full buffer has room again. */
void post_watch_write(struct post *p, struct line *line);

#endif
