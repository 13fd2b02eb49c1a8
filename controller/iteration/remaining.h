/* remaining.h - how long an iteration still takes, from what has become of its microbatches.
 *
 * Pure: the routes, and the time since the iteration began.
 */
#ifndef CONTROLLER_REMAINING_H
#define CONTROLLER_REMAINING_H

#include <stdint.h>

#include "controller/iteration/routes.h"
#include "schedule/format/cluster.h"

/* When the iteration ends, in plan seconds after it began, if from at_s on everything goes as the cluster
 * says: a simulation of what is left to do, first come, first served, but that what has a newer attempt
 * than `first` goes before the rest. Backward passes count whole. < 0: not known (memory, no link, or
 * slots would wait in a circle). */
double remaining_until_s(const struct cluster *c, const struct routes *r, uint32_t first, double at_s);

/* After routes_replace: makes that shorter as far as single moves to other nodes of the same stage do,
 * while no more than most_tasks tasks were simulated. What runs again moves where its node died; whatever else moves
 * where nobody has begun its F, and gets a new attempt too.
 * changed (room r->n) has n ids, and gets those of the latter; returns how many there are then. */
int remaining_improve(const struct cluster *c, struct routes *r, uint32_t first, double at_s,
		  const bool *usable, const int *stage_of, int64_t most_tasks, uint32_t *changed, int n);

#endif
