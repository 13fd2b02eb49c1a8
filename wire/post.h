/* post.h - encrypted messages between processes, on request delivered exactly once.
 *
 * A process has one post for all its connections. The post listens at addresses, dials others, and
 * has one file descriptor to poll. Each process at the other end is a peer. A peer is a number that
 * stays valid until post_forget and is never used again. A post is used by one thread, never
 * blocks, and makes no callbacks:
 *
 *     poll(post_fd(post), until post_deadline_us(post));
 *     post_tick(post, now);
 *     for (turn = 0; turn < 64 && post_receive(post, now, &m) == 0; turn++)
 *         handle(&m);
 *
 * RELIABLE messages are copied, cut into chunks, and kept until the peer's process has them. The
 * peer receives each message once, whole, and in the order sent within its class. This holds across
 * lost connections and new sessions, as long as both processes live. If the peer's process is
 * replaced by a new one, the messages kept for the old one are dropped and counted in a POST_LOST
 * event. The layer above then decides if they are still needed.
 *
 * LOSSY messages (heartbeats, state streams) are sent at once or dropped, arrive at most once, and
 * overtake other messages. They fit in one chunk. If there are several connections they use them in
 * turn, so that one lost packet does not delay the next message; they may arrive out of order.
 *
 * The end that dials matters for bulk only. From the dialing to the listening end nanomsg pushes
 * back, and chunks are sent at the full rate. In the other direction nanomsg drops frames that do
 * not fit the socket's buffer, so the post keeps a small window there. Therefore the sender of
 * tensors dials.
 *
 * With the option `connections`, messages to another machine are spread over several connections,
 * so that long links are filled. Messages that can wait have no more under way than the link
 * carries in a round trip (flow.h), so that urgent messages find no queue. Urgent messages have
 * connections of their own.
 *
 * link.h and docs/security.md describe sessions, keys and the protection they give.
 */
#ifndef WIRE_POST_H
#define WIRE_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/keys.h"
#include "wire/pieces.h"
#include "wire/sessions/link.h"

struct post; /* opaque */

typedef uint32_t post_peer_id; /* number of a peer, never reused; 0: nobody */

/* Roles whose processes come and go: their peers are forgotten when they are down. */
#define POST_EPHEMERAL_ROLES \
	(KEYS_ROLE_BIT(KEYS_CONSOLE) | KEYS_ROLE_BIT(KEYS_WATCHER) | KEYS_ROLE_BIT(KEYS_INVITATION))

/* A field that is 0 has its default value, which stands at the end of the field's comment. */
struct post_options {
	const struct keys_identity *identity; /* borrowed until post_close; required */
	struct keys_list *admitted;   /* borrowed until post_close; the keys that may connect.
	                               * Required to listen. It may be edited at any time */
	/* KEYS_ROLE_BIT mask of the roles that may connect; default: any role. */
	uint32_t roles;
	/* KEYS_ROLE_BIT mask of the roles whose keys may have several processes at a time, each of
	 * them a peer. The keys of POST_EPHEMERAL_ROLES always may. Of a key with another role,
	 * only the newest process is connected; default: no role. */
	uint32_t shared_roles;
	uint32_t peers_most;          /* limit of peers; default 1100 */
	size_t chunk_bytes;           /* longest chunk sent, at most 4 MiB; default 1 MiB */
	size_t message_most_bytes;    /* longest message sent or received; default 256 MiB */
	/* Limit of unacknowledged bytes for each peer and class; default 256 MiB. */
	size_t retained_most_bytes;
	size_t assembling_most_bytes; /* limit of the bytes of all incomplete messages together.
				       * Each peer can always use its share (channel.h); default 1
				       * GiB */
	/* Number of connections to each dialed peer on another machine: this many for activations,
	 * and as many for sums and weights. 1: a single connection for all. Default 1. */
	unsigned connections;
	/* Number of additional connections for activations, for all peers together. A peer whose
	 * activations come in bursts gets enough of them to send a burst in one flight. Default
	 * 0. */
	unsigned connections_more;
	double charge_per_s;          /* quota of a key that connects, all its processes together,
				       * in frames of up to 4 KiB in a second. More bytes count as
				       * more frames, a session as 50. Ten times the quota may be
				       * used at once. A key that exceeds the quota is barred
				       * (keys_list_bar); default: no limit */
	int64_t silence_us;           /* a peer that is silent for this long is down; default 5 s */
	int64_t rekey_us;             /* age at which a session's keys are replaced; default 1 h */
	bool no_aes;                  /* for tests: behaves as on a CPU without AES */
	/* Number of threads that seal and open large frames. Default 0: the caller's thread does
	 * this. */
	unsigned seal_threads;
	/* Activations of several chunks of at least this average size are given in pieces (struct
	 * post_message); 0: never. */
	size_t piece_least_bytes;
	/* For tests only: a hook that loses, doubles, delays or corrupts frames. */
	const struct link_hook *hook;
};

