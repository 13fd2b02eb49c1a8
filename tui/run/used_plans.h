/* used_plans.h - the plans that a run has used, each with its prediction and the measured times.
 *
 * The list is made from the iterations that the console keeps.
 */
#ifndef TUI_USED_PLANS_H
#define TUI_USED_PLANS_H

#include "tui/run/state.h"

enum { USED_PLANS_MOST = 16 };

struct used_plan {
	uint64_t epoch;
	char algorithm[16]; /* name of the algorithm; "": unknown */
	uint32_t n_stages; /* number of stages that the run had; 0: unknown */
	uint32_t path_length, skip_share;
	/* First and last iteration that followed the plan; 0: no such iteration has ended yet. */
	uint64_t first, last;
	float predicted_s,
		/* Times predicted for the iteration `last`, with the corrections that were made
		 * after the plan was made. */
		predicted_sync_s;
	float measured_s, measured_sync_s; /* medians over the plan's newest 256 iterations */
};

/* Lists the plan in force and the earlier plans that ran, newest first. Two plans are alike if they
 * have the same algorithm, stages and skip ratio. If there are more than `most` plans, drops one
 * plan after another: the oldest plan that is like a newer plan, or else the oldest plan of all.
 * Returns the number of listed plans. */
uint32_t used_plans_list(const struct state *s, struct used_plan *list, uint32_t most);

#endif
