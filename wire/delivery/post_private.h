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

/* The part of a key's quota that all processes with this key have used together. */
struct account {
	struct account *next;
	struct keys_public key;
	uint32_t peers; /* number of peers that share the account */
	/* Number of frames counted against the quota. The number falls with time, by the quota's
	 * frames per second. */
	double spent;
	int64_t spent_us;      /* time at which `spent` was last updated */
};

/* The pings that were sent last. Small pings may be sent ten times as often as large pings, so each
 * size has a ring of its own. In a common ring, small pings would displace a large ping within 1.6
 * s. On a long link the answer to the large ping would then count as unsolicited. */
struct ping_ring {
	int64_t left_us[POST_PINGS]; /* time at which each ping left; 0: the ping was answered */
	unsigned n_sent;
};

struct peer {
	post_peer_id id;
	struct line *line;
	uint32_t session;      /* number of the link's session with the peer; 0: none */
	bool known;            /* there was a session with this peer before */
	bool ephemeral;        /* the post removes the peer after the peer's POST_DOWN event */
	bool ack_due;
	bool deferred[POST_CLASSES];
	/* frames and bytes that this process has received and not yet acknowledged */
	struct unacked {
		unsigned frames;
		size_t bytes;
	} unacked[POST_CLASSES];
	size_t lossy_most;       /* limit of the length of a LOSSY message, bytes */
	uint64_t own_instance;   /* instance number by which this peer knows this process */
	/* Quota account of the peer's key. NULL: this process dialed the peer, or has had no
	 * session with it. */
	struct account *account;
	struct flow flow;
	struct ping_ring small_pings, large_pings;
	/* For each class, the time of the last of two events: an acknowledgement for the class
	 * arrived, or a message was queued while no other message of the class waited. */
	int64_t moved_us[POST_CLASSES];
	/* Time at which the post last sent a ping of its own, to measure the link's queue. */
	int64_t probed_us;
	int64_t session_us;    /* time at which the session began */
	/* For each class, the time at which a message was first acknowledged on the present
	 * connections. If this time is not later than post_peer_renewed_us, it belongs to earlier
	 * connections. */
	int64_t carried_us[POST_CLASSES];
	struct post *post;
	struct channel *channels[POST_CLASSES];
	size_t assembling_bytes, retained_bytes;
	struct peer *next_ack; /* the next peer with ack_due */
	bool pump_due;          /* chunks for this peer wait for the next turn */
	struct peer *next_pump; /* the next peer with pump_due */
	/* Timer for the next check of the deadlines of the peer's channels. */
	struct timer deadline;
	struct post_peer_info info;
};

/* A link and its descriptors in the poll set. */
struct line {
	struct link *link;
	struct peer *peer;  /* the peer that a dialing link dials; NULL for a listening link */
	/* The line is in the ready list, because its link may have an event to receive. */
	bool ready;
	struct line *next_ready;
	/* The link's frames are not polled, because the threads already have enough frames to
	 * open. */
	bool reads_paused;
	struct timer due; /* timer for the next link_tick of this link */
	bool polls_read[LINK_TRUNKS], polls_write[LINK_TRUNKS];
	uint32_t index;
	/* number of connections that the post has added to the link (connections_more) */
	unsigned added;
};

/* The trunks of a link (link.h). An activation uses the quick trunk unless it fills the link.
 * Sums, weights, and activations that fill the link use the bulk trunk. */
enum { POST_TRUNK_CONTROL, POST_TRUNK_QUICK, POST_TRUNK_BULK = LINK_TRUNK_BULK };

#define POST_QUEUE 4

struct post {
	struct post_options options;
	int epoll;
	/* Threads that seal and open frames; NULL: the caller's thread does this itself. */
	struct sealers *sealers;
	struct line *lines[POST_LINKS_MOST];
	uint32_t n_lines;
	struct line *first_ready,
		/* List of the ready lines, the line that has waited longest first. */
		*last_ready;
	/* The timers `due` of all lines, and the timers `deadline` of all peers. */
	struct timers line_timers, peer_timers;
	/* The keys_list_version of the admitted list that all lines adopted last. */
	uint64_t admitted_version;
	struct peer **slots; /* peers_most slots for peers; NULL: the slot is unused */
	uint16_t *uses;      /* number of times that each of the peers_most slots was used */
	struct peer *acks;   /* list of the peers with ack_due */
	bool acks_wait;      /* the trunks of all peers with ack_due had no room at the last try */
	/* List of the peers with pump_due, the peer that has waited longest first. */
	struct peer *first_pump, *last_pump;
	/* Bytes of chunks that the post may still send in this turn of the loop. */
	size_t turn_bytes;
	struct account *accounts;
	struct peer *giving; /* the peer whose complete messages are being delivered */
	struct post_message queue[POST_QUEUE]; /* events that post_receive gives before frames */
	unsigned n_queue;
	/* The message that was delivered last, unless the caller keeps it. */
	struct post_message lent;
	post_peer_id leaving; /* the peer to remove at the next post_receive */
	struct channel_memory memory;
	struct post_transfer *transfers; /* ring of POST_TRANSFERS finished transfers */
	/* Number of transfers that the caller has taken, and number of transfers that the post
	 * has recorded. */
	uint64_t transfers_taken, transfers_in;
	unsigned connections_added; /* number of connections that count against connections_more */
	struct post_counters counters;
};

