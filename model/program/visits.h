/* visits.h - the stages that each microbatch of an iteration visits without a plan.
 *
 * Paths that keep the rules of convergence: stage 0 always, stages ascending except for swaps
 * of neighbours, equal exposure of the others. Each rule can also be broken, to show its effect.
 */
#ifndef MODEL_VISITS_H
#define MODEL_VISITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/skip_schedule.h"
#include "base/stage_set.h"

struct visit_rules {
	uint32_t skip;   /* stages each microbatch skips */
	stage_set always; /* stages that are never skipped; stage 0 always is one of them */
	float swap; /* chance that two neighbours standing next to each other are exchanged */
	bool any_order; /* breaks the second rule: a path is shuffled */
	bool unequal;   /* breaks the third: the later a stage, the more often it is skipped */
	uint32_t whole_first, whole_last; /* iterations in which nothing is skipped */
	struct skip_schedule schedule; /* phases replace skip, whole_first and whole_last */
};

/* Returns true if every microbatch visits the stage. */
bool visit_rules_always(stage_set always, uint32_t stage);
/* The number of stages that may be skipped. */
uint32_t visit_rules_droppable(stage_set always, uint32_t n_stages);
/* -EINVAL: more stages to skip than `always` allows, or a stage that is not there. */
int visit_rules_check(const struct visit_rules *r, uint32_t n_stages, struct error *err);

/* Stages each microbatch skips in an iteration (from 0) of `iterations`: skip, 0, or those of the
 * schedule's phase. */
uint32_t visits_skip(const struct visit_rules *r, uint64_t iteration, uint64_t iterations);

/* Paths of `microbatches` microbatches, stage 0 not written: paths (M, n_stages), each of
 * n_stages - 1 - skip stages. Depends on the arguments alone. */
void visits_draw(const struct visit_rules *r, uint32_t n_stages, uint32_t microbatches,
		 uint64_t seed, uint64_t iteration, uint32_t *paths);

#endif
