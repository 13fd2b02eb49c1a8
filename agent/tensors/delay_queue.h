/* delay_queue.h - holds tensors back until they are due, to emulate the delays of a network.
 *
 * The queue is a heap ordered by time of departure. Tensors due at the same time leave in the order
 * in which they were added. The functions are pure; the caller sends.
 */
#ifndef AGENT_DELAY_QUEUE_H
#define AGENT_DELAY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/shared/route.h"
#include "agent/tensors/body.h"

/* A tensor that waits in the queue. If head.n_routes is 1, the tensor's route is the field
 * `route`. */
struct parcel {
	uint16_t to;
	struct msg_tensor head; /* its pointer `routes` is set when the message is sent */
	struct route route;
	struct body *body; /* the parcel is one user of the body; NULL: no bytes */
	/* Number of bytes of the tensor that were sent so far. A slice is sent in pieces. */
	size_t gone;
	/* Start of the measured delay. At this time the tensor's task had ended and the link was
	 * free. */
	int64_t ready_us;
	/* Time at which the tensor was computed. If the tensor is sent again, to a substitute,
	 * this is the time at which the reroute arrived. */
	int64_t computed_us;
	/* Time of departure. The tensor leaves later if its body is not ready by then. */
	int64_t due_us;
};

/* Removes the parcel from the users of its body. Does not free the struct parcel itself. */
void parcel_free(struct parcel *p);
/* Returns the size of the tensor, bytes. */
size_t parcel_bytes(const struct parcel *p);

struct delay_queue; /* opaque */

struct delay_queue *delay_queue_new(void);     /* freed by delay_queue_free */
void delay_queue_free(struct delay_queue *h);  /* frees its parcels too; NULL is allowed */
/* Adds a copy of *p. The queue owns p->body from now on, even after an error. -ENOMEM: the queue
 * has dropped the body. */
int delay_queue_add(struct delay_queue *h, const struct parcel *p);
/* Records that the body is ready, so that its parcels can leave. */
void delay_queue_ready(struct delay_queue *h, const struct body *body);
/* Returns the time from which the first parcel may leave; INT64_MAX: no parcel may leave. */
int64_t delay_queue_deadline_us(const struct delay_queue *h);
/* Removes the first parcel if it is due, and gives it to the caller with its body. -EAGAIN: none is
 * due. */
int delay_queue_take(struct delay_queue *h, int64_t now_us, struct parcel *p);
/* Drops the parcels for which `unwanted` returns true. Returns their number. */
size_t delay_queue_drop(struct delay_queue *h,
			bool (*unwanted)(const struct parcel *p, const void *context),
			const void *context);
/* Returns true if `wanted` returns true for a parcel in the queue. */
bool delay_queue_any(const struct delay_queue *h,
		     bool (*wanted)(const struct parcel *p, const void *context),
		     const void *context);
size_t delay_queue_count(const struct delay_queue *h);

#endif
