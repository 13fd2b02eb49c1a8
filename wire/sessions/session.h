/* session.h - the inside of a link: its sessions, its memory of keys, its handshake. For link.c,
 * session.c and handshake.c only.
 */
#ifndef WIRE_SESSION_H
#define WIRE_SESSION_H

#include "wire/sessions/frame.h"
#include "wire/sessions/link.h"
#include "wire/sessions/noise.h"
#include "wire/sessions/seal.h"
#include "wire/sessions/socket.h"

enum session_state {
	SESSION_PENDING = 1, /* listener: answered an INIT, nothing proven since */
	SESSION_LIVE,
	SESSION_ENDING       /* its LINK_DOWN is to be told */
};

struct session {
	uint32_t id;        /* low 16 bits: its slot; above: how often the slot was used */
	uint32_t remote_id; /* the other end's number for it */
	enum session_state state;
	enum link_reason reason; /* ENDING */
	uint64_t tag;
	struct keys_public key;
	enum keys_role role;
	char name[KEYS_NAME_SIZE];
	uint64_t instance, own_instance;
	uint32_t frame_most;
	struct socket_route route;
	struct seal_key send, receive;
	struct seal_window *window; /* owned */
	uint64_t counter;         /* of the next frame sent */
	uint64_t sent_bytes, received_bytes;
	int64_t since_us, heard_us, spoke_us;
	int64_t keep_alive_us;    /* we speak at least so often */
	int64_t patience_us;      /* with its silence, if more than the link's */
};

/* What a listener remembers of an admitted key beyond its sessions. */
#define RECORD_SUPERSEDED 8
struct record {
	struct keys_public key;
	uint64_t last_issue;      /* of the newest cookie it used: older ones are replays */
	uint64_t superseded[RECORD_SUPERSEDED]; /* instances that may not come back */
	unsigned next_superseded;
};

/* A token bucket: per_s tokens a second, and as many at once. */
struct bucket {
	double tokens, per_s;
	int64_t at_us;
};

enum dial_state { DIAL_REST = 1, DIAL_HELLO, DIAL_INIT };

struct dial {
	enum dial_state state;
	struct keys_public key;
	uint64_t instance;
	uint8_t nonce[FRAME_NONCE];
	struct noise noise;       /* DIAL_INIT */
	uint32_t reserved_id;     /* DIAL_INIT: the session number offered */
	int64_t deadline_us;      /* REST: when to try; else when to give up */
	int64_t backoff_us, began_us;
	int64_t answer_us;        /* how long an answer may take; 0: as at first */
	bool wanted;              /* a handshake is needed */
};

#define LINK_QUEUE 4

struct link {
	struct link_options options;
	struct link_counters *counters, own_counters;
	struct socket sockets[LINK_LANES]; /* a listener has the first only */
	bool blocked[LINK_LANES];
	unsigned turn;          /* the lane that is next received from */
	bool listens, aes;
	struct session **slots; /* (n_slots), NULL where free */
	uint32_t *uses;         /* (n_slots) */
	uint32_t n_slots, n_sessions, n_ending;
	struct record *records;
	size_t n_records, room_records;
	uint64_t admitted_version;
	uint8_t cookie_key[32];
	uint64_t last_issue;
	struct bucket inits, refusals;
	struct dial dial;
	struct link_event queue[LINK_QUEUE]; /* told before anything else is received */
	unsigned n_queue;
	int64_t scan_us;        /* when sessions are next looked through */
	int64_t mend_us;        /* when a dialer's connection, or a listener's many, are next looked at */
	char address[LINK_ADDRESS_SIZE]; /* a dialer's */
	uint8_t *held;          /* by the test hook */
	unsigned held_lane;
	struct socket_route held_route;
	size_t held_size;
};

/* ---- session.c ---- */
struct session *session_find(const struct link *link, uint32_t id);
/* NULL: no slot, or out of memory. `id` 0: any. */
struct session *session_new(struct link *link, uint32_t id);
uint32_t session_reserve(struct link *link); /* a number for session_new; 0: no slot */
void session_free(struct link *link, struct session *s); /* wipes */
/* Frees it now if it is pending, else once its LINK_DOWN is told. */
void session_end(struct link *link, struct session *s, enum link_reason reason);
bool session_next_ending(struct link *link, struct link_event *out);
/* Live now: replaces what it must and queues LINK_UP. */
void session_live(struct link *link, struct session *s, int64_t now_us);
struct record *record_of(struct link *link, const struct keys_public *key); /* NULL: no memory */
void session_check_admitted(struct link *link);
/* Why a key that the list does not give is refused. */
enum link_reason session_not_admitted(const struct link *link, const struct keys_public *key);
bool bucket_take(struct bucket *b, int64_t now_us);

/* ---- handshake.c: each handles one parsed frame ---- */
void handshake_on_hello(struct link *link, const struct frame *f,
	const struct socket_route *route, int64_t now_us);
/* A frame of a handshake came. */
void handshake_on_init(struct link *link, const struct frame *f, const struct socket_route *route,
	int64_t now_us);
void handshake_on_cookie(struct link *link, const struct frame *f, int64_t now_us);
void handshake_on_response(struct link *link, const struct frame *f, int64_t now_us);
void handshake_on_refuse(struct link *link, const struct frame *f, int64_t now_us);
void handshake_refuse(struct link *link, enum link_reason reason, const uint8_t *echo,
	const struct socket_route *route, int64_t now_us);
void handshake_tick(struct link *link, int64_t now_us);
void handshake_want(struct link *link, int64_t now_us); /* dialer: a new session is needed */

/* ---- link.c ---- */
void link_refused(struct link *link, enum link_reason reason); /* counts */
/* route: a listener's. */
int link_transmit(struct link *link, unsigned lane, const struct socket_route *route,
	uint8_t *frame, size_t size);
void link_tell(struct link *link, const struct link_event *event);

#endif
