/* session.h - the private parts of a link: sessions, records of keys, the handshake. Only the .c
 * files of this folder that implement links include it.
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
	/* Number of the session. The low 16 bits are the session's slot. The high 16 bits count
	 * how often the slot was used. */
	uint32_t id;
	uint32_t remote_id; /* number that the other end gave this session */
	enum session_state state;
	enum link_reason reason; /* in state ENDING: why the session ends */
	uint64_t tag;            /* the caller's number (link_set_tag) */
	struct keys_public key;
	enum keys_role role;
	char name[KEYS_NAME_SIZE];
	/* Random numbers that identify the other end's process, and this process. */
	uint64_t instance, own_instance;
	uint32_t frame_most;        /* longest frame that both ends accept */
	/* The connection on which the newest frame arrived; only for a listener. */
	struct socket_route route;
	struct seal_key send, receive;
	struct seal_window *window; /* owned */
	uint64_t counter;           /* number of the next frame to send */
	uint64_t sent_bytes, received_bytes;
	int64_t since_us;           /* time at which the session entered its present state */
	int64_t last_received_us, last_sent_us;
	/* If nothing was sent for this long, a keep-alive frame is due. */
	int64_t keep_alive_us;
	/* The session ends after this silence or after the link's silence_us, whichever is
	 * longer. */
	int64_t silence_limit_us;
};

/* A listener's record of an admitted key, which outlives the key's sessions. */
#define ADMITTED_SUPERSEDED 8
/* Number of handshakes that a shared key may have under way at a time. */
#define ADMITTED_ISSUES 16
struct admitted_key {
	struct keys_public key;
	/* Issue numbers of the newest used cookies. An older cookie counts as a replay. A shared
	 * key uses all entries, because handshakes of several processes may overtake each other.
	 * Any other key uses one entry. */
	uint64_t issues[ADMITTED_ISSUES];
	/* Instance numbers of replaced processes of this key. These processes may not connect
	 * again. */
	uint64_t superseded[ADMITTED_SUPERSEDED];
	unsigned next_superseded;
};

/* A token bucket, which limits a rate. The bucket gains per_s tokens a second, and holds at most
 * per_s tokens. */
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
	uint32_t reserved_id;     /* in DIAL_INIT: session number that the INIT contains */
	/* In DIAL_REST, time at which to start a handshake. In other states, time at which to
	 * stop waiting for an answer. */
	int64_t deadline_us;
	int64_t backoff_us;       /* length of the next pause after a failed handshake */
	int64_t began_us;         /* time at which the last handshake began */
	/* Time at which the other end last answered a handshake; 0: it has never answered. */
	int64_t answered_us;
	/* Time limit of the wait for an answer; 0: ANSWER_WAIT_US. The limit doubles after each
	 * wait in vain. */
	int64_t answer_wait_us;
	/* True: the link needs a new session, so a handshake must begin. */
	bool handshake_wanted;
	/* Frame of the handshake that waits for room in trunk 0; NULL: none. Owned. */
	uint8_t *waiting;
	size_t waiting_size;
	/* The search for a reachable address, which runs while nothing is received. */
	char target[LINK_ADDRESS_SIZE]; /* the address as given; it may contain a name */
	struct search *search;    /* the search that is running; NULL: none */
	int64_t search_us;        /* time from which the next search may begin */
	/* the last pause between two searches; the next pause is twice as long */
	int64_t search_pause_us;
	int64_t dialed_us;        /* time at which the connections were last opened; 0: never */
	struct error trouble;     /* reason why no address can be reached; "": unknown */
};

/* A frame that the test hook delays. */
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

/* Frames on which threads work: for each trunk a list of frames to seal, and a single list of
 * frames to open. */
struct link_transits {
	struct transits sealing[LINK_TRUNKS], opening;
};

struct link {
	struct link_options options;
	struct link_counters *counters, own_counters;
	/* Sockets of the trunks; a listener has only the first. */
	struct socket sockets[LINK_TRUNKS];
	bool blocked[LINK_TRUNKS];
	/* a connection was established after the trunk was last dialed. */
	bool connected[LINK_TRUNKS];
	int64_t renewed_us;          /* time at which a connection was last opened or redialed */
	unsigned turn;          /* trunk from which the next frame is received */
	bool listens, aes;
	struct link_transits transits;
	struct session **slots; /* n_slots slots for sessions; NULL: the slot is unused */
	uint32_t *uses;         /* number of times that each of the n_slots slots was used */
	uint32_t n_slots, n_sessions, n_ending;
	/* The n_records records of the admitted keys that have connected. */
	struct admitted_key *records;
	size_t n_records, room_records;
	/* The keys_list_version of the list with which the sessions were last compared. */
	uint64_t admitted_version;
	uint8_t cookie_key[32];
	uint64_t last_issue;    /* issue number of the newest cookie */
	struct bucket inits, refusals;
	struct dial dial;
	/* Events that link_receive gives before it receives another frame. */
	struct link_events events;
	int64_t next_scan_us;   /* time at which to check the sessions' deadlines */
	int64_t next_repair_us; /* time at which to check the connections */
	/* Numeric address that a dialer dials; "": the name is still being resolved. */
	char address[LINK_ADDRESS_SIZE];
	struct held_frame held;
};

