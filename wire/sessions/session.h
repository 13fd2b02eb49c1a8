/* session.h - the private parts of a link: sessions, records of keys, the handshake. For link.c,
 * session.c and handshake.c only.
 *
 * A session's states. A dialer's session begins LIVE.
 *
 *     state     what is true                              event                  next state
 *     PENDING   listener: INIT was answered, the dialer   first valid DATA       LIVE (LINK_UP)
 *               has not yet proven that it can decrypt    another INIT, or 5 s   freed
 *     LIVE      frames are accepted and sent              replaced by the same
 *                                                         process                freed
 *                                                         silent, expelled,
 *                                                         superseded             ENDING
 *     ENDING    keys are wiped, the caller's LINK_DOWN    event is delivered     freed
 *               event waits
 *
 * The dialer's states (struct dial):
 *
 *     REST      no handshake is under way                 session needed, time   HELLO (sent)
 *     HELLO     waits for a COOKIE                        COOKIE                 INIT (sent)
 *                                                         refusal, no answer     REST, waits longer
 *     INIT      waits for a RESPONSE                      RESPONSE               REST, session LIVE
 *                                                         refusal, no answer     REST, waits longer
 */
#ifndef WIRE_SESSION_H
#define WIRE_SESSION_H

#include "wire/sessions/frame.h"
#include "wire/sessions/link.h"
#include "wire/sessions/search.h"
#include "wire/sessions/noise.h"
#include "wire/sessions/seal.h"
#include "wire/sessions/socket.h"
#include "wire/sessions/transit.h"

enum session_state {
	SESSION_PENDING = 1,
	SESSION_LIVE,
	SESSION_ENDING
};

struct session {
	/* Low 16 bits: the session's slot; high 16 bits: how often the slot was used. */
	uint32_t id;
	uint32_t remote_id; /* the other end's number for this session */
	enum session_state state;
	enum link_reason reason; /* reason of the end, in state ENDING */
	uint64_t tag;            /* the caller's number (link_set_tag) */
	struct keys_public key;
	enum keys_role role;
	char name[KEYS_NAME_SIZE];
	/* Random numbers of the other end's process, and of this process. */
	uint64_t instance, own_instance;
	uint32_t frame_most;        /* longest frame that both ends accept */
	struct socket_route route;  /* listener: the connection by which the newest frame arrived */
	struct seal_key send, receive;
	struct seal_window *window; /* owned */
	uint64_t counter;           /* counter of the next frame to send */
	uint64_t sent_bytes, received_bytes;
	int64_t since_us;           /* when the session entered its present state */
	int64_t last_received_us, last_sent_us;
	/* A keep-alive frame is sent after this time without another frame. */
	int64_t keep_alive_us;
	/* If longer than the link's silence_us: replaces it for this session. */
	int64_t silence_limit_us;
};

/* The state of an admitted key at a listener. It outlives the key's sessions. */
#define ADMITTED_SUPERSEDED 8
/* Number of handshakes of a shared key that may be under way at a time. */
#define ADMITTED_ISSUES 16
struct admitted_key {
	struct keys_public key;
	/* Numbers of the newest cookies used; older ones are replays. Only a key that several
	 * processes share has more than one, because their handshakes overtake each other. */
	uint64_t issues[ADMITTED_ISSUES];
	/* Numbers of replaced processes, which may not connect again. */
	uint64_t superseded[ADMITTED_SUPERSEDED];
	unsigned next_superseded;
};

/* A token bucket: it gains per_s tokens in a second and holds at most per_s. */
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
	struct noise noise;       /* state of the handshake, in DIAL_INIT */
	uint32_t reserved_id;     /* session number that the INIT has offered, in DIAL_INIT */
	/* DIAL_REST: when to try again; other states: when to stop waiting. */
	int64_t deadline_us;
	int64_t backoff_us;       /* length of the next pause before trying again */
	int64_t began_us;         /* when the last handshake began */
	int64_t answered_us;      /* when the other end last answered a handshake; 0: never */
	/* Time to wait for an answer, which doubles; 0: the initial value. */
	int64_t answer_wait_us;
	bool handshake_wanted;    /* the link needs a new session, so a handshake is to begin */
	/* Frame of the handshake that waits for room in trunk 0; NULL: none. Owned. */
	uint8_t *waiting;
	size_t waiting_size;
	/* The search for a reachable address, which runs while nothing is received. */
	char target[LINK_ADDRESS_SIZE]; /* the address as given; it may contain a name */
	struct search *search;    /* the search that is running; NULL: none */
	int64_t search_us;        /* when the next search may begin */
	int64_t search_pause_us;  /* pause between two searches */
	int64_t dialed_us;        /* when the connections were last opened; 0: never */
	struct error trouble;     /* reason why no address can be reached; "": unknown */
};

/* A frame that the test hook holds back. */
struct held_frame {
	uint8_t *bytes; /* the frame's bytes; NULL: no frame is held back */
	size_t size;
	unsigned trunk;
	struct socket_route route;
};

#define LINK_QUEUE 4
struct link_events {
	struct link_event queue[LINK_QUEUE];
	unsigned n;
};

/* Frames that the threads work on: a list of frames to seal for each trunk, and one list of frames
 * to open. */
struct link_transits {
	struct transits sealing[LINK_TRUNKS], opening;
};

