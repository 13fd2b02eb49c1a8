/* timekeeping.h - checks this machine's wall clock. */
#ifndef DOCTOR_TIMEKEEPING_H
#define DOCTOR_TIMEKEEPING_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/finding.h"

struct timekeeping {
	bool known; /* the kernel reported whether the clock is synchronised */
	bool synchronised;
	double error_s;  /* largest error that the kernel expects of the clock, s */
	int64_t wall_us; /* time that the clock shows, microseconds since 1970 */
};

void timekeeping_look(struct timekeeping *t);
/* Adds the finding "clock". */
void timekeeping_check(struct findings *f, const struct timekeeping *t);

#endif
