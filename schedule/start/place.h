/* place.h - finds an assignment whose stages can sum their gradients quickly: nodes exchange stages
 * as long as an exchange helps the slowest pair within a stage. Paths are not considered here; the
 * annealing that follows weighs both sums and paths. Internal to schedule/. */
#ifndef SCHEDULE_PLACE_H
#define SCHEDULE_PLACE_H

#include "base/rng.h"
#include "schedule/problem/progress.h"

/* Moves movable nodes between stages (stage_of, members and start of s) until no exchange shortens
 * the slowest sum. Paths are not considered. Ends early when g (NULL: no limit) has no time left.
 */
void place_by_sync(struct solution *s, const struct problem *p, const struct progress *g);

/* Like place_by_sync, but without a time limit, and stops once no sum takes longer than enough_s.
 * If the sums remain longer, solution_sync_s exceeds enough_s afterwards. */
void place_within(struct solution *s, const struct problem *p, double enough_s);
/* Distributes the movable nodes over the stages at random, and then improves the result like
 * place_within, but without the further random placements that place_within tries. */
void place_at_random(struct solution *s, const struct problem *p, double enough_s,
		     struct rng *rng);

/* Renumbers stages of the same size so that paths are short. All nodes of two stages exchange
 * their stages, which does not change the times of the sums. */
void place_in_order(struct solution *s, const struct problem *p);

#endif
