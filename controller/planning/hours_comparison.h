/* hours_comparison.h - compares recipes by the loss that they reach in a given time on the nodes of
 * the run.
 *
 * The comparison plans three runs, so a thread does it. The thread works on a copy of the cluster,
 * so the run may change meanwhile. */
#ifndef CONTROLLER_PLANNING_HOURS_COMPARISON_H
#define CONTROLLER_PLANNING_HOURS_COMPARISON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/recipes/hours.h"

struct hours_comparison;
struct members;

/* Starts a comparison for the connected nodes that are not excluded. hours: at least 1, of real
 * time. -EINVAL: some stage has none of these nodes, or the number of data nodes does not divide
 * the batch. The caller frees *out. */
int hours_comparison_start(const struct members *members, int64_t hours,
			   struct hours_comparison **out, struct error *err);
/* Ends a comparison that is under way. h may be NULL. */
void hours_comparison_free(struct hours_comparison *h);
bool hours_comparison_is_done(const struct hours_comparison *h);
/* Returns the rows of a comparison that is done, one for each recipe (RECIPES rows). They are
 * borrowed. NULL: no plan was found, or no
 * stage may be skipped; err says why. */
const struct hours_row *hours_comparison_rows(const struct hours_comparison *h, struct error *err);
int64_t hours_comparison_hours(const struct hours_comparison *h);
/* Returns the cluster that was compared, borrowed. */
const struct cluster *hours_comparison_cluster(const struct hours_comparison *h);

#endif
