/* plan_paths.h - the paths of a plan file, as lists of stages. Training needs nothing else from a
 * plan.
 */
#ifndef MODEL_PROGRAM_PLAN_PATHS_H
#define MODEL_PROGRAM_PLAN_PATHS_H

#include <stdint.h>

#include "base/error.h"
#include "base/skip_schedule.h"
#include "base/stage_set.h"

/* The paths of one plan. */
struct plan_paths {
	uint32_t n; /* number of paths, one for each microbatch of an iteration */
	uint32_t n_stages;
	uint32_t *lengths; /* for each path: its number of stages, without stage 0 */
	uint32_t *paths;   /* (n, n_stages) the stages of each path, without stage 0 */
};

/* The plans that a training follows. All have the same number of stages and microbatches. */
struct planned_paths {
	struct plan_paths *plans; /* the n plans */
	uint32_t n;
	/* Plan k is for phase k; phases.n is 0 if there is only one plan. */
	struct skip_schedule phases;
	stage_set always; /* stages that the plans of phases never skip */
};

/* Reads a plan file: format `skippipe.plan/1` for one plan, or `skippipe.phases/1` for the plans
 * of phases. From a file with phases, the plans under the key `with_moves` are used. -EINVAL: the
 * file is invalid, or a path breaks CC1, CC2 or CC3; the message names file and key. On success
 * the caller calls planned_paths_free. */
int planned_paths_read(struct planned_paths *p, const char *file, struct error *err);
void planned_paths_free(struct planned_paths *p);

/* Returns the paths that an iteration (from 0) follows. */
const struct plan_paths *planned_paths_at(const struct planned_paths *p, uint64_t iteration);

#endif