/* Gives *out (post_close). -EINVAL: an option is out of range. */
int post_open(struct post **out, const struct post_options *options, struct error *err);
/* Closes all connections at once; post_idle tells if messages are still unacknowledged. NULL is
 * allowed. */
void post_close(struct post *p);

/* Listens at "tcp://ADDRESS:PORT" (IPv6 in brackets; port 0 chooses a free one) or "ipc://PATH".
 * Writes the address that others dial to bound (LINK_ADDRESS_SIZE), which may be NULL. A post may
 * listen at several addresses. A socket that a killed process left at PATH is replaced.
 * -EADDRINUSE, -EADDRNOTAVAIL, -EINVAL; -EEXIST: another file is at PATH, and stays there. */
int post_listen(struct post *p, const char *address, char *bound, struct error *err);

/* Adds a peer at an address, and gives its number. The peer must prove that it owns `key`. Succeeds
 * if the address is well-formed and there is room. The post connects, and reconnects, in the
 * background; POST_UP reports the first success. Messages may be sent at once, and wait for the
 * connection. */
int post_dial(struct post *p, const char *address, const struct keys_public *key,
	post_peer_id *peer, struct error *err);

/* Returns the one descriptor to poll for POLLIN. The caller never reads from it. */
int post_fd(const struct post *p);
/* Returns the descriptor, one of those behind post_fd, that becomes readable when threads have
 * sealed or opened frames; -1: no threads. A caller that cannot receive messages now polls only
 * this descriptor and calls post_tick. */
int post_threads_fd(const struct post *p);
/* Returns the time at which to call post_tick and post_receive at the latest; INT64_MAX: never, 0:
 * now. */
int64_t post_deadline_us(const struct post *p);
/* Does the work that depends on time: handshakes, repeated chunks, silent peers. Sends chunks that
 * wait for this turn of the loop: a turn sends about a MiB, whatever the length of the messages. It
 * is cheap; call it in every turn of the loop. */
void post_tick(struct post *p, int64_t now_us);
/* Returns true if chunks wait only for the next post_tick, not for threads or for the network. */
bool post_waits_for_tick(const struct post *p);

/* Classes of messages, the most urgent first. More urgent classes overtake others. Messages of one
 * class arrive in the order sent. */
enum post_class {
	POST_CLASS_CONTROL,
	POST_CLASS_ACTIVATIONS, /* class of activations and gradients between stages */
	POST_CLASS_SUMS,        /* class of slices of a stage's gradient */
	POST_CLASS_WEIGHTS,     /* class of pieces of a stage that a peer fetches */
	POST_CLASSES
};

enum post_flags {
	POST_RELIABLE = 0,
	POST_LOSSY = 1,
	/* Flags of post_send for the class of a RELIABLE message: */
	POST_CONTROL = POST_CLASS_CONTROL << 1,
	POST_ACTIVATIONS = POST_CLASS_ACTIVATIONS << 1,
	POST_SUMS = POST_CLASS_SUMS << 1,
	POST_WEIGHTS = POST_CLASS_WEIGHTS << 1
};

struct post_part {
	const void *data;
	size_t size;
};

/* Sends a copy of the joined parts as one message.
 * -EAGAIN: a RELIABLE message would exceed retained_most_bytes (post_room returns the bytes left);
 * a LOSSY message could not be sent now and was dropped. -ENOTCONN: there is no session for a LOSSY
 * message. -EMSGSIZE: longer than message_most_bytes, or a LOSSY message longer than a chunk.
 * -ENOENT: no such peer. -ENOMEM. */
