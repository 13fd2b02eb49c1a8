/* used_plans.h - the plans that a run has used, each with its prediction and the measured times.
 *
 * They are made from the iterations that the console knows.
 */
#ifndef TUI_USED_PLANS_H
#define TUI_USED_PLANS_H

#include "tui/run/state.h"

enum { USED_PLANS_MOST = 16 };

struct used_plan {
	uint64_t epoch;
	char algorithm[16]; /* name of the algorithm; "": unknown */
	uint32_t path_length, skip_share;
	uint64_t first, last; /* first and last iteration under this plan; 0: none yet */
	float predicted_s,
		predicted_sync_s; /* prediction for the last iteration; corrections change it */
	float measured_s, measured_sync_s;  /* medians of the newest 256 iterations */
};

/* Lists the plan in force and the earlier plans that have run, newest first, at most `most`. If
 * there are more, a plan is dropped first if a newer one has the same algorithm and skip ratio.
 * Returns the number of plans. */
uint32_t used_plans_list(const struct state *s, struct used_plan *list, uint32_t most);

#endif
