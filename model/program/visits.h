/* visits.h - the stages that each microbatch of an iteration visits without a plan.
 *
 * The paths follow the rules of convergence: they visit stage 0, their stages ascend except for
 * swaps of neighbours, and the other stages are skipped equally often. Each rule can be broken to
 * show its effect.
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
	uint32_t share;   /* percent of the microbatches that skip them; 0: all */
	stage_set always; /* stages that are never skipped; always contains stage 0 */
	float swap; /* probability that two neighbours are exchanged */
	bool any_order; /* breaks the second rule: the path is in random order */
	bool unequal;   /* breaks the third rule: later stages are skipped more often */
	/* Numbers of iterations at the beginning and at the end in which no stage is skipped */
	uint32_t whole_first, whole_last;
	struct skip_schedule schedule; /* phases replace skip, share, whole_first, whole_last */
};

/* Returns true if every microbatch visits the stage. */
bool visit_rules_always(stage_set always, uint32_t stage);
/* Returns the number of stages that may be skipped. */
uint32_t visit_rules_droppable(stage_set always, uint32_t n_stages);
/* -EINVAL: `always` leaves too few stages to skip, or names a stage that does not exist. */
int visit_rules_check(const struct visit_rules *r, uint32_t n_stages, struct error *err);

/* Returns the number of stages that a microbatch skips in an iteration (from 0) of `iterations`:
 * skip, 0, or that of the schedule's phase. *share gets the share of those that skip. */
uint32_t visits_skip(const struct visit_rules *r, uint64_t iteration, uint64_t iterations,
		     uint32_t *share);

/* Draws the paths of `microbatches` microbatches: paths (M, n_stages) and lengths (M). Each has
 * n_stages - 1 - skip stages after stage 0, which is not written, or n_stages - 1 if it is not of
 * the share that skips. The result depends on the arguments alone. */
void visits_draw(const struct visit_rules *r, uint32_t n_stages, uint32_t microbatches,
		 uint64_t seed, uint64_t iteration, uint32_t *paths, uint32_t *lengths);

#endif
