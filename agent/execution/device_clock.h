/* device_clock.h - measures how long this node's device is busy, and what it waits for.
 *
 * The other modules add the times in which a state was true (wire/device_time.h). If several
 * states are true at one time, the first of them in the enum counts. A time without a state is a
 * wait for other nodes. Times may be added late and in any order. If a state has more than
 * DEVICE_CLOCK_INTERVALS separate times, the shortest pauses between these times count as part of
 * the state. The functions are pure: the caller gives all times.
 */
#ifndef AGENT_DEVICE_CLOCK_H
#define AGENT_DEVICE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "wire/device_time.h"

enum { DEVICE_CLOCK_INTERVALS = 1024 };

struct device_clock; /* opaque */

struct device_clock *device_clock_new(void);    /* freed by device_clock_free */
void device_clock_free(struct device_clock *x); /* NULL is allowed */

/* Begins a period, unless one has begun. */
void device_clock_begin(struct device_clock *x, int64_t now_us);
/* Adds the time from from_us to to_us to a state other than DEVICE_OTHERS. Ignores the part of
 * this time that lies before the present period. */
void device_clock_add(struct device_clock *x, enum device_state state, int64_t from_us,
		      int64_t to_us);
/* Ends the period at until_us and begins the next period. Times after until_us belong to the next
 * period. */
void device_clock_end(struct device_clock *x, int64_t until_us);
/* Returns the times of the states in the last completed period; all 0: no period is complete. */
struct device_time device_clock_last(const struct device_clock *x);
/* Returns the largest number of separate intervals stored for any state; for tests. */
size_t device_clock_intervals(const struct device_clock *x);
/* Forgets the present and the last period. */
void device_clock_forget(struct device_clock *x);

#endif
