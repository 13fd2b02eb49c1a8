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

#endif
