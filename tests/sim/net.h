/* net.h - the shared parts of the simulated network: posts in memory that behave as wire/post.h
 * documents.
 *
 * In a session, a peer of the dialing post and a peer of the listening post point to each other by
 * `other`. The sender keeps a message in the channel of its class until the acknowledgement
 * arrives. Messages of one class arrive in the order in which they were sent. The order among
 * classes and among peers is random. When a session ends, its messages in transit are lost. The
 * next session of the same two processes sends them again. If one of the processes is new, these
 * messages are dropped (POST_LOST). Messages that a process sent before it died may still arrive.
 * There are no frames, windows or bandwidths, because other tests cover them.
 *
 *     network.c       delays and failures of the network
 *     net_parcels.c   messages in transit and their acknowledgements
 *     net_sessions.c  connections
 *     net_post.c      the functions of wire/post.h
 */
#ifndef TESTS_SIM_NET_H
#define TESTS_SIM_NET_H

#include "tests/sim/sim.h"
#include "wire/post.h"

enum {
	POSTS = 2 * SIM_PROCESSES,
	PEERS = 64,
	SILENT_US = 5000000, /* default value of silence_us in post_options */
	/* Limit of the time until a message is sent again after a cut or a loss. */
	RESENT_US = 200000
};

/* A message in transit. */
struct parcel {
	struct parcel *next;
	enum post_class class;
	bool lossy, delivered;
	size_t size;
	uint8_t *data;
	/* Times on the world's clock when the message was queued, arrives, and is acknowledged;
	 * INT64_MAX: not known yet. */
	int64_t queued_us, arrives_us, acked_us;
};

struct channel {
	struct parcel *first, **end; /* messages that were sent and not acknowledged */
	int64_t last_us;             /* time at which the newest message arrives */
	/* Time of the channel's newest progress: a message was acknowledged, or a message was
	 * sent while none was under way. */
	int64_t moved_us;
};

struct peer {
	post_peer_id id; /* number of the peer; 0: the entry is unused */
	struct post *post;
	struct peer *other; /* the other end of the session; NULL: none */
	bool dialed, up, known, ephemeral;
	char address[LINK_ADDRESS_SIZE]; /* the address that was dialed */
	struct post_peer_info info;
	/* Random numbers of the two ends' processes. A new session with the same two numbers
	 * continues the old session. */
	uint64_t own_instance, instance;
	uint32_t process; /* the process at the other end, once the peer is up */
	bool deferred[POST_CLASSES];
	struct channel out[POST_CLASSES];
	struct parcel *lossy; /* LOSSY messages in transit to the other end */
	/* Messages in transit to this end from a process that has died, the earliest arrival
	 * first. */
	struct parcel *left;
	int64_t since_us;         /* time at which the session began at this end */
	/* Time of a dialed peer's next attempt to connect; INT64_MAX: never. */
	int64_t connect_us;
	/* Time at which the other end died or was cut off; INT64_MAX: it is neither dead nor cut
	 * off. */
	int64_t silent_us;
	/* Two entries each, for a small and for a large probe: the time at which the answer
	 * arrives, and the time at which the probe was sent; INT64_MAX: no such probe. */
	int64_t pong_us[2], ping_us[2];
};

struct event {
	struct post_message what;
	int64_t at_us;
};

struct post {
	uint32_t process;
	struct post_options options;
	/* Address at which the post listens; "": it does not listen. */
	char bound[LINK_ADDRESS_SIZE];
	struct peer peers[PEERS];
	uint16_t uses;
	struct event events[PEERS];
	uint32_t n_events;
	struct post_transfer transfers[POST_TRANSFERS];
	uint64_t transfers_in, transfers_out;
	uint8_t *lent;
	post_peer_id leaving;
	uint64_t keys_seen, broken;
	struct post_counters counters;
};

struct net {
	struct post *posts[POSTS];
	int64_t delay_us[SIM_PROCESSES][SIM_PROCESSES]; /* usual delay in one direction */
	/* End of the time in which nothing passes. */
	int64_t cut_us[SIM_PROCESSES][SIM_PROCESSES];
	/* End of the time in which only small messages pass. */
	int64_t narrow_us[SIM_PROCESSES][SIM_PROCESSES];
	double loss;
	uint32_t ports;
	bool dies_silently[SIM_PROCESSES];
	bool flips_bit[SIM_PROCESSES]; /* a bit flips in the next suitable tensor that arrives */
};

extern struct net net; /* network of the present run; global like `sim` */

static inline bool net_is_cut(uint32_t a, uint32_t b)
{
	return net.cut_us[a][b] > sim.now_us;
}

static inline bool net_is_narrow(uint32_t from, uint32_t to)
{
	return net.narrow_us[from][to] > sim.now_us;
}

/* Converts a time on the world's clock to the clock of the post's process. */
static inline int64_t net_local(const struct post *p, int64_t world_us)
{
	return world_us == INT64_MAX ? INT64_MAX :
				       world_us + sim.processes[p->process].clock_offset_us;
}

/* Returns the usual delay of a message to the other end. */
static inline int64_t net_delay(const struct peer *from)
{
	return net.delay_us[from->post->process][from->process];
}

/* ---- net_parcels.c ---- */

void net_parcel_free(struct parcel *x); /* NULL is allowed */
void net_list_free(struct parcel **list);
/* Makes a message from a copy of the parts. The message is not sent yet. */
struct parcel *net_parcel_new(const struct post_part *parts, size_t n);
/* Returns the number of bytes to the peer that are not acknowledged, in all classes. */
size_t net_retained_bytes(const struct peer *r);
/* Sets the time at which a message arrives: after the earlier messages of its class, and after
 * the end of a cut. Without a session the message waits. */
void net_dispatch(struct peer *from, struct parcel *x);
/* Loses all messages in transit from this end. Delivered messages stay delivered, but their
 * acknowledgements are lost. */
void net_lose_parcels(struct peer *from);
/* Drops all messages to the peer and returns their number. */
uint64_t net_drop_parcels(struct peer *r);
/* Leaves some messages of a dying process in transit: in each class, either all messages, or those
 * that arrive within a random time. */
void net_leave_parcels(struct peer *from);
/* Returns the message that arrives first at a post, and its peer; NULL: none is in transit. *of
 * points to the list's pointer to the message, by which the caller removes the message from the
 * list. *of is NULL if the sender keeps the message. */
struct parcel *net_first_to_come(struct post *p, struct peer **to, struct parcel ***of);
/* Frees the messages whose acknowledgement has arrived by now. */
void net_take_acks(struct peer *r);

/* ---- net_sessions.c ---- */

/* Ends the peer's session at both ends, if there is one. */
void net_unjoin(struct peer *r);
/* If the peer was up, gives its post a POST_DOWN event. */
void net_go_down(struct peer *r, enum link_reason reason);
/* Schedules the next attempt of a dialed peer to connect, in_us from now. */
void net_connect_soon(struct peer *r, int64_t in_us);
/* Returns the post that listens at an address; NULL: none. */
struct post *net_listener_at(const char *address);
/* Returns the peer with this number; NULL: the post has none. */
struct peer *net_peer_find(const struct post *p, post_peer_id id);
/* Makes a peer; NULL: there is no room. */
struct peer *net_peer_new(struct post *p, bool dialed);
/* Frees the peer and the messages to it. */
void net_peer_free(struct peer *r);
/* Does the peer's work that is due: acknowledgements, silence, attempts to connect. */
void net_tick_peer(struct peer *r);
/* Ends the sessions of peers whose key was removed from the list. */
void net_look_at_keys(struct post *p);

#endif
