/* link.h - one nanomsg socket with sealed sessions over it.
 *
 * A listening link is a raw REP socket and serves any number of peers; a dialing link is a raw REQ
 * socket and serves one. Raw, because then nothing is resent or matched behind our back, and a
 * message's SP header tells the listener which connection it came by and where an answer goes.
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

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/keys.h"

#define LINK_VERSION      1
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
	LINK_TOO_MANY,     /* sessions, or handshakes in this second */
	LINK_UNKNOWN_SESSION, /* the listener restarted, or dropped the session */
	LINK_OVERSIZE,     /* longer than agreed */
	LINK_SILENT,       /* nothing heard for too long */
	LINK_REASON_COUNT
};
const char *link_reason_text(enum link_reason reason); /* for people */

struct link_counters {
	uint64_t sent_frames, sent_bytes, received_frames, received_bytes; /* sealed, with headers */
	uint64_t refused[LINK_REASON_COUNT];
	uint64_t handshakes;  /* completed */
	uint64_t blocked;     /* times nanomsg's buffer was full */
	uint32_t sessions;    /* now */
};

/* Tests only: decides the fate of a frame about to leave. May change its bytes. Returns how many
 * times to send it now (0: lost, 2: doubled), or -1 to hold it back until another was sent. */
struct link_hook {
	int (*fate)(void *context, uint8_t *frame, size_t size);
	void *context;
};

/* glibc hands big buffers back to the kernel at every free and faults them in again, which costs
 * two thirds of the throughput. Programs that move tensors call this once, first thing. */
void link_tune_malloc(void);

#endif
