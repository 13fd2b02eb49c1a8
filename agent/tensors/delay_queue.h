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

/* A tensor that is held. If head.n_routes is 1, its route is `route`. */
struct parcel {
	uint16_t to;
	struct msg_tensor head; /* its routes pointer is set when it is sent */
	struct route route;
	struct body *body; /* owned: one user; NULL: no bytes */
	size_t gone;       /* bytes of the tensor that were already sent, in pieces */
	/* When the task had ended and the link was free; the measured delay counts from then. */
	int64_t ready_us;
	int64_t computed_us; /* when the tensor was computed, or was asked for again */
	/* When the tensor is due to leave; it leaves later if its body is not ready by then. */
	int64_t due_us;
};

/* Drops the body. */
void parcel_free(struct parcel *p);
/* Returns the bytes of the tensor. */
size_t parcel_bytes(const struct parcel *p);

struct delay_queue; /* opaque */

struct delay_queue *delay_queue_new(void); /* delay_queue_free */
void delay_queue_free(struct delay_queue *h);  /* frees its parcels too; NULL is allowed */
/* Copies *p and owns its body from now on, also when it fails (-ENOMEM: the body is freed). */
int delay_queue_add(struct delay_queue *h, const struct parcel *p);
/* Lets the parcels of this body leave, once the body is ready. */
void delay_queue_ready(struct delay_queue *h, const struct body *body);
/* Returns when the first parcel is due; INT64_MAX: none. */
int64_t delay_queue_deadline_us(const struct delay_queue *h);
/* Removes the first parcel if it is due: 0, and *p owns its body. -EAGAIN: none is due. */
int delay_queue_take(struct delay_queue *h, int64_t now_us, struct parcel *p);
/* Drops the parcels for which `unwanted` is true. Returns their number. */
size_t delay_queue_drop(struct delay_queue *h,
			bool (*unwanted)(const struct parcel *p, const void *context),
			const void *context);
/* Returns true if `wanted` is true for a parcel. */
bool delay_queue_any(const struct delay_queue *h,
		     bool (*wanted)(const struct parcel *p, const void *context),
		     const void *context);
size_t delay_queue_count(const struct delay_queue *h);

#endif
