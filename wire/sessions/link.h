/* link.h - encrypted sessions over nanomsg sockets.
 *
 * A listening link is a raw REP socket and serves any number of peers. A dialing link is a raw REQ
 * socket and serves one peer. On raw sockets nanomsg neither resends nor matches answers by itself.
 * The SP header of a message tells the listener by which connection it arrived, and therefore where
 * an answer goes.
 *
 * A dialing link to another machine may open two more trunks: sockets of several connections each,
 * one for urgent messages and one for bulk. Several connections fill a long link sooner than one,
 * and a full trunk does not delay the others. A session's frames may use any trunk.
 * Most callers want post.h, which owns its links.
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
 * (receiver's session number, 64-bit counter) is associated data, and the counter is the nonce.
 * Frames already seen, or older than the window, are refused. A session survives the loss of its
 * connections. A frame that fails authentication is counted and dropped, and is answered with one
 * small frame at most. A stranger gets no memory beyond its connection.
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
#define LINK_CONNECTIONS_MOST 32 /* limit of connections of a trunk; trunk 0 has one connection */
#define LINK_ADDRESS_SIZE 160

/* The reason of a refusal or of a session's end. Frames contain these numbers: never change
 * them. */
enum link_reason {
	LINK_REASON_NONE = 0,
	LINK_MALFORMED,     /* the bytes are no frame of this protocol, or of an impossible size */
	LINK_VERSION_OTHER, /* another protocol version */
	LINK_BAD_SEAL,      /* authentication failed: tampered with, or the wrong key */
	LINK_REPLAY,        /* a frame or handshake seen before, or too old */
	LINK_NOT_ADMITTED,  /* the key is not on the admitted list */
	LINK_ROLE,          /* the key is admitted, but its role may not connect here */
	LINK_SUPERSEDED,    /* a newer process with the same key has replaced this session */
	LINK_TOO_MANY,      /* too many connections, sessions, or handshakes in this second */
	LINK_UNKNOWN_SESSION, /* the listener restarted, or dropped the session */
	LINK_OVERSIZE,        /* the frame is longer than agreed */
	LINK_SILENT,          /* nothing was received for too long */
	LINK_FLOOD,           /* the key exceeded its quota; it is barred until the list changes */
	LINK_REASON_COUNT
};
const char *link_reason_text(enum link_reason reason); /* returns the reason in words for people */

struct link_counters {
	/* Bytes of encrypted frames, including their headers. */
	uint64_t sent_bytes, received_bytes;
	uint64_t refused[LINK_REASON_COUNT];
	uint64_t handshakes;  /* number of completed handshakes */
	uint64_t blocked;     /* number of sends that found nanomsg's buffer full */
	/* Number of connections that ended, or were cut for an oversized frame. */
	uint64_t broken;
	uint32_t sessions, connections; /* number of sessions, and of connections, at present */
};

/* For tests only: decides the fate of each frame to be sent, and may change its bytes. Returns how
 * often to send it now (0: lose it, 2: double it), or -1 to delay it until another frame was
 * sent. */
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
	/* KEYS_ROLE_BIT mask of the roles whose keys may have several processes at a time. */
	uint32_t shared_roles;
	uint32_t sessions_most;   /* limit of a listener's sessions, including half-open ones */
	/* Length of the longest accepted frame, at least FRAME_LEAST_MOST bytes. */
	uint32_t frame_most;
	int64_t silence_us;       /* a session ends after so long without a frame */
	int64_t rekey_us;         /* age at which the dialer replaces a session */
	/* Number of connections of each further trunk of a dialing link to another machine. 0 or
	 * 1: the link has only trunk 0. */
	unsigned connections;
	bool no_aes; /* behaves as on a CPU without AES */
	/* Threads that seal and open the large frames; NULL: the caller does it. Borrowed. */
	struct sealers *sealers;
	const struct link_hook *hook;
	/* Returns the instance number that this process gave the process `instance` of that key, or
	 * 0 if it has no record of that process. If there is a record, the messages under way to
	 * that process are resumed. May be NULL. */
	uint64_t (*known)(void *context, const struct keys_public *key, uint64_t instance);
	void *known_context;
	struct link_counters *counters; /* borrowed; several links may share one */
};

