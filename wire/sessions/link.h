/* link.h - encrypted sessions over nanomsg sockets.
 *
 * A listening link is a raw REP socket and serves any number of peers. A dialing link is a raw REQ
 * socket and serves one peer. On raw sockets nanomsg neither resends messages nor matches answers
 * to requests. The header that nanomsg gives with a message (the SP header) tells the listener by
 * which connection the message arrived. The answer goes to this connection.
 *
 * A dialing link to another machine may open two more trunks: sockets of several connections
 * each, one for urgent messages and one for bulk. Several connections fill a long link sooner
 * than one connection, and a full trunk does not delay the other trunks. A session's frames may
 * use any trunk. Most callers use post.h, which owns its links.
 *
 * The handshake (noise.h) is Noise_IK_25519_ChaChaPoly_BLAKE2b, after one round trip for a cookie:
 *
 *     dialer                                  listener
 *     HELLO  version, nonce            -->
 *                                      <--    COOKIE  bound to connection and time
 *     INIT   cookie, e, es, s, ss      -->    checks the cookie first (cheap),
 *                                             then the key against the admitted list
 *                                      <--    RESPONSE  e, ee, se
 *     DATA                             -->    replaces an older session of this key only now
 *
 * Each direction has its own fresh key. A DATA frame is header | ciphertext | tag. The header
 * (receiver's session number, 64-bit counter) is associated data, and the counter is the nonce. The
 * receiver refuses a frame that it has seen before, or that is older than its window of counters. A
 * session survives the loss of its connections. The receiver drops and counts a frame that fails
 * authentication, and answers with one small frame at most. A stranger occupies no memory beyond
 * its connection.
 */
#ifndef WIRE_LINK_H
#define WIRE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/keys.h"

#define LINK_VERSION      2
#define LINK_TRUNKS 3 /* number of trunks; trunk 0 is always open */
#define LINK_TRUNK_BULK    2
/* Limit of the connections of one trunk; trunk 0 always has one connection. */
#define LINK_CONNECTIONS_MOST 32
#define LINK_ADDRESS_SIZE 160

/* Reasons why a frame was refused or a session ended. Frames contain these numbers: never change
 * them. */
enum link_reason {
	LINK_REASON_NONE = 0,
	LINK_MALFORMED,     /* the bytes are no frame of this protocol, or the size is impossible */
	LINK_VERSION_OTHER, /* the frame has another protocol version */
	LINK_BAD_SEAL,      /* authentication failed: the frame was changed, or the key is wrong */
	LINK_REPLAY,        /* the frame or cookie was used before, or is too old */
	LINK_NOT_ADMITTED,  /* the key is not on the admitted list */
	LINK_ROLE,          /* the key is admitted, but its role may not connect here */
	LINK_SUPERSEDED,    /* a newer process with the same key has replaced this session */
	LINK_TOO_MANY,      /* too many connections, sessions, or handshakes at a time */
	LINK_UNKNOWN_SESSION, /* the listener restarted, or dropped the session */
	LINK_OVERSIZE,        /* the frame is longer than the receiver's limit */
	LINK_SILENT,          /* nothing was received for too long */
	/* The key exceeded its quota, and is barred until an operator writes the list. */
	LINK_FLOOD,
	LINK_REASON_COUNT
};
const char *link_reason_text(enum link_reason reason); /* returns the reason in words for people */

struct link_counters {
	/* Bytes of encrypted frames, including their headers. */
	uint64_t sent_bytes, received_bytes;
	uint64_t refused[LINK_REASON_COUNT];
	uint64_t handshakes;  /* number of completed handshakes */
	uint64_t blocked;     /* number of attempts to send that found nanomsg's buffer full */
	/* Number of connections that have ended. An oversized frame ends its connection too. */
	uint64_t broken;
	/* Present number of sessions, and present number of connections. */
	uint32_t sessions, connections;
};

/* For tests only: decides how often each frame is sent, and may change the frame's bytes. 0: lose
 * the frame; 1: send the frame; 2: send the frame twice; -1: hold the frame until another frame
 * was sent; LINK_NO_ROOM: refuse the frame, like a trunk on which a large frame is still being
 * sent. */
enum { LINK_NO_ROOM = -2 };
struct link_hook {
	int (*fate)(void *context, uint8_t *frame, size_t size);
	void *context;
};

struct link; /* opaque */
struct sealers;
struct socket_route;