int post_send(struct post *p, post_peer_id peer, const struct post_part *parts, size_t n_parts,
	enum post_flags flags, int64_t now_us);

/* Bytes that the post borrows for a message. It calls release(context) when the peer's process has
 * the message, or when the message is dropped. release runs inside a function of the post and must
 * not call any function of the post. */
struct post_loan {
	const void *data;
	size_t size;
	void (*release)(void *context);
	void *context;
};
/* Sends a RELIABLE message of this class: a copy of the head and then the borrowed bytes, of which
 * no copy is kept. Errors as post_send; after an error nothing is borrowed. */
int post_lend(struct post *p, post_peer_id peer, const struct post_part *head,
	const struct post_loan *loan, enum post_flags class, int64_t now_us);
/* Returns the bytes of a RELIABLE message of class CONTROL that post_send would accept now. */
size_t post_room(const struct post *p, post_peer_id peer);
/* Returns the bytes of a RELIABLE message of any class that post_send would accept now; for
 * benchmarks. */
size_t post_class_room(const struct post *p, post_peer_id peer, enum post_class class);
/* Returns true if every RELIABLE message to this peer was acknowledged; peer 0: to all peers. */
bool post_idle(const struct post *p, post_peer_id peer);

enum post_kind {
	POST_DATA = 1, /* a message */
	POST_UP,       /* the peer is reachable; `restarted`: its process is a new one */
	POST_DOWN,     /* the peer is silent, expelled or superseded. Retained messages are kept
			* until it is up again or forgotten. A peer of POST_EPHEMERAL_ROLES is
			* forgotten automatically once this event was received. Another peer with a
			* shared key is the caller's to forget */
	POST_LOST,     /* `lost` RELIABLE messages to the peer's old process were dropped. Precedes
			* the POST_UP with `restarted` */
	POST_REFUSED   /* the other end refused this process for `reason`; not authenticated */
};

struct post_message {
	enum post_kind kind;
	post_peer_id peer;
	const uint8_t *data;  /* POST_DATA: the message, borrowed until the next post_receive or
			       * post_close, or after post_keep until post_release; otherwise
			       * NULL */
	size_t size;
	/* POST_DATA: the message in pieces, without a copy of its chunks. data is then NULL. */
	struct pieces pieces;
	bool lossy;           /* POST_DATA: the message was sent as LOSSY */
	bool restarted;       /* POST_UP: the peer's process is a new one */
	uint64_t lost;        /* POST_LOST: number of dropped messages */
	enum link_reason reason; /* POST_DOWN, POST_REFUSED */
	void *owner;          /* private to the post */
};

/* Counts `frames` more frames against the quota of a peer's key, because a message was expensive to
 * handle. */
void post_charge(struct post *p, post_peer_id peer, double frames, int64_t now_us);

/* Gives the next message or event. 0, or -EAGAIN if there is none now. */
int post_receive(struct post *p, int64_t now_us, struct post_message *out);
/* Keeps the last received message's data beyond the next post_receive, and beyond the post, until
 * post_release. It makes no copy. */
void post_keep(struct post *p, struct post_message *m);
void post_release(struct post_message *m); /* frees kept data; does nothing otherwise */
/* Joins the pieces of a message, which may be kept or the last one received. 0, also if it has
 * none; -ENOMEM: the message is unchanged. */
int post_join(struct post *p, struct post_message *m);