/* ---- session.c ---- */
/* Returns the session with this number; NULL: there is none. */
struct session *session_find(const struct link *link, uint32_t id);
/* Makes a session. id: a number from session_reserve; 0: the function chooses a number. NULL: no
 * slot is free, or there is no locked memory. */
struct session *session_new(struct link *link, uint32_t id);
/* Reserves a session number for session_new; 0: no slot is free. */
uint32_t session_reserve(struct link *link);
void session_free(struct link *link, struct session *s); /* wipes the session's keys */
/* Ends a session. A PENDING session is freed at once. A LIVE session becomes ENDING. */
void session_end(struct link *link, struct session *s, enum link_reason reason);
/* Returns true if the session is LIVE and its key may encrypt another frame. s may be NULL. */
bool session_may_send(const struct session *s);
/* Counts a frame that is about to be sent. At half of the key's limits, asks for a new session. */
void session_count_sent(struct link *link, struct session *s, size_t size, int64_t now_us);
/* Gives the LINK_DOWN event of a session in state ENDING and frees the session. Returns false if
 * there is none. */
bool session_next_ending(struct link *link, struct link_event *out);
/* Makes a session LIVE, ends the sessions that it replaces, and queues a LINK_UP event. */
void session_live(struct link *link, struct session *s, int64_t now_us);
/* Returns the record of a key. Makes the record if there is none. NULL: no memory. */
struct admitted_key *admitted_key_of(struct link *link, const struct keys_public *key);
/* If the admitted list has changed, ends the sessions of keys that are not admitted now. */
void session_check_admitted(struct link *link);
/* To be called for a key that keys_list_find does not find. Returns the reason why the key is
 * refused: LINK_FLOOD if the key is barred, LINK_NOT_ADMITTED if not. */
enum link_reason session_not_admitted(const struct link *link, const struct keys_public *key);
/* Takes a token from the bucket. Returns false if the bucket is empty. */
bool bucket_take(struct bucket *b, int64_t now_us);

/* ---- handshake.c ---- */
/* Each of these functions handles one parsed frame of the handshake. */
void handshake_on_hello(struct link *link, const struct frame *f,
	const struct socket_route *route, int64_t now_us);
void handshake_on_init(struct link *link, const struct frame *f, const struct socket_route *route,
	int64_t now_us);
void handshake_on_cookie(struct link *link, const struct frame *f, int64_t now_us);
void handshake_on_response(struct link *link, const struct frame *f, int64_t now_us);
void handshake_on_refuse(struct link *link, const struct frame *f, int64_t now_us);
/* On a listener: counts a refusal and answers it, at most REFUSALS_PER_S times a second. */
void handshake_refuse(struct link *link, enum link_reason reason, const uint8_t *echo,
	const struct socket_route *route, int64_t now_us);
/* On a dialer: begins a handshake that is due, or stops waiting for an answer. */
void handshake_tick(struct link *link, int64_t now_us);
/* On a dialer: if a frame of the handshake waits for room in trunk 0 and there is room now, sends
 * the frame. */
void handshake_send_waiting(struct link *link);
/* Returns the time at which handshake_tick has work to do; INT64_MAX: never. */
int64_t handshake_deadline_us(const struct link *link);
/* On a dialer: asks for a new session. On a listener: does nothing. */
void handshake_want(struct link *link, int64_t now_us);

/* ---- dial_search.c ---- */
/* On a dialer: starts a search for a reachable address if a search is due, and dials the address
 * that a search has found. */
void dial_search_tick(struct link *link, int64_t now_us);
/* Returns the time at which dial_search_tick must be called; INT64_MAX: never. */
int64_t dial_search_deadline_us(const struct link *link);

/* ---- link.c ---- */
/* Counts a refused frame or connection. */
void link_refused(struct link *link, enum link_reason reason);
/* Sends a complete frame and always frees it. route: the connection to use; only listeners need
 * it. Returns 0 or -EAGAIN. */
int link_transmit(struct link *link, unsigned trunk, const struct socket_route *route,
	uint8_t *frame, size_t size);
void link_queue_event(struct link *link, const struct link_event *event);
/* Returns true if nanomsg would accept a frame now. Always returns true for a listener, because
 * nanomsg does not report a listener's room. */
bool link_is_writable(struct link *link, unsigned trunk);
/* Records that a trunk was dialed. None of its connections is open yet. */
void link_trunk_dialed(struct link *link, unsigned trunk);

/* ---- link_transit.c ---- */
/* Hands a received frame to the threads if the frame is large, or if the threads have earlier
 * frames of its session. Returns true if the threads own the frame from now on. transit_take
 * gives the frame back. */
bool link_opens_later(struct link *link, const struct session *s, const struct frame *f,
	uint8_t *bytes, const struct socket_route *route);
/* Drops all frames of a session that are in transit. session 0: drops the frames of all sessions.
 * Waits for threads that still use the session's keys. */
void link_drop_transits(struct link *link, uint32_t session);

#endif
