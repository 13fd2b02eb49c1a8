/* post.h - sends encrypted messages between processes. RELIABLE messages arrive exactly once.
 *
 * A process has one post for all its connections. The post listens at addresses, dials other
 * addresses, and has one file descriptor to poll. Each process at the other end is a peer. The
 * number of a peer stays valid until post_forget, and is never used again. Only one thread may
 * use a post. A post never blocks, and calls back only to release loans (post_lend). The loop of
 * the process:
 *
 *     poll(post_fd(post), until post_deadline_us(post));
 *     post_tick(post, now);
 *     for (turn = 0; turn < 64 && post_receive(post, now, &m) == 0; turn++)
 *         handle(&m);
 *
 * RELIABLE messages are copied, cut into chunks, and kept until the peer's process has them. The
 * peer receives each message once, whole, and in the order sent within its class. This holds
 * across lost connections and new sessions, as long as both processes live. If a new process
 * replaces the peer's process, the post drops the messages that it kept for the old process. A
 * POST_LOST event has their number. The caller then decides if the messages are still needed.
 *
 * LOSSY messages (heartbeats, state streams) are sent at once or dropped, arrive at most once, and
 * overtake other messages. A LOSSY message must fit in one chunk. If there are several connections,
 * LOSSY messages use them in turn, so that one lost packet does not delay the next message. They
 * may therefore arrive out of order.
 *
 * For bulk it matters which of the two processes dials. In the direction from the dialing process
 * to the listening process, nanomsg blocks the sender while the connection is full, and chunks
 * are sent at the full rate. In the other direction nanomsg drops frames that do not fit the
 * socket's buffer, so the post keeps a small window. Therefore the sender of tensors dials.
 *
 * With the option `connections`, the post spreads messages to another machine over several
 * connections, so that they fill links with long round trips. Urgent messages must find a short
 * queue. Therefore the messages that can wait have no more bytes under way than the link carries
 * in a round trip (flow.h). Urgent messages have connections of their own.
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

/* Roles whose processes come and go. When such a peer is down, the post forgets it. */
#define POST_EPHEMERAL_ROLES \
	(KEYS_ROLE_BIT(KEYS_CONSOLE) | KEYS_ROLE_BIT(KEYS_WATCHER) | KEYS_ROLE_BIT(KEYS_INVITATION))

/* In every field, 0 stands for the default value. The comment of each field ends with the default
 * value. */
struct post_options {
	const struct keys_identity *identity; /* borrowed until post_close; required */
	/* Borrowed until post_close: the keys that may connect, which may be edited at any time.
	 * Required to listen. */
	struct keys_list *admitted;
	/* KEYS_ROLE_BIT mask of the roles that may connect; default: any role. */
	uint32_t roles;
	/* KEYS_ROLE_BIT mask of roles whose keys several processes may use at a time. Each
	 * process is then a peer. POST_EPHEMERAL_ROLES are always shared in this way. If several
	 * processes use a key of a role that is not shared, only the newest process stays
	 * connected. Default: no role. */
	uint32_t shared_roles;
	uint32_t peers_most;          /* limit of peers; default 1100 */
	size_t chunk_bytes;           /* longest chunk sent, at most 4 MiB; default 1 MiB */
	size_t message_most_bytes;    /* longest message sent or received; default 256 MiB */
	/* Limit of unacknowledged bytes for each peer and class; default 256 MiB. */
	size_t retained_most_bytes;
	/* Limit of the bytes of all incomplete received messages together. Each peer can always use
	 * its share (channel.h). Default 1 GiB. */
	size_t assembling_most_bytes;
	/* Number of connections to each dialed peer on another machine. The post opens this
	 * number of connections for activations, and the same number for sums and weights. 1: a
	 * single connection for all messages. Default 1. */
	unsigned connections;
	/* Number of connections for activations that the post may add, for all peers together. A
	 * peer whose activations come in bursts gets enough connections to send a burst at once.
	 * Default 0. */
	unsigned connections_more;
	/* Quota of each key that connects, for all its processes together, in frames per second.
	 * A frame above 4 KiB counts as several frames, and a new session counts as 50 frames.
	 * Ten seconds of the quota may be used at once. A key that exceeds the quota is barred
	 * (keys_list_bar). Default: no limit. */
	double charge_per_s;
	int64_t silence_us;           /* a peer that is silent for this long is down; default 5 s */
	/* Age at which new keys replace a session's keys; default 1 h. */
	int64_t rekey_us;
	bool no_aes;                  /* for tests: behaves as on a CPU without AES */
	/* Number of threads that seal and open large frames. Default 0: the caller's thread does
	 * it. */
	unsigned seal_threads;
	/* Activations of several chunks are delivered in pieces if their chunks have at least this
	 * average size (struct post_message); 0: never. */
	size_t piece_least_bytes;
	/* For tests only: a hook that loses, duplicates, delays or corrupts frames. */
	const struct link_hook *hook;
};

