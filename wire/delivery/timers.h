/* timers.h - a set of timers whose earliest time is found at once: a binary heap. */
#ifndef WIRE_TIMERS_H
#define WIRE_TIMERS_H

#include <stddef.h>
#include <stdint.h>

struct timer {
	void *owner;
	int64_t at_us;
	size_t place; /* 1 + the timer's index in the heap; 0: the timer is not set */
};

struct timers {
	/* The n timers. The parent of the timer at place p is the timer at place p / 2. The time
	 * of a parent is never later than the times of its children. */
	struct timer **heap;
	size_t n, room;
};

/* Sets the time of a timer. INT64_MAX: unsets it. A timer that is set must stay at its address. */
void timers_set(struct timers *t, struct timer *timer, int64_t at_us);
/* Returns the earliest timer; NULL: none is set. */
struct timer *timers_first(const struct timers *t);
/* Returns the earliest time; INT64_MAX: no timer is set. */
int64_t timers_first_us(const struct timers *t);
void timers_fini(struct timers *t);

#endif
