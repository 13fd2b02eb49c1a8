/* post.h - messages between processes: sealed, and where asked delivered exactly once.
 *
 * One post is one process's end of everything: it may listen at addresses and dial others, and
 * shows one file descriptor to poll. Each process at the other end is a peer, a number that stays
 * valid (and is never used again) until post_forget. Single-threaded, never blocks, no callbacks:
 *
 *     poll(post_fd(post), until post_deadline_us(post));
 *     post_tick(post, now);
 *     for (turn = 0; turn < 64 && post_receive(post, now, &m) == 0; turn++)
 *         handle(&m);
 *
 * RELIABLE messages are copied, cut in chunks, kept until the peer's process has them, and sent
 * again as needed: the peer gets each one whole, once, in the order sent (of its class). That holds through lost
 * connections and fresh handshakes, as long as both processes live. When the peer's process is a
 * new one (or post_forget was called) what was kept for the old one is dropped and counted in a
 * POST_LOST event: only the layer above knows whether it still matters.
 * LOSSY messages are sent at once or not at all, at most once, and overtake others: heartbeats,
 * state streams. They fit one chunk, and take turns on several connections where there are, so that one
 * lost packet does not keep the next of them waiting; they may arrive in another order.
 *
 * Which end dials matters for bulk only. From the dialing to the listening end nanomsg pushes
 * back, and chunks flow at the full rate. From the listening end it drops what does not fit the
 * socket's buffer, so the post keeps a small window there. Hence: who sends tensors, dials.
 *
 * Long ways are filled: with `connections`, messages to another machine are spread over so many, and
 * what may wait has as much under way as the way carries in its round trip and no more (flow.h), so
 * that what is urgent finds no queue. What is urgent has connections of its own.
 *
 * Sessions, keys and what is protected: link.h and docs/security.md.
 */
#ifndef WIRE_POST_H
#define WIRE_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/keys.h"
#include "wire/sessions/link.h"

struct post; /* opaque */

typedef uint32_t post_peer_id; /* 0 is nobody */

/* Zero in any field asks for the default. */
struct post_options {
	const struct keys_identity *identity; /* borrowed until post_close; needed */
	struct keys_list *admitted;   /* borrowed until post_close; who may connect; needed to
	                               * listen. Edit it (keys_list_admit, expel, refresh) at will */
	uint32_t roles;               /* KEYS_ROLE_BIT mask of who may connect; 0: any admitted */
	uint32_t peers_most;          /* 1100 */
	size_t chunk_bytes;           /* of what is sent: 1 MiB; at most 4 MiB */
	size_t message_most_bytes;    /* one message, sent or received: 256 MiB */
	size_t retained_most_bytes;   /* per peer and class, unacknowledged: 256 MiB */
	size_t assembling_most_bytes; /* all unfinished arriving messages together: 1 GiB. Each peer
	                               * always has its share of it (channel.h) */
	unsigned connections;         /* to each dialed peer on another machine, for activations and
	                               * again for sums and weights; 1 is for all there: 1 */
	unsigned connections_more;    /* of those for activations, for all peers together: a peer whose
	                               * activations come in bursts gets some of them, until a burst leaves
	                               * in one flight: 0 */
	double charge_per_s;          /* what a key that connected may cost in a second, all its processes
	                               * together, also by coming and going, in frames of up
	                               * to 4 KiB (more bytes count for more frames, a session for 50), and
	                               * ten times that at once; above it the key is barred (keys_list_bar):
	                               * no limit */
	int64_t silence_us;           /* a peer not heard for so long is down: 5 s */
	int64_t rekey_us;             /* a session's keys serve so long: 1 h */
	bool no_aes;                  /* as on a CPU without AES */
	const struct link_hook *hook; /* tests only: loses, doubles, delays, corrupts frames */
};

/* Gives *out (post_close). -EINVAL an option; -ENOMEM. */
int post_open(struct post **out, const struct post_options *options, struct error *err);
/* Cuts everything; nothing is flushed (see post_idle). NULL is allowed. */
void post_close(struct post *p);

