/* link.h - nanomsg sockets with sealed sessions over them.
 *
 * A listening link is a raw REP socket and serves any number of peers; a dialing link is a raw REQ
 * socket and serves one. Raw, because then nothing is resent or matched behind our back, and a
 * message's SP header tells the listener which connection it came by and where an answer goes.
 *
 * A dialing link to another machine may have two lanes more, sockets of several connections each, for
 * what is to be quick and for bulk: a long way is filled by several connections sooner than by one, and
 * what waits in one lane is in nobody's way in another. A session's frames go by any of them.
 * Most callers want post.h, which owns its links.
 *
 * The handshake (noise.h) is Noise_IK_25519_ChaChaPoly_BLAKE2b, after one round trip for a cookie:
 *
 *     dialer                                  listener
 *     HELLO  version, nonce            -->
 *                                      <--    COOKIE  bound to nonce, connection and time
 *     INIT   cookie, e, es, s, ss      -->    checks the cookie (no curve work for those without),
 *                                             then the key against the admitted list
 *                                      <--    RESPONSE  e, ee, se
 *     DATA                             -->    only now is an older session of that key replaced
 *
 * Each direction has its own fresh key. A DATA frame is header | ciphertext | tag; the header
 * (receiver's session number, 64-bit counter) is associated data and the counter is the nonce.
 * Frames already seen, or older than the window, are refused. Sessions outlive the connections
 * under them. What cannot be proven is counted and dropped, and never answered with more than
 * one small frame. A stranger gets no memory beyond its connection.
 */
#ifndef WIRE_LINK_H
#define WIRE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/keys.h"

#define LINK_VERSION      2
#define LINK_LANES        3 /* the first is always there */
#define LINK_LANE_BULK    2
#define LINK_CONNECTIONS_MOST 32 /* of each other one */
#define LINK_ADDRESS_SIZE 160

/* Why something was refused or a session ended. Numbers go over the wire: never renumber. */
enum link_reason {
	LINK_REASON_NONE = 0,
	LINK_MALFORMED,    /* not a frame of ours, or one of impossible size */
	LINK_VERSION_OTHER,/* another protocol version */
	LINK_BAD_SEAL,     /* authentication failed: tampered with, or the wrong key */
	LINK_REPLAY,       /* frame or handshake seen before, or too old */
	LINK_NOT_ADMITTED, /* the key is not on the list (any more) */
	LINK_ROLE,         /* admitted, but not in a role that may connect here */
	LINK_SUPERSEDED,   /* a newer process with the same key has taken over */
	LINK_TOO_MANY,     /* connections, sessions, or handshakes in this second */
	LINK_UNKNOWN_SESSION, /* the listener restarted, or dropped the session */
	LINK_OVERSIZE,     /* longer than agreed */
	LINK_SILENT,       /* nothing heard for too long */
	LINK_FLOOD,        /* it sent more than it may: barred until the list changes */
	LINK_REASON_COUNT
};
const char *link_reason_text(enum link_reason reason); /* for people */

struct link_counters {
	uint64_t sent_frames, sent_bytes, received_frames, received_bytes; /* sealed, with headers */
	uint64_t refused[LINK_REASON_COUNT];
	uint64_t handshakes;  /* completed */
	uint64_t blocked;     /* times nanomsg's buffer was full */
	uint64_t broken;      /* connections that ended, those cut for oversize among them */
	uint32_t sessions, connections; /* now */
};

/* Tests only: decides the fate of a frame about to leave. May change its bytes. Returns how many
 * times to send it now (0: lost, 2: doubled), or -1 to hold it back until another was sent. */
struct link_hook {
	int (*fate)(void *context, uint8_t *frame, size_t size);
	void *context;
};

struct link; /* opaque */
struct socket_route;

/* Zero asks for the default where one is given. */
struct link_options {
	const struct keys_identity *identity; /* borrowed */
	const struct keys_list *admitted;     /* borrowed; listeners need it */
	uint32_t roles;           /* KEYS_ROLE_BIT mask; 0: any */
	uint32_t sessions_most;   /* of a listener, half open ones included */
	uint32_t frame_most;      /* longest frame taken, at least FRAME_LEAST_MOST */
	int64_t silence_us;
	int64_t rekey_us;         /* a session is replaced when it is so old; by the dialer */
	unsigned connections;     /* of a dialing link's other lanes, to another machine; 0, 1: it has none */
	bool no_aes;              /* as on a CPU without it */
	const struct link_hook *hook;
	/* The instance number under which this process knows the process `instance` of that key, or 0
	 * when it knows it not: what was agreed with it before then holds on. May be NULL. */
	uint64_t (*known)(void *context, const struct keys_public *key, uint64_t instance);
	void *known_context;
	struct link_counters *counters; /* borrowed; shared between links at will */
};

