/* clock.h - the two clocks. Libraries take times as arguments; programs read them here. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Microseconds since an arbitrary start; never goes back. One machine's processes share it. */
int64_t clock_monotonic_us(void);
/* Microseconds since 1970; may jump. For people and records only, never for deciding. */
int64_t clock_wall_us(void);

#endif