/* "tcp://ADDRESS:PORT" (IPv6 in brackets; port 0: a free one is found by trying) or
 * "ipc://PATH". The address that
 * others dial is written to bound (LINK_ADDRESS_SIZE), which may be NULL. Several may be open.
 * -EADDRINUSE, -EADDRNOTAVAIL, -EINVAL, each said in words. */
int post_listen(struct post *p, const char *address, char *bound, struct error *err);

/* A peer at an address, which must prove to own `key`. Always succeeds when the address is well
 * formed and there is room; connecting, and connecting again, goes on by itself, and POST_UP tells
 * when it worked. Messages may be sent at once: they wait. Gives the peer's number. */
int post_dial(struct post *p, const char *address, const struct keys_public *key,
	post_peer_id *peer, struct error *err);

/* The one descriptor to poll for POLLIN. Never read it. */
int post_fd(const struct post *p);
/* When post_tick or post_receive next has something to do; INT64_MAX never, 0 now. */
int64_t post_deadline_us(const struct post *p);
/* Handshakes, acknowledgements, sending again, silence. Cheap; call it every turn. */
void post_tick(struct post *p, int64_t now_us);

/* What a message is, from the most urgent on. Higher classes overtake lower ones; within a class
 * messages arrive in the order sent, between classes in any. */
enum post_class {
	POST_CLASS_CONTROL,
	POST_CLASS_ACTIVATIONS, /* and gradients, between stages */
	POST_CLASS_SUMS,        /* slices of a stage's gradient */
	POST_CLASS_WEIGHTS,     /* pieces for those who fetch a stage */
	POST_CLASSES
};

enum post_flags {
	POST_RELIABLE = 0,
	POST_LOSSY = 1,
	/* the class, of RELIABLE messages */
	POST_CONTROL = POST_CLASS_CONTROL << 1,
	POST_ACTIVATIONS = POST_CLASS_ACTIVATIONS << 1,
	POST_SUMS = POST_CLASS_SUMS << 1,
	POST_WEIGHTS = POST_CLASS_WEIGHTS << 1
};

struct post_part {
	const void *data;
	size_t size;
};

/* Sends the parts, joined, as one message; copied before it returns.
 * -EAGAIN: RELIABLE the peer's retained bytes are at their bound (try again when messages were
 * acknowledged; post_room tells); LOSSY it could not leave now and was dropped (counted).
 * -ENOTCONN: LOSSY and no session. -EMSGSIZE: above message_most_bytes (LOSSY: above one chunk).
 * -ENOENT no such peer. -ENOMEM. */
int post_send(struct post *p, post_peer_id peer, const struct post_part *parts, size_t n_parts,
	enum post_flags flags, int64_t now_us);
/* Bytes of a RELIABLE message that post_send would take now. */
size_t post_room(const struct post *p, post_peer_id peer); /* of class CONTROL */
size_t post_class_room(const struct post *p, post_peer_id peer, enum post_class class); /* for benches */
/* Whether every RELIABLE message to this peer (0: to all) was acknowledged. */
bool post_idle(const struct post *p, post_peer_id peer);

enum post_kind {
	POST_DATA = 1, /* a message */
	POST_UP,       /* the peer is reachable; `restarted` when its process is a new one */
	POST_DOWN,     /* silent for silence_us, expelled, or superseded; what is retained stays until
	                * it is up again or forgotten. A listener's console or watcher peer is
	                * forgotten by itself once this event is taken */
	POST_LOST,     /* `lost` RELIABLE messages were dropped: they were for the peer's old process.
	                * Comes before the POST_UP that says `restarted` */
	POST_REFUSED   /* the other end said no to us (an unproven hint): see `reason` */
};

struct post_message {
	enum post_kind kind;
	post_peer_id peer;
	const uint8_t *data;  /* POST_DATA: borrowed until the next post_receive or post_close, unless
	                       * kept with post_keep; NULL otherwise */
	size_t size;
	bool lossy;           /* POST_DATA: how it was sent */
	bool restarted;       /* POST_UP */
	uint64_t lost;        /* POST_LOST */
	enum link_reason reason; /* POST_DOWN, POST_REFUSED */
	void *owner;          /* the post's own */
};

/* Counts so many frames more against the limit of a peer's key: for messages that make much work. */
void post_charge(struct post *p, post_peer_id peer, double frames, int64_t now_us);