/* Opens a post. The caller closes *out with post_close. -EINVAL: an option is out of range. */
int post_open(struct post **out, const struct post_options *options, struct error *err);
/* Closes all connections at once, even if messages are unacknowledged (see post_idle). NULL is
 * allowed. */
void post_close(struct post *p);

/* Listens at "tcp://ADDRESS:PORT" or "ipc://PATH". An IPv6 address is in brackets; port 0 chooses
 * a free port. Other processes dial the address that this function writes to `bound`. `bound` has
 * LINK_ADDRESS_SIZE bytes, or is NULL. A post may listen at several addresses.
 *
 * If a killed process has left its socket at PATH, replaces the socket. -EEXIST: another kind of
 * file is at PATH, and stays. -EADDRINUSE, -EADDRNOTAVAIL, -EINVAL. */
int post_listen(struct post *p, const char *address, char *bound, struct error *err);

/* Adds a peer at an address and gives its number. The peer must prove that it owns `key`. Succeeds
 * if the address is well-formed and there is room for another peer. The post connects and
 * reconnects in the background. POST_UP reports the first session. Messages that are sent earlier
 * wait for the session. */
int post_dial(struct post *p, const char *address, const struct keys_public *key,
	post_peer_id *peer, struct error *err);

/* Returns the only descriptor that the caller must poll, for POLLIN. The caller never reads from
 * it. */
int post_fd(const struct post *p);
/* Returns the threads' descriptor, which is readable when threads have sealed or opened frames;
 * -1: there are no threads. post_fd covers this descriptor too. A caller that cannot receive
 * messages now may poll only the threads' descriptor, and call post_tick. */
int post_threads_fd(const struct post *p);
/* Returns the latest time at which to call post_tick and post_receive again; INT64_MAX: never; 0:
 * now. */
int64_t post_deadline_us(const struct post *p);
/* Does the work that depends on time: handshakes, resent chunks, silent peers. Sends the chunks
 * that wait for this turn of the loop. A turn sends about a MiB, however long the messages are.
 * Call this function in every turn, because it is cheap. */
void post_tick(struct post *p, int64_t now_us);
/* Returns true if there are chunks that wait only for the next post_tick. */
bool post_waits_for_tick(const struct post *p);

/* Classes of messages, the most urgent class first. Messages of a more urgent class overtake
 * other messages. Messages of one class arrive in the order sent. */
enum post_class {
	POST_CLASS_CONTROL,
	POST_CLASS_ACTIVATIONS, /* activations and gradients between stages */
	POST_CLASS_SUMS,        /* slices of a stage's gradient */
	POST_CLASS_WEIGHTS,     /* pieces of a stage's weights that a peer fetches */
	POST_CLASSES
};

enum post_flags {
	POST_RELIABLE = 0,
	POST_LOSSY = 1,
	/* Flags of post_send: RELIABLE, with the class of the message */
	POST_CONTROL = POST_CLASS_CONTROL << 1,
	POST_ACTIVATIONS = POST_CLASS_ACTIVATIONS << 1,
	POST_SUMS = POST_CLASS_SUMS << 1,
	POST_WEIGHTS = POST_CLASS_WEIGHTS << 1
};

struct post_part {
	const void *data;
	size_t size;
};

/* Sends a copy of the joined parts as one message. -EAGAIN: a RELIABLE message would exceed
 * retained_most_bytes (post_room returns the bytes left), or a LOSSY message could not be sent
 * now and was dropped. -ENOTCONN: there is no session for a LOSSY message. -EMSGSIZE: the message
 * is longer than message_most_bytes, or a LOSSY message is longer than a chunk. -ENOENT: no such
 * peer. -ENOMEM. */
