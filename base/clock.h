/* clock.h - the clocks of a machine and of this process. Libraries get times as arguments; programs
 * read the times with these functions. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Returns microseconds since an arbitrary start. The time never goes back, and is the same in all
 * processes of a machine. */
int64_t clock_monotonic_us(void);
/* Returns microseconds since 1970. The time may jump. It is therefore only shown and recorded, and
 * no decision depends on it. */
int64_t clock_wall_us(void);

/* Returns the microseconds that all threads of this process have run on processors. */
int64_t clock_process_us(void);

#endif