/* Opens a listening link: gives *out (link_close). post_listen explains `address`, `bound` and the
 * errors. */
int link_listen(struct link **out, const struct link_options *options, const char *address,
	char *bound, struct error *err);
/* Opens a dialing link: gives *out (link_close). instance: identifies this process to the listener;
 * not 0. */
int link_dial(struct link **out, const struct link_options *options, const char *address,
	const struct keys_public *key, uint64_t instance, struct error *err);
void link_close(struct link *link); /* NULL is allowed */

/* Adds the number of this link's open connections, and of its broken ones, to the counters. */
void link_count_connections(const struct link *link, struct link_counters *into);

/* Opens a trunk beside trunk 0, unless it is open. -ENOTSUP: this link cannot have further trunks;
 * other errors as link_dial. */
int link_open_trunk(struct link *link, unsigned trunk);
/* Returns true if the trunk is open. */
bool link_has_trunk(const struct link *link, unsigned trunk);
/* Returns true if the trunk is open and has had a connection since it was last dialed. */
bool link_trunk_connected(const struct link *link, unsigned trunk);
/* Returns the number of connections of an open trunk of a dialing link. */
unsigned link_connections(const struct link *link, unsigned trunk);
/* Returns when a dialing link last opened a connection or dialed one again; 0: not since
 * link_dial. */
int64_t link_renewed_us(const struct link *link);
/* Opens connections until the trunk has this many. */
void link_widen(struct link *link, unsigned trunk, unsigned connections);
/* Returns why a dialing link reaches no address: the name, each address and its cause. "": the link
 * reaches an address, or the cause is not known yet. */
const char *link_trouble(const struct link *link);
/* Returns the address that a dialing link dials, in numbers. "": a name is being resolved. */
const char *link_address(const struct link *link);
/* Closes and reopens the connections of a trunk on which nothing arrives. */
void link_redial(struct link *link, unsigned trunk);

/* Returns a descriptor to poll for POLLIN; then call link_receive. */
int link_read_fd(const struct link *link, unsigned trunk);
/* Returns a descriptor to poll for POLLIN while link_blocked; then call link_tick. -1: the link
 * listens.
 */
int link_write_fd(const struct link *link, unsigned trunk);
/* Returns true if the trunk's buffer was full at the last send. */
bool link_blocked(const struct link *link, unsigned trunk);

enum link_kind {
	/* A new session began. If the session replaces one of the same instance, it keeps the
	 * tag. */
	LINK_UP = 1,
	LINK_DOWN,   /* the session ended; its number is free */
	LINK_DATA,   /* `data` was received and authenticated; size 0: a keep-alive frame */
	LINK_REFUSAL /* the listener refused the dialer, which keeps trying at longer intervals */
};

struct link_event {
	enum link_kind kind;
	uint32_t session;
	uint64_t tag;             /* number that link_set_tag attached; 0: none yet */
	uint8_t *data;            /* LINK_DATA: inside `owner`, which the caller releases */
	size_t size;
	void *owner;
	enum link_reason reason;  /* the reason of LINK_DOWN and LINK_REFUSAL */
	/* The fields below are set for LINK_UP. */
	struct keys_public key;
	enum keys_role role; /* role of the other end's key; 0 on a dialer */
	char name[KEYS_NAME_SIZE];
	uint64_t instance;        /* identifies the other end's process */
	uint64_t own_instance;    /* number by which the other end knows this process */
	uint32_t frame_most;      /* smaller one of the two ends' limits of a frame, bytes */
};

/* Gives the next event: 0, or -EAGAIN if there is none. Handles a bounded number of frames. */
int link_receive(struct link *link, int64_t now_us, struct link_event *out);
void link_release(void *owner); /* NULL is allowed */
/* Attaches the caller's number to a session; later events of the session carry it. */
void link_set_tag(struct link *link, uint32_t session, uint64_t tag);