int post_send(struct post *p, post_peer_id peer, const struct post_part *parts, size_t n_parts,
	enum post_flags flags, int64_t now_us);

/* Bytes that the post borrows for a message. The post calls release(context) when the peer's
 * process has the message, or when the message is dropped. The callback runs inside a function of
 * the post, and must not call any function of the post. */
struct post_loan {
	const void *data;
	size_t size;
	void (*release)(void *context);
	void *context;
};
/* Sends a RELIABLE message of this class: a copy of the head, followed by the borrowed bytes,
 * which are not copied. The errors are those of post_send. After an error the post borrows
 * nothing. */
int post_lend(struct post *p, post_peer_id peer, const struct post_part *head,
	const struct post_loan *loan, enum post_flags class, int64_t now_us);
/* Returns the size of the largest RELIABLE message of class CONTROL that post_send would accept
 * now. */
size_t post_room(const struct post *p, post_peer_id peer);
/* Returns the size of the largest RELIABLE message of this class that post_send would accept now;
 * for benchmarks. */
size_t post_class_room(const struct post *p, post_peer_id peer, enum post_class class);
/* Returns true if every RELIABLE message to this peer was acknowledged. If peer is 0, checks the
 * messages to all peers. */
bool post_idle(const struct post *p, post_peer_id peer);

enum post_kind {
	POST_DATA = 1, /* a message */
	POST_UP,       /* the peer is reachable; `restarted`: the peer has a new process */
	/* The peer is silent, expelled or superseded. Messages to the peer are kept until the
	 * peer is up again or forgotten. If the peer's role is in POST_EPHEMERAL_ROLES, the post
	 * forgets the peer after the caller has received this event. If the role is only in
	 * shared_roles, the caller must forget the peer (post_forget). */
	POST_DOWN,
	/* `lost` RELIABLE messages to the peer's old process were dropped. A POST_UP with
	 * `restarted` follows. */
	POST_LOST,
	/* the other end refused this process for `reason`; the refusal may be forged */
	POST_REFUSED
};

struct post_message {
	enum post_kind kind;
	post_peer_id peer;
	/* POST_DATA: the message; otherwise NULL. Borrowed until the next post_receive or
	 * post_close. After post_keep, borrowed until post_release. */
	const uint8_t *data;
	size_t size;
	/* POST_DATA: the message in the buffers of its chunks, if it was not joined. data is then
	 * NULL. */
	struct pieces pieces;
	bool lossy;           /* POST_DATA: the message was sent as LOSSY */
	bool restarted;       /* POST_UP: the peer has a new process */
	uint64_t lost;        /* POST_LOST: number of dropped messages */
	enum link_reason reason; /* POST_DOWN, POST_REFUSED */
	void *owner;          /* private to the post */
};

/* Counts `frames` additional frames against the quota of a peer's key, because a message was
 * expensive to handle. */
void post_charge(struct post *p, post_peer_id peer, double frames, int64_t now_us);

/* Gives the next message or event. Returns 0, or -EAGAIN if there is no message or event now. */
int post_receive(struct post *p, int64_t now_us, struct post_message *out);
/* Keeps the data of the newest received message until post_release, even if post_receive or
 * post_close is called before. Makes no copy. */
void post_keep(struct post *p, struct post_message *m);
void post_release(struct post_message *m); /* frees a message's data, if it has any */
/* Joins the pieces of a message into one block. The message must be a kept message or the newest
 * received message. Returns 0, also if the message has no pieces. -ENOMEM: the message is
 * unchanged. */
int post_join(struct post *p, struct post_message *m);

