/* transit.h - the frames of a link that threads seal or open (sealers.h). Only link.c and
 * link_transit.c call these functions.
 *
 * The event loop numbers each frame and hands it to the threads. The loop takes the frames back
 * in the same order. Frames to seal are ordered within each trunk, frames to open within each
 * link. Before a session ends, the loop waits for threads that use its keys.
 */
#ifndef WIRE_TRANSIT_H
#define WIRE_TRANSIT_H

#include "wire/sessions/link.h"
#include "wire/sessions/sealers.h"
#include "wire/sessions/seal.h"
#include "wire/sessions/socket.h"

/* Smallest content of a frame that is handed to the threads, in bytes. Sealing a smaller frame
 * takes at most 20 microseconds. */
#define TRANSIT_LEAST ((size_t)24 << 10)
/* Limit of the bytes in transit. Each trunk has this limit for the frames that are being sealed,
 * and each link has this limit for the frames that are being opened. */
#define TRANSIT_MOST ((size_t)2 << 20)
/* Limit of the bytes that wait to be sealed for a trunk to another machine. The limit is small,
 * because an urgent frame that comes later must wait for these bytes. */
#define TRANSIT_FAR_MOST ((size_t)128 << 10)

struct transit {
	/* This must be the first member, because transit.c converts a pointer to the job into a
	 * pointer to its transit. */
	struct sealer_job job;
	struct transit *next;
	uint32_t session;
	struct socket_route route;  /* for opening: the connection on which the frame arrived */
	const struct seal_key *key; /* the session's key */
	uint64_t counter;
	uint8_t *frame;
	size_t size;               /* bytes of the frame's content */
	struct link_source source; /* for sealing: the bytes at the end of the content */
	int rc;                    /* for opening: the result, 0 or -EBADMSG */
};

/* A list of transits, in the order in which they were added. */
struct transits {
	struct transit *first, **end;
	size_t bytes;
};

/* Seals the frame, whose content ends with the source, and adds it to the list. by_loop: true if
 * the caller's thread seals the frame at once. *t is copied; its field `job` need not be set.
 * Returns false if there is no memory. */
bool transit_seal(struct transits *list, struct sealers *s, const struct transit *t, bool by_loop);
/* Opens the frame and adds it to the list. The arguments and the result are as in
 * transit_seal. */
bool transit_open(struct transits *list, struct sealers *s, const struct transit *t, bool by_loop);
/* If the job of the first transit in the list has ended, removes and gives the transit. The
 * caller then owns the frame. If the job has not ended, returns false. */
bool transit_take(struct transits *list, struct sealers *s, struct transit *out);
/* Returns true if a frame of the session is in transit. */
bool transit_has(const struct transits *list, uint32_t session);
/* Waits until the threads have finished with the frames of a session, and drops these frames.
 * session 0: all frames. */
void transit_drop(struct transits *list, struct sealers *s, uint32_t session);

#endif
