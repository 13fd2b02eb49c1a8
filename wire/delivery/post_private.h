/* post_private.h - the private parts of a post, for its own files: post.c (the calls of the main
 * loop, links), post_peer.c (the table of peers), post_send.c (chunks and acknowledgements) and
 * post_receive.c (the links' events).
 */
#ifndef WIRE_POST_PRIVATE_H
#define WIRE_POST_PRIVATE_H

#include "wire/delivery/channel.h"
#include "wire/delivery/timers.h"
#include "wire/post.h"

#define POST_SLOT_MASK  0xffffu
#define POST_LINKS_MOST 500 /* nanomsg has at most 512 sockets in a process */

#define POST_PINGS 16

/* The quota that one key has used, by all of its processes together. */
struct account {
	struct account *next;
	struct keys_public key;
	uint32_t peers; /* number of peers that share the account */
	/* Number of frames counted against the quota; it falls with time at the quota's rate. */
	double spent;
	int64_t spent_us;      /* when `spent` was last updated */
};

/* The last pings that were sent. Small pings may be sent ten times as often as large ones, so they
 * have a ring of their own. Otherwise they would displace a large ping within 1.6 s, and on a long
 * link its answer would count as unsolicited. */
struct ping_ring {
	int64_t left_us[POST_PINGS]; /* when each ping left; 0: it was answered */
	unsigned n_sent;
};

struct peer {
	post_peer_id id;
	struct line *line;
	uint32_t session;      /* number of the session; 0: none */
	bool known;            /* there was a session with this peer before */
	bool ephemeral;        /* the peer is removed after its POST_DOWN */
	bool ack_due;
	bool deferred[POST_CLASSES];
	struct unacked {
		unsigned frames;
		size_t bytes;
	} unacked[POST_CLASSES]; /* frames and bytes received and not yet acknowledged */
	size_t lossy_most;       /* length of the longest LOSSY message, bytes */
	uint64_t own_instance;   /* number by which this peer knows this process */
	/* Account of the key of a peer that connected; NULL before the first session. */
	struct account *account;
	struct flow flow;
	struct ping_ring small_pings, large_pings;
	/* For each class: time of the last acknowledgement, or when a message was first queued
	 * after all were acknowledged */
	int64_t moved_us[POST_CLASSES];
	int64_t probed_us;     /* when the post itself last sent a ping */
	int64_t session_us;    /* when the session began */
	/* For each class: when a message was first acknowledged on the present connections. A time
	 * up to post_peer_renewed_us is that of earlier connections. */
	int64_t carried_us[POST_CLASSES];
	struct post *post;
	struct channel *channels[POST_CLASSES];
	size_t assembling_bytes, retained_bytes;
	struct peer *next_ack; /* the next peer with ack_due */
	bool pump_due;          /* more chunks may leave in the next turn */
	struct peer *next_pump; /* the next peer with pump_due */
	struct timer deadline; /* when to check the deadlines of the peer's channels */
	struct post_peer_info info;
};

/* A link and its place in the poll set. */
struct line {
	struct link *link;
	struct peer *peer;  /* the peer that a dialing link dials; NULL for a listening link */
	/* The line is in the ready list, because its link may have an event to receive. */
	bool ready;
	struct line *next_ready;
	/* The poll set ignores the link's frames, because enough are being opened. */
	bool reads_paused;
	struct timer due; /* when to call link_tick for this link */
	bool polls_read[LINK_TRUNKS], polls_write[LINK_TRUNKS];
	uint32_t index;
	unsigned added; /* number of the link's connections that count against connections_more */
};

/* The trunks of a link. Activations use the quick trunk, sums and weights the bulk trunk.
 * Activations that fill the link use the bulk trunk, too. */
enum { POST_TRUNK_CONTROL, POST_TRUNK_QUICK, POST_TRUNK_BULK = LINK_TRUNK_BULK };

#define POST_QUEUE 4