/* Gives room for `size` bytes of a frame's content: the caller fills it and calls link_send, which
 * always frees it. NULL: out of memory. */
uint8_t *link_buffer(size_t size);
void link_buffer_free(uint8_t *content);
/* Encrypts and sends the content by an open trunk. 0; -EAGAIN: the trunk is full, the frame is
 * dropped; -ENOTCONN: no such session, or its keys are used up. On a listener, nanomsg may drop a
 * frame although the function returned 0. */
int link_send(struct link *link, uint32_t session, unsigned trunk, uint8_t *content, size_t size,
	int64_t now_us);

struct link_piece {
	const uint8_t *data;
	size_t size;
};
/* Bytes that end the content of a frame. The link borrows them until it calls release(context).
 * release may be NULL. */
#define LINK_PIECES 2
struct link_source {
	struct link_piece pieces[LINK_PIECES];
	void (*release)(void *context);
	void *context;
	bool at_once; /* the frame overtakes frames in transit */
};
/* As link_send, for content whose end is a source. If the link has threads, they encrypt a large
 * frame, and read the source where it lies if libcrypto can do that. Otherwise the source is copied
 * first. Frames of a trunk leave in the order of these calls. -EBUSY: enough frames are in transit;
 * other errors as link_send. The function always frees the content and releases the source, at once
 * or later. */
int link_send_from(struct link *link, uint32_t session, unsigned trunk, uint8_t *content,
	size_t size, const struct link_source *source, int64_t now_us);
/* Copies the source to the end of the content. */
void link_fill(uint8_t *content, size_t size, const struct link_source *source);
/* Sends the frames that the threads have sealed, as far as the trunks accept them. */
void link_transmit_sealed(struct link *link);
/* Returns true if frames wait for the threads that seal them, or wait for a trunk after that. */
bool link_in_transit(const struct link *link);
/* Returns true if link_receive has a frame that a thread has opened. */
bool link_has_opened(const struct link *link);
/* Returns true if so many frames are being opened that link_receive takes no more. */
bool link_full(const struct link *link);

/* Lets this session stay silent for this long, if that is longer than the link's silence_us. */
void link_set_silence_limit(struct link *link, uint32_t session, int64_t silence_us);
#define LINK_OVERHEAD    32 /* bytes of a frame beyond its content */
#define LINK_BUFFER_HEAD 16 /* bytes before the content; link_release takes their address */
#define LINK_CHUNK_LEAST 4096 /* smallest frame_most allowed */

/* Ends a session without an event. */
void link_drop(struct link *link, uint32_t session);

/* Does the periodic work: continues handshakes, ends silent sessions and those of expelled keys,
 * sends keep-alive frames, repairs connections. */
void link_tick(struct link *link, int64_t now_us);
/* Returns the time at which to call link_tick even if no descriptor is ready. 0: the link has an
 * event that no descriptor shows; call link_receive. The time can become earlier only in a call
 * with this link, or when the list of admitted keys changes. */
int64_t link_deadline_us(const struct link *link);

/* Keeps freed memory in the process. By default glibc returns every large buffer to the kernel when
 * it is freed. New buffers then cost page faults, which take two thirds of the throughput. Programs
 * that move tensors call this once, at their start. */
void link_tune_malloc(void);
/* Raises the limit of open files up to `wanted`, as far as the system allows. Returns the limit
 * then in force. A listener takes 3 files and one for each connection. A dialed peer takes 4 files,
 * and for each other trunk 3 files and one for each connection. */
uint64_t link_raise_files(uint64_t wanted);
/* Checks that the limit of open files leaves room for this many peers. -EMFILE: the limit is too
 * low, so a listener would accept no connection and its peers would dial in vain. */
int link_check_files(uint64_t peers, struct error *err);
/* Returns the limit of open files that link_check_files asks for. */
uint64_t link_files_for(uint64_t peers);

#endif