struct link_options {
	const struct keys_identity *identity; /* borrowed */
	const struct keys_list *admitted;     /* borrowed; listeners need it */
	uint32_t roles;           /* KEYS_ROLE_BIT mask of the roles that may connect; 0: any */
	/* KEYS_ROLE_BIT mask of the roles whose keys several processes may use at a time. */
	uint32_t shared_roles;
	/* Limit of a listener's sessions, including those whose handshake is not complete. */
	uint32_t sessions_most;
	/* Size in bytes of the longest frame that is accepted, at least FRAME_LEAST_MOST. */
	uint32_t frame_most;
	int64_t silence_us; /* a session ends if no frame arrives for this long */
	int64_t rekey_us;   /* age at which the dialer replaces a session by a new one */
	/* Number of connections of each trunk except trunk 0, for a dialing link to another
	 * machine. 0 or 1: the link has only trunk 0. */
	unsigned connections;
	bool no_aes; /* behave as on a CPU without AES instructions */
	/* Threads that seal and open large frames, borrowed; NULL: the caller's thread does it. */
	struct sealers *sealers;
	const struct link_hook *hook;
	/* Returns the number by which this process identified itself to the process `instance` of
	 * that key; 0: there is no such number. If there is a number, the exchange of messages
	 * with that process continues where it stopped. May be NULL. */
	uint64_t (*known)(void *context, const struct keys_public *key, uint64_t instance);
	void *known_context;
	struct link_counters *counters; /* borrowed; several links may share the same counters */
};

/* Opens a listening link. The caller closes *out with link_close. post_listen explains `address`,
 * `bound` and the errors. */
int link_listen(struct link **out, const struct link_options *options, const char *address,
	char *bound, struct error *err);
/* Opens a dialing link. The caller closes *out with link_close. instance: number that identifies
 * this process to the listener; not 0. */
int link_dial(struct link **out, const struct link_options *options, const char *address,
	const struct keys_public *key, uint64_t instance, struct error *err);
void link_close(struct link *link); /* NULL is allowed */

/* Adds the numbers of this link's open connections and of its ended connections to the counters. */
void link_count_connections(const struct link *link, struct link_counters *into);

/* Opens a trunk other than 0, unless it is open. -ENOTSUP: this link may have only trunk 0. The
 * other errors are those of link_dial. */
int link_open_trunk(struct link *link, unsigned trunk);
/* Returns true if the trunk is open. */
bool link_has_trunk(const struct link *link, unsigned trunk);
/* Returns true if the trunk is open, and a connection was established after the trunk was last
 * dialed. */
bool link_trunk_connected(const struct link *link, unsigned trunk);
/* Returns the number of connections of an open trunk of a dialing link. */
unsigned link_connections(const struct link *link, unsigned trunk);
/* Returns the time at which a dialing link last opened or redialed a connection of any trunk; 0:
 * none was opened or redialed after link_dial. */
int64_t link_renewed_us(const struct link *link);
/* Opens connections until their number in the trunk is `connections`. */
void link_widen(struct link *link, unsigned trunk, unsigned connections);
/* Returns the reason why a dialing link cannot reach its peer. The text has the peer's name, and
 * the cause for each address. "": an address was reached, or the cause is not known yet. */
const char *link_trouble(const struct link *link);
/* Returns the numeric address that a dialing link dials; "": the name is still being resolved. */
const char *link_address(const struct link *link);
/* Closes and reopens the connections of a trunk on which nothing arrives. */
void link_redial(struct link *link, unsigned trunk);

/* Returns a descriptor to poll for POLLIN. When the descriptor is readable, call link_receive. */
int link_read_fd(const struct link *link, unsigned trunk);
/* Returns a descriptor to poll for POLLIN while link_blocked holds. When the descriptor is
 * readable, call link_tick. -1: the link listens. */
int link_write_fd(const struct link *link, unsigned trunk);
/* Returns true if the last send found the trunk's buffer full, or found no connection. */
bool link_blocked(const struct link *link, unsigned trunk);

enum link_kind {
	/* A new session began. If the new session replaces a session of the same instance, the
	 * new session gets the tag of the replaced session. */
	LINK_UP = 1,
	LINK_DOWN, /* the session ended, and its number may be reused */
	/* A frame with the content `data` was received and authenticated; size 0: a keep-alive
	 * frame. */
	LINK_DATA,
	/* The listener refused the handshake; the dialer tries again after growing pauses. */
	LINK_REFUSAL
};

struct link_event {
	enum link_kind kind;
	uint32_t session;
	/* The caller's number for the session (link_set_tag); 0: none yet. */
	uint64_t tag;
	/* LINK_DATA: the content, inside `owner`; the caller frees `owner` with link_release. */
	uint8_t *data;
	size_t size;
	void *owner;
	/* LINK_DOWN: the reason why the session ended. LINK_REFUSAL: the reason why the listener
	 * refused. */
	enum link_reason reason;
	/* The fields below are set for LINK_UP. */
	struct keys_public key;
	enum keys_role role; /* listener: role of the dialer's key; dialer: 0 */
	char name[KEYS_NAME_SIZE];
	uint64_t instance;        /* identifies the other end's process */
	uint64_t own_instance;    /* number by which the other end knows this process */
	uint32_t frame_most;      /* longest frame that both ends accept, in bytes */
};

