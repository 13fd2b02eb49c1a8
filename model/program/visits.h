/* visits.h - the stages that each microbatch of an iteration visits without a plan.
 *
 * The paths follow the rules for convergence, CC1 to CC3. Every path visits stage 0, the stages of
 * a path ascend except for swaps of neighbours, and the stages that may be skipped are skipped
 * equally often. Each rule can be broken to show its effect.
 */
#ifndef MODEL_VISITS_H
#define MODEL_VISITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/skip_schedule.h"
#include "base/stage_set.h"

struct visit_rules {
	uint32_t skip;    /* number of stages that a microbatch skips */
	uint32_t share;   /* percent of the microbatches that skip stages; 0: all of them */
	stage_set always; /* stages that are never skipped; always contains stage 0 */
	float swap; /* probability that two neighbouring stages are exchanged */
	bool any_order; /* breaks CC2: the stages of a path are in random order */
	bool unequal;   /* breaks CC3: later stages are skipped more often */
	/* Numbers of iterations at the beginning and at the end in which no stage is skipped. */
	uint32_t whole_first, whole_last;
	/* The skip schedule. If it has phases, their values replace skip, share, whole_first and
	 * whole_last. */
	struct skip_schedule schedule;
};

/* Returns true if every microbatch visits the stage. */
bool visit_rules_always(stage_set always, uint32_t stage);
/* Returns the number of stages that may be skipped. */
uint32_t visit_rules_droppable(stage_set always, uint32_t n_stages);
/* Checks the rules. -EINVAL: `always` leaves too few stages to skip, or contains a stage that does
 * not exist. */
int visit_rules_check(const struct visit_rules *r, uint32_t n_stages, struct error *err);

/* Returns the number of stages that a microbatch skips in iteration `iteration` (from 0) of
 * `iterations`. A schedule gives the number for each phase. Without a schedule, the number is 0 in
 * the first and last iterations (whole_first, whole_last), and `skip` in all other iterations.
 * *share: percentage of the iteration's microbatches in which stages are skipped; 0: all
 * microbatches. */
uint32_t visits_skip(const struct visit_rules *r, uint64_t iteration, uint64_t iterations,
		     uint32_t *share);

/* Draws the paths of `microbatches` microbatches: paths (M, n_stages) and lengths (M). Stage 0 is
 * not written. A path has n_stages - 1 - skip stages, or n_stages - 1 if its microbatch does not
 * skip stages. The result depends on the arguments alone. */
void visits_draw(const struct visit_rules *r, uint32_t n_stages, uint32_t microbatches,
		 uint64_t seed, uint64_t iteration, uint32_t *paths, uint32_t *lengths);

#endif
