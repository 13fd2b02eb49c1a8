/* device_clock.h - measures how long this node's device is busy, and what it waits for.
 *
 * The parts of the agent add the times in which a state was true (wire/device_time.h). Times of
 * several states may overlap; the first state of the enum counts. Whatever no state covers are
 * waits for others. Times may be added late and in any order. With more than
 * DEVICE_CLOCK_INTERVALS separate times, the shortest pauses between them count as times of the
 * state. Pure: times are arguments.
 */
#ifndef AGENT_DEVICE_CLOCK_H
#define AGENT_DEVICE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "wire/device_time.h"

enum { DEVICE_CLOCK_INTERVALS = 1024 };

struct device_clock; /* opaque */

struct device_clock *device_clock_new(void);      /* device_clock_free */
void device_clock_free(struct device_clock *x); /* NULL is allowed */

/* Begins a period, unless one has begun. */
void device_clock_begin(struct device_clock *x, int64_t now_us);
/* Adds the time from from_us to to_us to a state other than DEVICE_OTHERS. The part before the
 * period is ignored. */
void device_clock_add(struct device_clock *x, enum device_state state, int64_t from_us,
		      int64_t to_us);
/* Ends the period and begins the next one. What was added after until_us belongs to the next. */
void device_clock_end(struct device_clock *x, int64_t until_us);
/* Returns the times of the last period that has ended; zeros: none has. */
struct device_time device_clock_last(const struct device_clock *x);
/* Returns the greatest number of separate times of a state; for tests. */
size_t device_clock_intervals(const struct device_clock *x);
/* Forgets both periods. */
void device_clock_forget(struct device_clock *x);

#endif