/* ---- post_peer.c ---- */
/* Returns the peer with this number; NULL: there is no such peer. */
struct peer *post_peer_find(const struct post *p, post_peer_id id);
/* Makes a peer and gives it a slot in the table. Returns NULL if no slot is free. */
struct peer *post_peer_new(struct post *p, struct line *line, bool dialed);
/* Frees the peer, its channels and their messages. */
void post_peer_free(struct post *p, struct peer *peer);
/* Finds the peer that has connected to this process with this key. instance: the instance number
 * of the peer's process; 0: any process. Returns NULL if there is no such peer. */
struct peer *post_peer_of_key(const struct post *p, const struct keys_public *key,
	uint64_t instance);

/* Gives the peer the account of its key. */
void post_account_open(struct post *p, struct peer *peer, int64_t now_us);
void post_accounts_fini(struct post *p);
/* Lowers the count `spent` by per_s for each second since the last call, and returns the new
 * count. */
double post_account_spent(struct account *a, double per_s, int64_t now_us);

/* Starts all channels of the peer with chunk number 0, for a session with a new process. */
void post_peer_start(struct peer *peer, size_t chunk_most, unsigned connections);
/* These functions resume or pause the peer's channels, or drop their messages. post_peer_drop
 * returns the number of dropped messages. */
void post_peer_resume(struct peer *peer);
void post_peer_pause(struct peer *peer);
uint64_t post_peer_drop(struct peer *peer);
/* Returns the later of two times: the time at which the present session began, and the time at
 * which a connection to the peer was last dialed.
 */
int64_t post_peer_renewed_us(const struct peer *peer);
/* Returns true if every message to the peer was acknowledged. */
bool post_peer_empty(const struct peer *peer);

/* ---- post_send.c ---- */
/* Returns the open trunk for a message of this class and size. If the trunk of the class is not
 * open, returns the control trunk. Activations never wait for a trunk that still connects. */
unsigned post_trunk_of(const struct peer *peer, enum post_class class, size_t bytes);
/* Limit of the bytes of chunks that the post sends in one turn. The post may exceed this limit by
 * one chunk. A turn consists of a call of post_tick or post_receive and the calls of post_send
 * that follow. Sealing one MiB takes about a millisecond. */
#define POST_TURN_BYTES ((size_t)1 << 20)
/* Sends the peer as many chunks as this turn allows. If more chunks are ready, puts the peer on the
 * list for the next turn. */
void post_pump(struct post *p, struct peer *peer, int64_t now_us);
/* Sends the chunks of the peers that wait for a turn, until this turn's bytes are used up. */
void post_pump_waiting(struct post *p, int64_t now_us);
/* Removes the peer from the list of peers that wait for the next turn. */
void post_pump_none(struct post *p, const struct peer *peer);
/* Sets the peer's timer to the earliest deadline of its channels, unless the timer is already
 * earlier. */
void post_note_deadline(struct post *p, struct peer *peer, int64_t now_us);
/* Acknowledges a chunk, either at once or at the next post_flush_acks. */
void post_owe_ack(struct post *p, struct peer *peer, enum post_class class, size_t size,
	int64_t now_us);
void post_flush_acks(struct post *p, int64_t now_us);
/* Answers a ping. A pong that cannot be sent now is dropped. */
void post_answer_ping(struct post *p, struct peer *peer, uint64_t number, int64_t now_us);

/* ---- post_receive.c ---- */
/* Handles an event of a link. Returns true if *out is a message to deliver now. */
bool post_on_event(struct post *p, struct line *line, struct link_event *e, int64_t now_us,
	struct post_message *out);
/* Gives the next complete message of the peer p->giving. Returns true if there is one. */
bool post_next_given(struct post *p, struct post_message *out);
void post_count_received(struct post *p, const struct post_message *m);

/* ---- post.c ---- */
/* Adapts the poll set and the timer to the new state of a link. Blocked trunks are polled for room,
 * and the timer is set to the next link_tick. */
void post_line_changed(struct post *p, struct line *line);
/* Opens a trunk, if it is not open yet, and adds it to the poll set. Returns true if the trunk is
 * open. */
bool post_open_trunk(struct post *p, struct line *line, unsigned trunk);

#endif