/* Gives the next event: 0, or -EAGAIN if there is none. Handles a bounded number of frames. */
int link_receive(struct link *link, int64_t now_us, struct link_event *out);
void link_release(void *owner); /* NULL is allowed */
/* Attaches the caller's number to a session. Later events of the session contain this number. */
void link_set_tag(struct link *link, uint32_t session, uint64_t tag);

/* Allocates `size` bytes for the content of a frame. The caller fills these bytes and calls
 * link_send, which always frees the bytes. NULL: out of memory. */
uint8_t *link_buffer(size_t size);
void link_buffer_free(uint8_t *content);
/* Encrypts the content and sends it on an open trunk. Returns 0, or -EAGAIN: the trunk is full,
 * and the frame was dropped; -ENOTCONN: there is no such session, or its keys are used up. On a
 * listener, nanomsg may drop a frame although 0 was returned. */
int link_send(struct link *link, uint32_t session, unsigned trunk, uint8_t *content, size_t size,
	int64_t now_us);

struct link_piece {
	const uint8_t *data;
	size_t size;
};
/* Bytes that form the end of a frame's content. The link borrows them until it calls
 * release(context). release may be NULL. */
#define LINK_PIECES 2
struct link_source {
	struct link_piece pieces[LINK_PIECES];
	void (*release)(void *context);
	void *context;
	bool at_once; /* the frame may overtake frames that the threads are sealing */
};
/* Sends a frame as link_send does, but the content ends with the bytes of `source`. If the link
 * has threads, a thread encrypts a large frame. If libcrypto can be used, a thread encrypts
 * directly from the source, which saves a copy. Frames of a trunk are sent in the order of these
 * calls.
 *
 * Always frees the content and releases the source, at once or later. -EBUSY: too many bytes are
 * already being sealed. The other errors are those of link_send. */
int link_send_from(struct link *link, uint32_t session, unsigned trunk, uint8_t *content,
	size_t size, const struct link_source *source, int64_t now_us);
/* Copies the bytes of the source to the end of the content. */
void link_fill(uint8_t *content, size_t size, const struct link_source *source);
/* Sends the frames that threads have sealed, until the trunks are full. */
void link_transmit_sealed(struct link *link);
/* Returns true if threads work on frames of the link, or have sealed or opened frames that are
 * not yet sent or accepted. */
bool link_in_transit(const struct link *link);
/* Returns true if link_receive has a frame that a thread has opened. */
bool link_has_opened(const struct link *link);
/* Returns true if so many bytes are being opened that link_receive takes no more frames. */
bool link_full(const struct link *link);

/* Raises the limit of this session's silence: the session ends after silence_us without a frame.
 * Has no effect if the link's own silence_us is longer. */
void link_set_silence_limit(struct link *link, uint32_t session, int64_t silence_us);
#define LINK_OVERHEAD    32 /* bytes of a frame beyond its content */
/* Bytes before the content; link_release takes the address of the first of them. */
#define LINK_BUFFER_HEAD 16
#define LINK_CHUNK_LEAST 4096 /* smallest frame_most allowed */

/* Ends a session and gives no event for it. */
void link_drop(struct link *link, uint32_t session);

/* Does the periodic work: continues handshakes, ends silent sessions and sessions of removed keys,
 * sends keep-alive frames, repairs connections. */
void link_tick(struct link *link, int64_t now_us);
/* Returns the time at which to call link_tick even if no descriptor is ready. 0: an event is
 * waiting although no descriptor is readable, so call link_receive. Two things can make this time
 * earlier: a call with this link, and a change of the list of admitted keys. */
int64_t link_deadline_us(const struct link *link);

/* Makes malloc keep freed memory in the process. By default glibc returns each large buffer to
 * the kernel when it is freed. New buffers then cause page faults, which cost two thirds of the
 * throughput. Programs that send tensors call this function at their start. */
void link_tune_malloc(void);
/* Raises the limit of open files towards `wanted`, as far as the system allows. Returns the new
 * limit. A listener takes 3 files, and one for each connection. A dialed peer takes 4 files. Each
 * further trunk to a peer takes 3 files, and one for each connection. */
uint64_t link_raise_files(uint64_t wanted);
/* Checks that the limit of open files suffices for this many peers. -EMFILE: the limit is too low.
 * A listener would then accept no connection, and its peers would dial in vain. */
int link_check_files(uint64_t peers, struct error *err);
/* Returns the limit of open files that suffices for this many peers. */
uint64_t link_files_for(uint64_t peers);

#endif
