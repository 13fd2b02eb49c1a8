/* hours_comparison.h - compares recipes by what they reach in a given time on the nodes of the run.
 *
 * A thread compares, because it plans three runs. The comparison copies the cluster, so the run may
 * change meanwhile. */
#ifndef CONTROLLER_PLANNING_HOURS_COMPARISON_H
#define CONTROLLER_PLANNING_HOURS_COMPARISON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/recipes/hours.h"

struct hours_comparison;
struct run;

/* Starts a comparison for all nodes of the run, those that are away included. hours: at least 1,
 * of real time. -EINVAL: no stage of the run may be skipped. The caller frees *out. */
int hours_comparison_start(const struct run *run, int64_t hours, struct hours_comparison **out,
			   struct error *err);
/* Ends a comparison that is under way, as soon as its present search ends. NULL is allowed. */
void hours_comparison_free(struct hours_comparison *h);
bool hours_comparison_is_done(const struct hours_comparison *h);
/* Returns the (RECIPES) rows of a comparison that is done, borrowed. NULL: no plan was found, and
 * err says why. */
const struct hours_row *hours_comparison_rows(const struct hours_comparison *h, struct error *err);
int64_t hours_comparison_hours(const struct hours_comparison *h);
/* Returns the cluster that was compared, borrowed. */
const struct cluster *hours_comparison_cluster(const struct hours_comparison *h);

#endif