struct post_peer_info {
	struct keys_public key;
	/* Role of the peer's key; 0: the caller has dialed the peer, and knows its key. */
	enum keys_role role;
	char name[KEYS_NAME_SIZE]; /* name of the admitted key; "" for a dialed peer */
	bool dialed;
	bool up;
	uint64_t incarnation;       /* identifies the peer's process; 0 before the first POST_UP */
	int64_t heard_us;           /* when the last authentic frame arrived; 0: never */
	int64_t down_us;            /* when the last session ended; 0: none has ended */
	/* Time since which messages of some class wait and none of that class was acknowledged;
	 * 0: none waits. A class that only waits for a more urgent class does not count. */
	int64_t stalled_us;
	int64_t large_passed_us; /* when the newest answered large probe was sent; 0: none */
	/* Least round trip in the last 10 to 20 s in which round trips were measured;
	 * 0: unknown. */
	int64_t least_round_trip_us;
	int64_t round_trip_us;     /* smoothed round trip, as in RFC 6298; 0: unknown */
	int64_t round_trip_var_us; /* deviation of the round trips, as in RFC 6298 */
	int64_t rto_us;            /* time after which an answer is overdue; 1 s while unknown */
	uint64_t delivery_bytes_per_s; /* greatest delivery rate of the last rounds; 0: unknown */
	/* There was too little to send during every measurement, so the link may carry more. */
	bool delivery_limited;
	size_t under_way_bytes; /* bytes sent and not acknowledged */
	size_t retained_bytes;
	uint64_t sent_messages, sent_bytes, received_messages, received_bytes;
	uint64_t resent_frames, duplicate_frames;
	/* The present connections have carried a message of the class, and it was acknowledged;
	 * always false for CONTROL. */
	bool carried[POST_CLASSES];
	/* Trouble of a dialed peer's link (link_trouble); borrowed until post_tick. */
	const char *trouble;
	/* Address of a dialed peer in numbers (link_address); borrowed until post_tick. */
	const char *address;
	uint64_t malformed_frames;  /* authentic but invalid frames; a correct peer sends none */
};

/* -ENOENT: there is no such peer. */
int post_peer(const struct post *p, post_peer_id peer, struct post_peer_info *out);
/* Iterates over the peers: returns the number after `after` (0 to start), 0 at the end. */
post_peer_id post_next_peer(const struct post *p, post_peer_id after);

/* deferred: stops accepting messages of a class from the peer, because the caller has no room for
 * them. Otherwise: accepts them again. The peer keeps them and sends them again later. -ENOENT. */
int post_defer(struct post *p, post_peer_id peer, enum post_class class, bool deferred);

/* Sends a frame that the other end's post answers at once. A small frame measures the round trip
 * when there is no other traffic. A large frame is sent like an activation and fills several
 * packets of any network, so its answer shows that full packets pass. 0; -ENOENT: no such peer;
 * -ENOTCONN: no session; -EAGAIN: it cannot be sent now. */
#define POST_PROBE_LARGE 20000 /* bytes of a large probe: two packets of 9,000 */
int post_probe(struct post *p, post_peer_id peer, bool large, int64_t now_us);

/* A RELIABLE message, not of class CONTROL, that the peer's process has received. */
struct post_transfer {
	post_peer_id peer;
	enum post_class class;
	size_t bytes;
	int64_t queued_us; /* when post_send was called */
	int64_t left_us;   /* when its first chunk was sent */
	int64_t acked_us;  /* when the acknowledgement of its last chunk arrived */
	size_t under_way_bytes; /* bytes to this peer that were unacknowledged at queued_us */
	/* The message was queued before any message of its class had passed on the present
	 * connections. Its transfer time may therefore include dialing, handshakes and the first
	 * round trips of TCP. */
	bool first;
};
/* Gives the oldest finished transfer that was not yet given: 0, or -EAGAIN if there is none. The
 * last POST_TRANSFERS are kept. */
#define POST_TRANSFERS 1024
int post_transfer(struct post *p, struct post_transfer *out);

/* Sets message_most_bytes, once the caller knows its longest message. Every peer then always has
 * room for one incomplete message of this length in each class. */
void post_limit(struct post *p, size_t message_most_bytes);

/* Removes the peer with its session, its messages and its number. Closes the socket of a dialed
 * peer. -ENOENT. */
int post_forget(struct post *p, post_peer_id peer);

struct post_counters {
	struct link_counters link; /* counters of all sockets together */
	uint64_t sent_messages, received_messages, sent_bytes, received_bytes;
	uint64_t resent_frames, duplicate_frames, gap_frames;
	size_t retained_bytes, assembling_bytes;
	uint32_t peers, peers_up;
};
/* Gives the counters. Costs a system call or two for each socket. */
void post_count(const struct post *p, struct post_counters *out);

#endif
