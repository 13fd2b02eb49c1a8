/* timekeeping.c - checks the wall clock. A run measures time with monotonic clocks, and its
 * machines need no common time. But a wrong wall clock makes journals of several machines hard to
 * compare, and lets invitations expire too early. It also makes TLS to checkpoint stores and
 * alert services fail. */
#include "doctor/timekeeping.h"

#include <sys/timex.h>

#include "base/clock.h"

#define ERROR_LARGE 1.0 /* a clock with a larger error is reported; s */
/* Start of 2025; a clock that shows an earlier time is wrong. */
#define RELEASED_US INT64_C(1735689600000000)

void timekeeping_look(struct timekeeping *t)
{
	struct timex x = { .modes = 0 };
	const int state = adjtimex(&x);

	*t = (struct timekeeping){ .known = state >= 0,
				   .synchronised = state >= 0 && state != TIME_ERROR &&
						   (x.status & STA_UNSYNC) == 0,
				   .error_s = (double)x.maxerror * 1e-6,
				   .wall_us = clock_wall_us() };
}

void timekeeping_check(struct findings *f, const struct timekeeping *t)
{
	const char *const remedy = "start chrony or systemd-timesyncd on the host (timedatectl "
				   "set-ntp true)";

	if (t->wall_us < RELEASED_US) {
		finding_add(f, "clock", FINDING_WARNING,
			    "the clock says that the year is before 2025, so TLS fails and "
			    "invitations expire at a wrong time");
		finding_remedy(f, "%s", remedy);
	} else if (t->known && (!t->synchronised || t->error_s > ERROR_LARGE)) {
		if (t->synchronised)
			finding_add(f, "clock", FINDING_WARNING, "the clock may be wrong by %.1f s",
				    t->error_s);
		else
			finding_add(f, "clock", FINDING_WARNING, "the clock is not synchronised");
		finding_remedy(f, "%s", remedy);
	} else if (t->known) {
		finding_add(f, "clock", FINDING_OK, "synchronised to %.3f s", t->error_s);
	} else {
		finding_add(f, "clock", FINDING_OK,
			    "this container's kernel does not say if its clock is synchronised");
	}
}
