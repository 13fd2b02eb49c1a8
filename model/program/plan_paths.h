/* plan_paths.h - the paths of a plan file, as lists of stages. Training needs nothing else from a
 * plan.
 */
#ifndef MODEL_PROGRAM_PLAN_PATHS_H
#define MODEL_PROGRAM_PLAN_PATHS_H

#include <stdint.h>

#include "base/error.h"
#include "base/skip_schedule.h"
#include "base/stage_set.h"

/* The paths of one plan */
struct plan_paths {
	uint32_t n; /* number of microbatches in an iteration */
	uint32_t n_stages;
	uint32_t *lengths; /* (n) number of stages that each path visits after stage 0 */
	uint32_t *paths;   /* (n, n_stages) */
};

/* The plans that a training follows. All have the same number of stages and microbatches. */
struct planned_paths {
	struct plan_paths *plans; /* (n) */
	uint32_t n;
	struct skip_schedule phases; /* plan k belongs to phase k; phases.n 0: there is one plan */
	stage_set always; /* stages that the plans of phases never skip */
};

/* Reads a `skippipe.plan/1`, or a `skippipe.phases/1`, whose `with_moves` has the plans.
 * -EINVAL names file and key, also if a path breaks CC1, CC2 or CC3. On success the caller calls
 * planned_paths_free. */
int planned_paths_read(struct planned_paths *p, const char *file, struct error *err);
void planned_paths_free(struct planned_paths *p);

/* Returns the paths that an iteration (from 0) follows. */
const struct plan_paths *planned_paths_at(const struct planned_paths *p, uint64_t iteration);

#endif
