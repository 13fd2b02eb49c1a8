/* clock.h - the two clocks of a machine. Libraries get times as arguments; programs read them
 * here. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Returns microseconds since an arbitrary start. Never goes back. Shared by all processes of a
 * machine. */
int64_t clock_monotonic_us(void);
/* Returns microseconds since 1970. May jump, so it is shown and recorded, and no decision depends
 * on it. */
int64_t clock_wall_us(void);

#endif
