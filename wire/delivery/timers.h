/* timers.h - many times, of which the earliest is found at once: a binary heap. */
#ifndef WIRE_TIMERS_H
#define WIRE_TIMERS_H

#include <stddef.h>
#include <stdint.h>

struct timer {
	void *owner;
	int64_t at_us;
	size_t place; /* 1 + the timer's index in the heap; 0: not set */
};

struct timers {
	/* (n) no timer is earlier than its parent, which has half of its `place`. */
	struct timer **heap;
	size_t n, room;
};

/* Sets the time of a timer, which must stay at its address until it is unset. INT64_MAX: unsets
 * it. */
void timers_set(struct timers *t, struct timer *timer, int64_t at_us);
/* Returns the earliest timer; NULL: none is set. */
struct timer *timers_first(const struct timers *t);
/* Returns the earliest time; INT64_MAX: no timer is set. */
int64_t timers_first_us(const struct timers *t);
void timers_fini(struct timers *t);

#endif
