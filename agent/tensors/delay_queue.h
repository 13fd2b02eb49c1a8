/* delay_queue.h - tensors that are to leave later: the emulated network's delays.
 *
 * A heap by time of departure. Tensors of the same time leave in the order they came.
 * Pure: `now` comes in; sending is the caller's.
 */
#ifndef AGENT_DELAY_QUEUE_H
#define AGENT_DELAY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/execution/route.h"

/* One tensor under way. The message's routes are `route`, when it has any; n_routes says so. */
struct parcel {
	uint16_t to;
	struct msg_tensor head; /* its routes pointer is set when it is sent */
	struct route route;
	void *body;             /* owned (malloc), */
	uint32_t *users;        /* by so many parcels together (malloc); NULL: by this one alone */
	size_t bytes;
	size_t gone;            /* bytes of it that have left, in pieces */
	int64_t ready_us;       /* when its task ended: what the hold is measured from */
	int64_t due_us;         /* when it leaves */
};

/* Lets go of its body. */
void parcel_free(struct parcel *p);

struct delay_queue; /* opaque */

struct delay_queue *delay_queue_new(void); /* delay_queue_free */
void delay_queue_free(struct delay_queue *h);  /* and what it holds; NULL is allowed */
/* Copies *p and owns its body from now on, also when it fails (-ENOMEM: the body is freed). */
int delay_queue_add(struct delay_queue *h, const struct parcel *p);
int64_t delay_queue_deadline_us(const struct delay_queue *h); /* of the first; INT64_MAX none */
/* Takes the first out if it is due: 0 and *p, its body the caller's; -EAGAIN. */
int delay_queue_take(struct delay_queue *h, int64_t now_us, struct parcel *p);
/* Drops those that `unwanted` says. Returns how many. */
size_t delay_queue_drop(struct delay_queue *h,
			bool (*unwanted)(const struct parcel *p, const void *context),
			const void *context);
/* Whether it holds one that `wanted` says. */
bool delay_queue_any(const struct delay_queue *h,
		     bool (*wanted)(const struct parcel *p, const void *context),
		     const void *context);
size_t delay_queue_count(const struct delay_queue *h);

#endif
