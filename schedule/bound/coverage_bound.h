/* coverage_bound.h - how short an iteration can be at all when every stage must get its visits.
 *
 * A data node by itself leaves out the stages that are far from it; exposure (CC3) lets not all of
 * them do so. Give each visit of a stage a price, above 0 where too few come. An iteration of T
 * seconds is impossible when there are prices at which the best trips of all data nodes that fit
 * into T (pricing.h, by the fastest way through each set of stages, shortest_paths.h) earn less than the visits
 * demanded are worth: that holds for every order and path.
 *
 * Prices are the direction that separates what can be visited from what must be (nearest_point.h); T
 * grows by smaller and smaller strides while it is impossible. Internal to schedule/.
 */
#ifndef SCHEDULE_COVERAGE_BOUND_H
#define SCHEDULE_COVERAGE_BOUND_H

#include "schedule/problem/problem.h"
#include "schedule/bound/shortest_paths.h"

/* Beyond these nothing is said: sets of stages; microbatches of a data node by the square of its slots. */

struct coverage_bound; /* opaque: work in progress */

/* All borrowed; sent: microbatches of each data node, by its place in stage 0. It lives as long as the arena.
 * *out is NULL where the instance is beyond it, or all trips go through the same stages. -ENOMEM. */
int coverage_bound_new(struct coverage_bound **out, struct arena *a, const struct problem *p,
		       const struct solution *s, struct shortest_paths *w, const int *sent);
/* One more piece of work, given a bound that is known: some milliseconds, at 1,000 nodes up to a tenth of
 * a second. False: that was all. */
bool coverage_bound_step(struct coverage_bound *e, double known_s);
int64_t coverage_bound_work(const struct coverage_bound *e); /* as pricing_work */
/* Proved so far; 0: nothing. */
double coverage_bound_s(const struct coverage_bound *e);

#endif
