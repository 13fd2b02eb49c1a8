/* jump.c - a wall clock that jumps by hours, forward and back, at every call. The monotonic clock
 * stays correct. Thus a program fails if it decides anything by the time of day. The library is
 * loaded with LD_PRELOAD. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

static atomic_uint looks;

static long hours(void)
{
	unsigned n = atomic_fetch_add(&looks, 1);

	return (long)(n * 2654435761u >> 24) % 97 - 48;
}

int clock_gettime(clockid_t which, struct timespec *out)
{
	static int (*real)(clockid_t, struct timespec *);
	int rc;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	rc = real(which, out);
	if (rc == 0 && which == CLOCK_REALTIME)
		out->tv_sec += hours() * 3600;
	return rc;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
	struct timespec t;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	out->tv_sec = t.tv_sec;
	out->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *out)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}