/* The next message or event. 0, or -EAGAIN when there is none now. */
int post_receive(struct post *p, int64_t now_us, struct post_message *out);
/* Makes the last received message's data outlive the next post_receive (and the post). Release it
 * with post_release. No copy is made. */
void post_keep(struct post *p, struct post_message *m);
void post_release(struct post_message *m); /* of a kept message; harmless otherwise */

struct post_peer_info {
	struct keys_public key;
	enum keys_role role;        /* 0 for a dialed peer: its key was given by the caller */
	char name[KEYS_NAME_SIZE];  /* as admitted; "" for a dialed peer */
	bool dialed;
	bool up;
	uint64_t incarnation;       /* of its process; 0 before the first POST_UP */
	int64_t heard_us;           /* when something proven came from it last; 0 never */
	int64_t least_round_trip_us; /* of the last 10 to 20 s in which anything was measured; 0 unknown */
	int64_t round_trip_us;      /* smoothed, and its deviation, as in RFC 6298; 0 unknown */
	int64_t round_trip_var_us;
	int64_t rto_us;             /* an answer is overdue after so long; 1 s while nothing is known */
	uint64_t delivery_bytes_per_s; /* acknowledged, the greatest of the last rounds; 0 unknown */
	bool delivery_limited;      /* there was never enough to send: the link may carry more */
	size_t under_way_bytes;     /* left and not acknowledged */
	size_t retained_bytes;
	uint64_t sent_messages, sent_bytes, received_messages, received_bytes;
	uint64_t resent_frames, duplicate_frames;
	uint64_t malformed_frames;  /* sealed, and against what this header says: no process of ours sends any */
};

int post_peer(const struct post *p, post_peer_id peer, struct post_peer_info *out); /* -ENOENT */
/* The peers in no order: the next number after `after` (0 starts), 0 at the end. */
post_peer_id post_next_peer(const struct post *p, post_peer_id after);

/* While it is deferred nothing more of that class is taken from the peer: it keeps it, and sends it
 * again later. For who has no room. -ENOENT. */
int post_defer(struct post *p, post_peer_id peer, enum post_class class, bool deferred);

/* A small frame that the other end's post answers at once: measures the round trip when nothing
 * else does. Lost ones are forgotten. 0; -ENOENT no such peer; -ENOTCONN no session; -EAGAIN it
 * cannot leave now. */
int post_probe(struct post *p, post_peer_id peer, int64_t now_us);

/* A RELIABLE message of any class but CONTROL that the peer's process has. */
struct post_transfer {
	post_peer_id peer;
	enum post_class class;
	size_t bytes;
	int64_t queued_us; /* handed to post_send */
	int64_t left_us;   /* its first chunk left */
	int64_t acked_us;  /* the acknowledgement of its last was here: half a round trip after it was there */
	size_t under_way_bytes; /* of messages to this peer that were not acknowledged when it was handed over */
};
/* The next one that is through, oldest first: 0, or -EAGAIN none. The last POST_TRANSFERS are
 * kept. */
#define POST_TRANSFERS 1024
int post_transfer(struct post *p, struct post_transfer *out);

/* From now on no message, sent or received, is longer; and every peer always has room for one half message of
 * each class. For who learns only later what there is to send. */
void post_limit(struct post *p, size_t message_most_bytes);

/* Drops the peer: its session, everything retained or half arrived, its number. A dialed peer's
 * socket is closed. -ENOENT. */
int post_forget(struct post *p, post_peer_id peer);

struct post_counters {
	struct link_counters link;    /* of all sockets together */
	uint64_t sent_messages, received_messages, sent_bytes, received_bytes; /* of the caller's */
	uint64_t lossy_dropped;       /* by this side, for want of room or session */
	uint64_t resent_frames, duplicate_frames, gap_frames;
	uint64_t lost_messages;
	uint64_t deferred_frames;     /* arrived while assembling_most_bytes was reached: not taken */
	size_t retained_bytes, assembling_bytes;
	uint32_t peers, peers_up;
};
void post_count(const struct post *p, struct post_counters *out); /* asks each socket */

#endif
