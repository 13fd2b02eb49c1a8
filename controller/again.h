/* again.h - how long an iteration takes in which microbatches run again.
 *
 * Pure: a plan, what has become of its routes, and the time since the iteration began.
 */
#ifndef CONTROLLER_AGAIN_H
#define CONTROLLER_AGAIN_H

#include <stdint.h>

#include "controller/routes.h"
#include "schedule/cluster.h"
#include "schedule/plan.h"

/* The iteration's length in plan seconds when what has a newer attempt than `first`, and is not done,
 * sets out now, at_s after the iteration began, and goes before the rest; everything else goes as
 * planned. < 0: not known (memory, or slots would wait in a circle). */
double again_until_s(const struct cluster *c, const struct plan *p, const struct routes *r,
		     uint32_t first, double at_s);

/* After routes_replace: makes that shorter as far as single moves to other nodes of the same stage do,
 * while no more than most_tasks tasks were simulated. What runs again moves where its node died only, for its other nodes may have
 * counted it; what has not begun moves anywhere but from its data node, and gets a new attempt too.
 * changed (room r->n) has n ids, and gets those of the latter; returns how many there are then. */
int again_improve(const struct cluster *c, const struct plan *p, struct routes *r, uint32_t first,
		  double at_s, const bool *usable, const int *stage_of, int64_t most_tasks,
		  uint32_t *changed, int n);

#endif
