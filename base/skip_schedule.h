/* skip_schedule.h - how many stages the microbatches skip in each phase of a run.
 *
 * A run can skip many stages at first and fewer later. The schedule is an option of train, demo and
 * controller, and a text in the record of a run.
 */
#ifndef BASE_SKIP_SCHEDULE_H
#define BASE_SKIP_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { SKIP_SCHEDULE_MOST = 32 }; /* phases */

struct skip_phase {
	uint64_t from; /* first iteration of the phase, from 1 */
	uint32_t skip; /* stages that every microbatch skips */
};

struct skip_schedule {
	uint32_t n;                                   /* number of phases; 0: no schedule */
	struct skip_phase phases[SKIP_SCHEDULE_MOST]; /* (n) ascending; the first begins at 1 */
};

/* Reads "4,3,1,0", equal parts of the run, or "4@0,3@25%,1@50%,0@800": each phase begins after that
 * share of the run, or after that many iterations. iterations: of the run; 0: no end, and then only
 * numbers of iterations are possible. most: the most stages that may be skipped. -EINVAL: the
 * message names the phase. */
int skip_schedule_parse(struct skip_schedule *out, const char *text, uint64_t iterations,
			uint32_t most, struct error *err);

/* The index of the phase that an iteration (from 1) belongs to. The schedule has phases. */
uint32_t skip_schedule_at(const struct skip_schedule *s, uint64_t iteration);

#endif