struct post_peer_info {
	struct keys_public key;
	/* Role of the peer's key; 0: the caller dialed the peer, and therefore knows the key. */
	enum keys_role role;
	char name[KEYS_NAME_SIZE]; /* name of the key in the admitted list; "" for a dialed peer */
	bool dialed;
	bool up;
	uint64_t incarnation;       /* identifies the peer's process; 0 before the first POST_UP */
	/* Time at which the newest authenticated frame arrived; 0: no such frame has arrived. */
	int64_t heard_us;
	/* Time at which the last session ended; 0: no session has ended. */
	int64_t down_us;
	/* Time from which messages of some class have waited without any acknowledgement in the
	 * class; 0: no message waits. A class does not count if it waits only for a more urgent
	 * class. */
	int64_t stalled_us;
	/* Time at which the newest of the answered large probes was sent; 0: no large probe was
	 * answered. */
	int64_t large_passed_us;
	/* Least round trip in a sliding window of 10 to 20 s; 0: unknown. Time without measurements
	 * does not count. */
	int64_t least_round_trip_us;
	int64_t round_trip_us;     /* round trip, smoothed as in RFC 6298; 0: unknown */
	int64_t round_trip_var_us; /* deviation of the round trips, as in RFC 6298 */
	/* Time after which an answer is overdue; 1 s if no round trip was measured. */
	int64_t rto_us;
	/* Greatest delivery rate in the last rounds (flow.h); 0: unknown. */
	uint64_t delivery_bytes_per_s;
	/* True: during every measurement too little was sent, so the link may be faster than
	 * measured. */
	bool delivery_limited;
	size_t under_way_bytes; /* bytes sent and not acknowledged */
	size_t retained_bytes;
	uint64_t sent_messages, sent_bytes, received_messages, received_bytes;
	uint64_t resent_frames, duplicate_frames;
	/* A message of the class was sent and acknowledged on the present connections; always false
	 * for CONTROL. */
	bool carried[POST_CLASSES];
	/* The reason why no address of a dialed peer can be reached (link_trouble); borrowed
	 * until post_tick. */
	const char *trouble;
	/* The numeric address that the post dials (link_address); borrowed until post_tick. */
	const char *address;
	/* Number of frames that were authentic but not valid. A correct peer sends no such
	 * frames. */
	uint64_t malformed_frames;
};

/* Gives what the post knows about a peer. -ENOENT: there is no such peer. */
int post_peer(const struct post *p, post_peer_id peer, struct post_peer_info *out);
/* Iterates over the peers: returns the peer after `after` (0: the first peer), or 0 at the end. */
post_peer_id post_next_peer(const struct post *p, post_peer_id after);

/* If `deferred` is true, stops accepting messages of a class from the peer, because the caller
 * has no room for them. The peer keeps these messages and resends them later. If `deferred` is
 * false, accepts messages of the class again. -ENOENT. */
int post_defer(struct post *p, post_peer_id peer, enum post_class class, bool deferred);

/* Sends a frame that the peer's post answers at once. A small probe measures the round trip while
 * there is no other traffic. A large probe is sent like an activation, and fills several packets
 * of any network. The answer to a large probe therefore shows that full packets arrive. Returns
 * 0, or -ENOENT: no such peer; -ENOTCONN: no session; -EAGAIN: the probe cannot be sent now. */
#define POST_PROBE_LARGE 20000 /* bytes of a large probe: more than two packets of 9,000 bytes */
int post_probe(struct post *p, post_peer_id peer, bool large, int64_t now_us);

/* The times of a RELIABLE message that the peer's process has received. Messages of class CONTROL
 * have no such times. */
struct post_transfer {
	post_peer_id peer;
	enum post_class class;
	size_t bytes;
	int64_t queued_us; /* time at which post_send was called */
	int64_t left_us;   /* time at which the first chunk was sent */
	int64_t acked_us;  /* time at which the acknowledgement of the last chunk arrived */
	/* Number of bytes to this peer that were unacknowledged at the time queued_us. */
	size_t under_way_bytes;
	/* True: when the message was queued, the present connections had not yet carried a
	 * message of this class. The message's transfer time may therefore include dialing,
	 * handshakes and the first round trips of TCP. */
	bool first;
};
/* Gives the oldest transfer that no earlier call has given. Returns 0, or -EAGAIN if there is no
 * such transfer. Only the newest POST_TRANSFERS transfers are kept. */
#define POST_TRANSFERS 1024
int post_transfer(struct post *p, struct post_transfer *out);

/* Sets message_most_bytes when the caller knows its longest message. From then on every peer always
 * has room for one incomplete message of this length in each class. */
void post_limit(struct post *p, size_t message_most_bytes);

/* Forgets the peer: ends its session, drops its messages, and makes its number invalid. Closes
 * the socket of a dialed peer. -ENOENT. */
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
