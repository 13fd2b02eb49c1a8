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
 * again as needed: the peer gets each one whole, once, in the order sent. That holds through lost
 * connections and fresh handshakes, as long as both processes live. When the peer's process is a
 * new one (or post_forget was called) what was kept for the old one is dropped and counted in a
 * POST_LOST event: only the layer above knows whether it still matters.
 * LOSSY messages are sent at once or not at all, at most once, and overtake others: heartbeats,
 * state streams. They fit one chunk.
 *
 * Which end dials matters for bulk only. From the dialing to the listening end nanomsg pushes
 * back, and chunks flow at the full rate. From the listening end it drops what does not fit the
 * socket's buffer, so the post keeps a small window there. Hence: who sends tensors, dials.
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
#include "wire/link.h"

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
	size_t retained_most_bytes;   /* per peer, unacknowledged: 256 MiB */
	size_t assembling_most_bytes; /* all unfinished arriving messages together: 1 GiB */
	double charge_per_s;          /* what a peer that connected may cost in a second, in frames of up
	                               * to 4 KiB (more bytes count for more frames), and ten times that
	                               * at once; above it its key is barred (keys_list_bar): no limit */
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

enum post_flags { POST_RELIABLE = 0, POST_LOSSY = 1 };

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
size_t post_room(const struct post *p, post_peer_id peer);
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

/* Counts so many frames more against a peer's limit: for messages that make much work. */
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
	int64_t round_trip_us;      /* smoothed; 0 unknown */
	size_t retained_bytes;
	uint64_t sent_messages, sent_bytes, received_messages, received_bytes;
	uint64_t resent_frames, duplicate_frames;
};

int post_peer(const struct post *p, post_peer_id peer, struct post_peer_info *out); /* -ENOENT */
/* The peers in no order: the next number after `after` (0 starts), 0 at the end. */
post_peer_id post_next_peer(const struct post *p, post_peer_id after);

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