/* Gives *out (link_close). Address, bound and errors: post_listen. */
int link_listen(struct link **out, const struct link_options *options, const char *address,
	char *bound, struct error *err);
/* instance: how this process names its record of the listener; not 0. */
int link_dial(struct link **out, const struct link_options *options, const char *address,
	const struct keys_public *key, uint64_t instance, struct error *err);
void link_close(struct link *link); /* NULL is allowed */

/* Adds this link's connections to the counters, which link itself does not keep. */
void link_count_connections(const struct link *link, struct link_counters *into);

/* Opens another lane, if it can have it and has it not. -ENOTSUP it cannot; else as link_dial. */
int link_open_lane(struct link *link, unsigned lane);
/* The lane is open. */
bool link_has_lane(const struct link *link, unsigned lane);
/* How many connections a lane has, and gives it so many if it has fewer. It must be open, and a dialing link's. */
unsigned link_connections(const struct link *link, unsigned lane);
void link_widen(struct link *link, unsigned lane, unsigned connections);
/* Connects a lane anew: nothing comes through. */
void link_redial(struct link *link, unsigned lane);

int link_read_fd(const struct link *link, unsigned lane);
/* To poll for POLLIN while link_blocked; then call link_tick. -1 on listeners. */
int link_write_fd(const struct link *link, unsigned lane);
bool link_blocked(const struct link *link, unsigned lane);

enum link_kind {
	LINK_UP = 1, /* a session; `tag` is its predecessor's when it replaces one of the same instance */
	LINK_DOWN,   /* it ended; its number is free */
	LINK_DATA,   /* `data` was received and proven */
	LINK_NO      /* the listener says no; the dialer goes on trying, slower */
};

struct link_event {
	enum link_kind kind;
	uint32_t session;
	uint64_t tag;             /* as set by link_set_tag; 0 */
	uint8_t *data;            /* LINK_DATA: in `owner`, which is given (link_release) */
	size_t size;
	void *owner;
	enum link_reason reason;  /* LINK_DOWN, LINK_NO */
	struct keys_public key;   /* LINK_UP, from here on */
	enum keys_role role;      /* 0 on a dialer */
	char name[KEYS_NAME_SIZE];
	uint64_t instance;        /* the other end's, */
	uint64_t own_instance;    /* and ours */
	uint32_t frame_most;      /* the smaller of both */
};

/* The next event. 0 or -EAGAIN. Handles a bounded number of frames a call. */
int link_receive(struct link *link, int64_t now_us, struct link_event *out);
void link_release(void *owner); /* NULL is allowed */
void link_set_tag(struct link *link, uint32_t session, uint64_t tag);

/* Room for a sealed frame with `size` bytes of content: write them at the returned place, then
 * link_send, which takes the buffer whatever happens. NULL: out of memory. */
uint8_t *link_buffer(size_t size);
void link_buffer_free(uint8_t *content);
/* By a lane that it has. 0; -EAGAIN the lane is full (the frame is gone); -ENOTCONN no such session,
 * or its keys are used up. On a listener 0 promises nothing. */
int link_send(struct link *link, uint32_t session, unsigned lane, uint8_t *content, size_t size,
	int64_t now_us);
/* The session is silent only after so long, if that is more than the link's silence_us. */
void link_set_patience(struct link *link, uint32_t session, int64_t silence_us);
/* Bytes a frame has beyond its content, and those before it (link_release takes that address). */
#define LINK_OVERHEAD    32
#define LINK_BUFFER_HEAD 16
#define LINK_CHUNK_LEAST 4096 /* least frame_most */

/* Ends a session, without an event. */
void link_drop(struct link *link, uint32_t session);

/* Handshakes, silence, keep-alive, expelled keys. */
void link_tick(struct link *link, int64_t now_us);
/* When link_receive should be called though nothing came. */
int64_t link_deadline_us(const struct link *link);

/* glibc hands big buffers back to the kernel at every free and faults them in again, which costs
 * two thirds of the throughput. Programs that move tensors call this once, first thing. */
void link_tune_malloc(void);
/* Raises the limit of open files as far as it may go, at most to `wanted`; returns what it is then.
 * A dialed peer takes 4 files, and for each other lane 3 and one a connection; a
 * connected one takes one a connection, a listener 3. */
uint64_t link_raise_files(uint64_t wanted);

#endif
