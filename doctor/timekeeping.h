/* timekeeping.h - checks this machine's wall clock. */
#ifndef DOCTOR_TIMEKEEPING_H
#define DOCTOR_TIMEKEEPING_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/finding.h"

struct timekeeping {
	bool known; /* true: the kernel reported whether the clock is synchronised */
	bool synchronised;
	double error_s;  /* largest possible error of the clock, as the kernel estimates it, s */
	int64_t wall_us; /* time of the clock, microseconds since 1970 */
};

void timekeeping_look(struct timekeeping *t);
/* Adds the finding "clock". */
void timekeeping_check(struct findings *f, const struct timekeeping *t);

#endif
