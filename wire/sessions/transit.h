/* transit.h - the frames of a link that threads seal or open (sealers.h). For link.c and session.c.
 *
 * The loop gives each frame its counter and hands it to the threads. It takes the frames back in
 * the order in which it handed them over: sealed ones by trunk, opened ones by link. A session that
 * ends waits for the threads that use its keys.
 */
#ifndef WIRE_TRANSIT_H
#define WIRE_TRANSIT_H

#include "wire/sessions/link.h"
#include "wire/sessions/sealers.h"
#include "wire/sessions/seal.h"
#include "wire/sessions/socket.h"

/* Frames from this size on are handed to the threads. Sealing a smaller frame takes at most 20
 * microseconds. */
#define TRANSIT_LEAST ((size_t)24 << 10)
/* Limit of bytes in transit, for sealing on each trunk and for opening on each link. */
#define TRANSIT_MOST ((size_t)2 << 20)
/* Limit of bytes in transit for sealing on a trunk to another machine. It is small, because later
 * frames must wait for all sealed frames. */
#define TRANSIT_FAR_MOST ((size_t)128 << 10)

struct transit {
	/* Must be the first member: a pointer to the job is a pointer to its transit. */
	struct sealer_job job;
	struct transit *next;
	uint32_t session;
	struct socket_route route; /* opening: the connection by which the frame arrived */
	const struct seal_key *key; /* the session's key */
	uint64_t counter;
	uint8_t *frame;
	size_t size;               /* bytes of the frame's content */
	struct link_source source; /* sealing: what ends the content */
	int rc;                    /* opening: the result, 0 or -EBADMSG */
};

/* List of transits in order. */
struct transits {
	struct transit *first, **end;
	size_t bytes;
};

/* Seals the frame with the source at its end, and adds it to the transits. by_loop: the caller's
 * thread does the work. t: copied; its job need not be set. Returns false without memory. */
bool transit_seal(struct transits *list, struct sealers *s, const struct transit *t, bool by_loop);
/* Opens the frame, and adds it to the transits, as transit_seal does. */
bool transit_open(struct transits *list, struct sealers *s, const struct transit *t, bool by_loop);
/* Takes the first transit, if its job has ended. Returns false if there is none. The caller then
 * owns the frame. */
bool transit_take(struct transits *list, struct sealers *s, struct transit *out);
/* Returns true if a frame of the session is in transit. */
bool transit_has(const struct transits *list, uint32_t session);
/* Drops the frames of a session, or all frames if session is 0. Waits for their threads. */
void transit_drop(struct transits *list, struct sealers *s, uint32_t session);

#endif
