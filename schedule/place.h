/* place.h - an assignment whose stages can sum their gradients quickly: nodes exchange stages
 * for as long as that helps the slowest pair that share one. Where paths go does not count
 * here; the improvement weighs both. Internal to schedule/.
 */
#ifndef SCHEDULE_PLACE_H
#define SCHEDULE_PLACE_H

#include "schedule/problem.h"

/* Changes stage_of, members and start of s: movable nodes only. Paths are not looked at. */
void place_by_sync(struct solution *s, const struct problem *p);

#endif
