/* plan_paths.h - reads the paths of a skippipe.plan/1, as lists of stages. Training needs only
 * these.
 */
#ifndef MODEL_PROGRAM_PLAN_PATHS_H
#define MODEL_PROGRAM_PLAN_PATHS_H

#include <stdint.h>

#include "base/error.h"

struct plan_paths {
	uint32_t n; /* number of microbatches in an iteration */
	uint32_t n_stages;
	uint32_t *lengths; /* (n) number of stages that each path visits after stage 0 */
	uint32_t *paths;   /* (n, n_stages) */
};

/* -EINVAL names file and key. On success the caller calls plan_paths_free. */
int plan_paths_read(struct plan_paths *p, const char *file, struct error *err);
void plan_paths_free(struct plan_paths *p);

#endif