struct post {
	struct post_options options;
	int epoll;
	/* Threads that seal frames; NULL: the caller seals and opens frames itself. */
	struct sealers *sealers;
	struct line *lines[POST_LINKS_MOST];
	uint32_t n_lines;
	struct line *first_ready,
		*last_ready; /* list of the ready lines, the longest waiting first */
	struct timers line_timers, peer_timers; /* `due` of the lines, `deadline` of the peers */
	uint64_t admitted_version; /* keys_list_version when all lines last followed the list */
	struct peer **slots; /* (peers_most) the peers; NULL: the slot is free */
	uint16_t *uses;      /* (peers_most) how often each slot was used */
	struct peer *acks;   /* list of the peers with ack_due */
	bool acks_wait;      /* the trunks of all peers with ack_due had no room at the last try */
	/* List of the peers with pump_due, the longest waiting first. */
	struct peer *first_pump, *last_pump;
	size_t turn_bytes;   /* bytes of chunks that may still be sent in this turn */
	struct account *accounts;
	struct peer *giving; /* the peer whose complete messages are being delivered */
	struct post_message queue[POST_QUEUE]; /* events that are delivered before other messages */
	unsigned n_queue;
	struct post_message lent; /* the last delivered message, unless it was kept */
	post_peer_id leaving; /* the peer to remove at the next post_receive */
	struct channel_memory memory;
	struct post_transfer *transfers; /* (POST_TRANSFERS) finished transfers, in a ring */
	/* Number of transfers that the caller has taken; number of recorded transfers. */
	uint64_t transfers_taken, transfers_in;
	unsigned connections_added; /* number of connections that count against connections_more */
	struct post_counters counters;
};

/* ---- post_peer.c ---- */
/* NULL: there is no such peer. */
struct peer *post_peer_find(const struct post *p, post_peer_id id);
/* Returns NULL if no slot is free. */
struct peer *post_peer_new(struct post *p, struct line *line, bool dialed);
/* Frees the peer, its channels and their messages. */
void post_peer_free(struct post *p, struct peer *peer);
/* Finds a peer that connected to this process, by its key and the number of its process (0: any).
 * NULL: none. */
struct peer *post_peer_of_key(const struct post *p, const struct keys_public *key,
	uint64_t instance);

/* Gives the peer the account of its key. */
void post_account_open(struct post *p, struct peer *peer, int64_t now_us);
void post_accounts_fini(struct post *p);
/* Updates and returns the frames counted against the quota of per_s frames a second. */
double post_account_spent(struct account *a, double per_s, int64_t now_us);

/* Starts all channels of the peer, for a session with a new process. */
void post_peer_start(struct peer *peer, size_t chunk_most, unsigned connections);
/* Resume, pause and drop all channels of the peer. post_peer_drop returns the number of dropped
 * messages. */
void post_peer_resume(struct peer *peer);
void post_peer_pause(struct peer *peer);
uint64_t post_peer_drop(struct peer *peer);
/* Returns when the present session began, or when a connection to the peer was last dialed,
 * whichever is later.
 */
int64_t post_peer_renewed_us(const struct peer *peer);
/* Returns true if every message to the peer was acknowledged. */
bool post_peer_empty(const struct peer *peer);

/* ---- post_send.c ---- */
/* Returns the open trunk by which a message of this class and size is sent: the control trunk if
 * the trunk of its class is not open. An activation never waits for a trunk that still connects. */
unsigned post_trunk_of(const struct peer *peer, enum post_class class, size_t bytes);
/* Bytes of chunks, beyond one chunk, that are sent in a turn: a call of post_tick or post_receive,
 * and the calls of post_send after it. Sealing one MiB takes about a millisecond. */
#define POST_TURN_BYTES ((size_t)1 << 20)
/* Sends the chunks that may be sent now and in this turn. If there are more, the peer waits for the
 * next turn. */
void post_pump(struct post *p, struct peer *peer, int64_t now_us);
/* Pumps the peers that wait for the next turn, while the turn has bytes left. */
void post_pump_waiting(struct post *p, int64_t now_us);
/* Removes the peer from those that wait. */
void post_pump_none(struct post *p, const struct peer *peer);
/* Makes the peer's timer early enough for the deadlines of its channels. */
void post_note_deadline(struct post *p, struct peer *peer, int64_t now_us);
/* Records that a chunk is to be acknowledged, at once or at the next post_flush_acks. */
void post_owe_ack(struct post *p, struct peer *peer, enum post_class class, size_t size,
	int64_t now_us);
void post_flush_acks(struct post *p, int64_t now_us);
/* Answers a ping, unless it cannot be sent now. */
void post_answer_ping(struct post *p, struct peer *peer, uint64_t number, int64_t now_us);

/* ---- post_receive.c ---- */
/* Handles an event of a link. Returns true if *out is a message to deliver now. */
bool post_on_event(struct post *p, struct line *line, struct link_event *e, int64_t now_us,
	struct post_message *out);
/* Gives the next complete message of the peer p->giving. Returns true if there is one. */
bool post_next_given(struct post *p, struct post_message *out);
void post_count_received(struct post *p, const struct post_message *m);

/* ---- post.c ---- */
/* Follows a change of the link's state: polls for writing exactly those trunks that are blocked,
 * and sets the time of the next link_tick. */
void post_line_changed(struct post *p, struct line *line);
/* Opens a trunk and polls it. Returns true if it is open. */
bool post_open_trunk(struct post *p, struct line *line, unsigned trunk);

#endif