struct link {
	struct link_options options;
	struct link_counters *counters, own_counters;
	/* Sockets of the trunks; a listener has only the first. */
	struct socket sockets[LINK_TRUNKS];
	bool blocked[LINK_TRUNKS];
	bool connected[LINK_TRUNKS]; /* the trunk has had a connection since it was last dialed */
	int64_t renewed_us; /* when a connection was last opened, or dialed again */
	unsigned turn;          /* trunk from which the next frame is received */
	bool listens, aes;
	struct link_transits transits;
	struct session **slots; /* (n_slots) sessions; NULL: the slot is free */
	uint32_t *uses;         /* (n_slots) how often each slot was used */
	uint32_t n_slots, n_sessions, n_ending;
	/* (n_records) states of the admitted keys that have connected. */
	struct admitted_key *records;
	size_t n_records, room_records;
	uint64_t admitted_version; /* keys_list_version at the last check of the sessions */
	uint8_t cookie_key[32];
	uint64_t last_issue;    /* issue number of the newest cookie */
	struct bucket inits, refusals;
	struct dial dial;
	struct link_events events; /* events that are delivered before another frame is received */
	int64_t next_scan_us;   /* when to check the sessions' deadlines */
	int64_t next_repair_us; /* when to check the connections */
	/* Address that a dialer dials; "": a name is being resolved. */
	char address[LINK_ADDRESS_SIZE];
	struct held_frame held;
};

/* ---- session.c ---- */
/* NULL: there is no such session. */
struct session *session_find(const struct link *link, uint32_t id);
/* Makes a session. id: number from session_reserve; 0: any free number. NULL: no free slot, or no
 * locked memory. */
struct session *session_new(struct link *link, uint32_t id);
/* Returns a number for session_new; 0: no slot is free. */
uint32_t session_reserve(struct link *link);
void session_free(struct link *link, struct session *s); /* wipes its keys */
/* Ends a session. A PENDING session is freed; a LIVE one becomes ENDING. */
void session_end(struct link *link, struct session *s, enum link_reason reason);
/* Returns true if the session is LIVE and its key may encrypt another frame. s may be NULL. */
bool session_may_send(const struct session *s);
/* Counts a frame that is to be sent. Asks for a new session before the key's limits are reached. */
void session_count_sent(struct link *link, struct session *s, size_t size, int64_t now_us);
/* Gives the LINK_DOWN event of an ENDING session and frees the session. Returns true if there was
 * one. */
bool session_next_ending(struct link *link, struct link_event *out);
/* Makes a session LIVE, ends the sessions that it replaces, and queues LINK_UP. */
void session_live(struct link *link, struct session *s, int64_t now_us);
/* Returns the record of a key, and makes one if there is none. NULL: no memory. */
struct admitted_key *admitted_key_of(struct link *link, const struct keys_public *key);
/* If the admitted list has changed, ends the sessions of removed keys. */
void session_check_admitted(struct link *link);
/* Returns the reason for refusing a key that keys_list_find has not found: barred or not
 * admitted. */
enum link_reason session_not_admitted(const struct link *link, const struct keys_public *key);
/* Takes a token from the bucket. Returns false if the bucket is empty. */
bool bucket_take(struct bucket *b, int64_t now_us);

/* ---- handshake.c ---- */
/* Each handshake_on_... handles one parsed frame. */
void handshake_on_hello(struct link *link, const struct frame *f,
	const struct socket_route *route, int64_t now_us);
void handshake_on_init(struct link *link, const struct frame *f, const struct socket_route *route,
	int64_t now_us);
void handshake_on_cookie(struct link *link, const struct frame *f, int64_t now_us);
void handshake_on_response(struct link *link, const struct frame *f, int64_t now_us);
void handshake_on_refuse(struct link *link, const struct frame *f, int64_t now_us);
/* Listener: answers with a refusal, at most REFUSALS_PER_S times in a second. */
void handshake_refuse(struct link *link, enum link_reason reason, const uint8_t *echo,
	const struct socket_route *route, int64_t now_us);
/* Dialer: begins a handshake that is due, or gives up waiting for an answer. */
void handshake_tick(struct link *link, int64_t now_us);
/* Dialer: sends the frame of a handshake that waits for room in trunk 0, if there is room now. */
void handshake_send_waiting(struct link *link);
/* Returns when handshake_tick has something to do; INT64_MAX: never. */
int64_t handshake_deadline_us(const struct link *link);
/* Dialer: asks for a new session. A listener ignores the call. */
void handshake_want(struct link *link, int64_t now_us);

/* ---- dial_search.c ---- */
/* Dialer: starts and ends searches for a reachable address, and redials. */
void dial_search_tick(struct link *link, int64_t now_us);
/* Returns when to call dial_search_tick; INT64_MAX: never. */
int64_t dial_search_deadline_us(const struct link *link);

/* ---- link.c ---- */
/* Counts a refused frame or connection. */
void link_refused(struct link *link, enum link_reason reason);
/* Sends a complete frame and always frees it. route: needed on listeners. 0 or -EAGAIN. */
int link_transmit(struct link *link, unsigned trunk, const struct socket_route *route,
	uint8_t *frame, size_t size);
void link_queue_event(struct link *link, const struct link_event *event);
/* Returns true if nanomsg would accept a frame now, and always for a listener, because nanomsg
 * cannot tell for a listener. */
bool link_is_writable(struct link *link, unsigned trunk);
/* Records that a trunk was dialed: none of its connections is open yet. */
void link_trunk_dialed(struct link *link, unsigned trunk);

/* ---- link_transit.c ---- */
/* Hands a frame to the threads if it is large, or if the threads have earlier frames of its
 * session. Returns true if the threads have the frame; transit_take returns it later. */
bool link_opens_later(struct link *link, const struct session *s, const struct frame *f,
	uint8_t *bytes, const struct socket_route *route);
/* Drops the frames of a session that are in transit, and waits for the threads that use its keys.
 * session 0: of all sessions. */
void link_drop_transits(struct link *link, uint32_t session);

#endif
