/* post_private.h - the inside of a post, for its own files: post.c (the loop's calls, links),
 * post_peer.c (the table of peers), post_send.c (chunks and acknowledgements out) and
 * post_receive.c (what links report).
 */
#ifndef WIRE_POST_PRIVATE_H
#define WIRE_POST_PRIVATE_H

#include "wire/delivery/channel.h"
#include "wire/post.h"

#define POST_SLOT_MASK  0xffffu
#define POST_LINKS_MOST 500 /* nanomsg has 512 sockets a process */

#define POST_PINGS 16

/* What a key has cost, whoever of its processes did it, and for as long as that is not forgotten. */
struct account {
	struct account *next;
	struct keys_public key;
	uint32_t peers;        /* that have it */
	double spent;          /* of its limit, forgotten as time goes */
	int64_t spent_us;
};

struct peer {
	post_peer_id id;
	struct line *line;
	uint32_t session;      /* 0: down */
	bool known;            /* was up once */
	bool ephemeral;        /* forgotten after its POST_DOWN */
	bool ack_due;
	bool deferred[POST_CLASSES];
	struct {
		unsigned frames;
		size_t bytes;
	} unacked[POST_CLASSES];
	size_t lossy_most;     /* bytes a LOSSY message may have */
	uint64_t own_instance;
	struct account *account; /* of one that connected to us, once it was up */
	struct flow flow;
	int64_t pings[POST_PINGS]; /* times of the last ones; 0 answered */
	unsigned next_ping;
	int64_t probed_us;     /* the last one of the post's own */
	struct post *post;
	struct channel *channels[POST_CLASSES];
	size_t assembling_bytes, retained_bytes;
	struct peer *next_ack; /* list of those with ack_due */
	struct post_peer_info info;
};

/* A link and its place in the poll set. */
struct line {
	struct link *link;
	struct peer *peer;  /* of a dialing link; NULL for a listening one */
	bool ready;         /* may have something to receive */
	bool polls_read[LINK_LANES], polls_write[LINK_LANES];
	uint32_t index;
	unsigned added;     /* connections, of connections_more */
};

/* What is quick has connections of its own, and so has bulk. */
enum { POST_LANE_CONTROL, POST_LANE_QUICK, POST_LANE_BULK = LINK_LANE_BULK };

#define POST_QUEUE 4

struct post {
	struct post_options options;
	int epoll;
	struct line *lines[POST_LINKS_MOST];
	uint32_t n_lines, turn;
	struct peer **slots; /* (peers_most) */
	uint16_t *uses;      /* (peers_most) */
	struct peer *acks;
	struct account *accounts;
	struct peer *giving; /* its channels may have more messages that are complete */
	struct post_message queue[POST_QUEUE];
	unsigned n_queue;
	void *lent;          /* what the last message's data lies in */
	post_peer_id leaving; /* forgotten at the next post_receive */
	int64_t sweep_us;    /* when timeouts are next looked at */
	struct channel_memory memory;
	struct post_transfer *transfers; /* (POST_TRANSFERS) a ring */
	uint64_t transfers_told, transfers_in;
	unsigned connections_added; /* of connections_more */
	struct post_counters counters;
};

/* ---- post_peer.c ---- */
struct peer *post_peer_find(const struct post *p, post_peer_id id); /* NULL: no such */
struct peer *post_peer_new(struct post *p, struct line *line, bool dialed); /* NULL: no room */
/* With its channels and what they hold. */
void post_peer_free(struct post *p, struct peer *peer);
/* One that connected to us, of that key and process (0: any). NULL: none. */
struct peer *post_peer_of_key(const struct post *p, const struct keys_public *key,
	uint64_t instance);

/* Opens the peer's account, or joins those of its key. -ENOMEM. */
int post_account_open(struct post *p, struct peer *peer, int64_t now_us);
void post_accounts_fini(struct post *p);
/* What is left of what it spent. */
double post_account_spent(struct account *a, double per_s, int64_t now_us);

/* Gives its session's channels a beginning: with another process, or the same. */
void post_peer_start(struct peer *peer, size_t chunk_most, unsigned connections);
void post_peer_resume(struct peer *peer);
void post_peer_pause(struct peer *peer);
uint64_t post_peer_drop(struct peer *peer); /* messages */
/* Every channel of it is. */
bool post_peer_empty(const struct peer *peer);

/* ---- post_send.c ---- */
/* By which lane a class goes. */
unsigned post_lane_of(const struct peer *peer, enum post_class class);
/* Sends what the channels let go. */
void post_pump(struct post *p, struct peer *peer, int64_t now_us);
void post_note_deadline(struct post *p, const struct peer *peer, int64_t now_us);
/* A chunk arrived: acknowledge it, now or with the next post_flush_acks. */
void post_owe_ack(struct post *p, struct peer *peer, enum post_class class, size_t size,
	int64_t now_us);
void post_flush_acks(struct post *p, int64_t now_us);
/* Answers a probe, at once or never. */
void post_answer_ping(struct post *p, struct peer *peer, uint64_t number, int64_t now_us);

/* ---- post_receive.c ---- */
/* What a link's event means. True when *out is to be told at once. */
bool post_on_event(struct post *p, struct line *line, struct link_event *e, int64_t now_us,
	struct post_message *out);
bool post_next_given(struct post *p, struct post_message *out);
void post_count_received(struct post *p, const struct post_message *m);

/* ---- post.c ---- */
/* Wakes the poll when a full buffer has room again. */
void post_watch_write(struct post *p, struct line *line);
/* Opens a lane and polls it. False: it has it not. */
bool post_open_lane(struct post *p, struct line *line, unsigned lane);

#endif
