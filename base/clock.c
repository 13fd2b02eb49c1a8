/* Reads the clocks of the system. All other code that needs the time gets it from here, so that
 * simulated runs can replace these functions. */
#include "base/clock.h"

#include <time.h>

static int64_t read_us(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_monotonic_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

int64_t clock_wall_us(void)
{
	return read_us(CLOCK_REALTIME);
}

int64_t clock_process_us(void)
{
	return read_us(CLOCK_PROCESS_CPUTIME_ID);
}
