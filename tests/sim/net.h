/* net.h - posts in memory, with the promises of wire/post.h, in place of wire/post*.c: what their files share.
 *
 * A session joins two peers, the dialing post's and the listening one's, by `other`. What is sent is kept in the
 * sender's channel of its class until it was delivered and that is known; it arrives in the order sent within
 * its class and whenever it likes among classes and peers. A session that ends loses what is on its way; the next
 * one of the same two processes sends it again, one of another process drops it (POST_LOST). Who dies leaves behind
 * what had left it by then. There are no frames, windows or bandwidths: they have tests of their own.
 *
 *     network.c       what befalls the network
 *     net_parcels.c   what is sent, on its way, and known to have come
 *     net_sessions.c  who is joined to whom
 *     net_post.c      wire/post.h
 */
#ifndef TESTS_SIM_NET_H
#define TESTS_SIM_NET_H

#include "tests/sim/sim.h"
#include "wire/post.h"

enum {
	POSTS = 2 * SIM_PROCESSES, PEERS = 64,
	SILENT_US = 5000000, /* as post_options has it */
	RESENT_US = 200000   /* after a cut, or a lost packet */
};

struct parcel {
	struct parcel *next;
	enum post_class class;
	bool lossy, delivered;
	size_t size;
	uint8_t *data;
	int64_t queued_us, arrives_us, acked_us; /* world; INT64_MAX not yet known */
};

struct channel {
	struct parcel *first, **end; /* sent, and not known to have come */
	int64_t last_us;             /* the last one's arrival */
};

struct peer {
	post_peer_id id; /* 0: free */
	struct post *post;
	struct peer *other; /* whom the session joins; NULL there is nobody at its other end */
	bool dialed, up, known, ephemeral;
	char address[LINK_ADDRESS_SIZE]; /* dialed */
	struct post_peer_info info;
	uint64_t own_instance, instance; /* the records' numbers here and there: the same two go on where they were */
	uint32_t process;                /* at the other end, once up */
	bool deferred[POST_CLASSES];
	struct channel out[POST_CLASSES];
	struct parcel *lossy;    /* under way to the other end */
	struct parcel *left;     /* of one that died, under way to here, in order of arrival */
	int64_t since_us;        /* the session's beginning here */
	int64_t connect_us;      /* dialed: the next try; INT64_MAX none */
	int64_t silent_us;       /* nothing has come since the other end died or was cut off; INT64_MAX it has */
	int64_t pong_us, ping_us; /* a probe is answered, and when it left; INT64_MAX none */
};

struct event {
	struct post_message what;
	int64_t at_us;
};

struct post {
	uint32_t process;
	struct post_options options;
	char bound[LINK_ADDRESS_SIZE]; /* "" does not listen */
	struct peer peers[PEERS];
	uint16_t uses;
	struct event events[PEERS];
	uint32_t n_events;
	struct post_transfer transfers[POST_TRANSFERS];
	uint64_t transfers_in, transfers_told;
	uint8_t *lent;
	post_peer_id leaving;
	uint64_t keys_seen, broken;
	struct post_counters counters;
};

struct net {
	struct post *posts[POSTS];
	int64_t way_us[SIM_PROCESSES][SIM_PROCESSES], cut_us[SIM_PROCESSES][SIM_PROCESSES];
	double loss;
	uint32_t ports;
	bool silently[SIM_PROCESSES]; /* it dies so */
	bool flip[SIM_PROCESSES]; /* a bit, in the next tensor that suits */
};

extern struct net net; /* of the run under way, as sim is */

static inline bool net_is_cut(uint32_t a, uint32_t b)
{
	return net.cut_us[a][b] > sim.now_us;
}

/* By its own clock. */
static inline int64_t net_local(const struct post *p, int64_t world_us)
{
	return world_us == INT64_MAX ? INT64_MAX : world_us + sim.processes[p->process].clock_offset_us;
}

/* What a message usually takes to the other end. */
static inline int64_t net_way(const struct peer *from)
{
	return net.way_us[from->post->process][from->process];
}

/* ---- net_parcels.c ---- */

/* NULL is allowed. */
void net_parcel_free(struct parcel *x);
void net_list_free(struct parcel **list);
/* A copy of the parts, which nobody has sent yet; NULL: no memory. */
struct parcel *net_parcel_new(const struct post_part *parts, size_t n);
/* What the peer was sent and is not known to have, in all classes. */
size_t net_retained_bytes(const struct peer *r);
/* On its way, if there is one: after what left before in its class, and after what keeps it. */
void net_dispatch(struct peer *from, struct parcel *x);
/* What was under way from here is not; what has come is known there, though not yet here. */
void net_lose_parcels(struct peer *from);
/* What was sent to the peer will never be; how many. */
uint64_t net_drop_parcels(struct peer *r);
/* What had left of a dying process still comes: of each class up to some moment. */
void net_leave_parcels(struct peer *from);
/* Of all that is under way to a post what comes first: whose it is (*of: a list it is taken from, or NULL). */
struct parcel *net_first_to_come(struct post *p, struct peer **to, struct parcel ***of);
/* What is known to have come is kept no more. */
void net_take_acks(struct peer *r);

/* ---- net_sessions.c ---- */

/* The session ends at both ends, if there is one. */
void net_unjoin(struct peer *r);
/* Its post is told that the peer is down, if it was up. */
void net_go_down(struct peer *r, enum link_reason reason);
/* A dialed one tries again so long from now. */
void net_connect_soon(struct peer *r, int64_t in_us);
/* NULL: nobody listens there. */
struct post *net_listener_at(const char *address);
/* NULL: the post has no such peer. */
struct peer *net_peer_find(const struct post *p, post_peer_id id);
/* NULL: there is no room. */
struct peer *net_peer_new(struct post *p, bool dialed);
/* With all that it was sent. */
void net_peer_free(struct peer *r);
/* What is due: words of what came, silence, a try to connect. */
void net_tick_peer(struct peer *r);
/* Whose key is admitted no more is cut off. */
void net_look_at_keys(struct post *p);

#endif
