/* place.h - an assignment whose stages can sum their gradients quickly: nodes exchange stages
 * for as long as that helps the slowest pair that share one. Where paths go does not count
 * here; the improvement weighs both. Internal to schedule/.
 */
#ifndef SCHEDULE_PLACE_H
#define SCHEDULE_PLACE_H

#include "base/rng.h"
#include "schedule/problem/progress.h"

/* Changes stage_of, members and start of s: movable nodes only. Paths are not looked at. Ends
 * early, with what it has, when g (NULL: none) has no time left. -ENOMEM: s is as it was. */
int place_by_sync(struct solution *s, const struct problem *p, const struct progress *g);

/* As place_by_sync, only until no sum takes longer than enough_s. How far it came: solution_sync_s. */
int place_within(struct solution *s, const struct problem *p, double enough_s);
/* Places once, from nodes dealt at random to the stages that s has. */
int place_at_random(struct solution *s, const struct problem *p, double enough_s,
		    struct rng *rng);

/* Which of its stages of one size comes when, so that paths are short: whole stages exchange
 * places, which leaves the sums of gradients as they are. -ENOMEM: s is as it was. */
int place_in_order(struct solution *s, const struct problem *p);

#endif
