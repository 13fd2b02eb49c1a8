/* coverage_bound.h - a lower bound of the iteration time that takes the visits of all stages into
 * account.
 *
 * A data node alone would skip the stages that are far from it. Equal exposure (CC3) does not allow
 * all data nodes to skip such a stage. Therefore each visit of a stage gets a price. The price is
 * above 0 if too few microbatches would visit the stage. Within T seconds, the total price of a
 * data node's visits is limited (pricing.h). The trips follow the fastest path through each set of
 * stages (shortest_paths.h). If these limits together are below the total price of the demanded
 * visits, an iteration of T seconds is impossible.
 *
 * The prices are the direction that separates the visits that can be made from the visits that must
 * be made (nearest_point.h). The search proves longer and longer T impossible, until a proof fails.
 * Then it continues in smaller and smaller steps. Internal to schedule/.
 */
#ifndef SCHEDULE_COVERAGE_BOUND_H
#define SCHEDULE_COVERAGE_BOUND_H

#include "schedule/problem/problem.h"
#include "schedule/bound/shortest_paths.h"

struct coverage_bound; /* opaque: the state of the computation */

/* All pointers are borrowed. sent: number of microbatches of each data node, in the order of
 * s->members. The result lives as long as the arena. NULL: the cluster is too large (strategy.h),
 * some microbatches visit all stages (n_whole > 0), or all trips visit the same stages. */
struct coverage_bound *coverage_bound_new(struct arena *a, const struct problem *p,
					  const struct solution *s, struct shortest_paths *w,
					  const int *sent);
/* Takes one step towards proving a bound above known_s and above the bound proved so far. A step
 * takes some milliseconds, or up to a tenth of a second with 1,000 nodes. Returns false if no step
 * is left. */
bool coverage_bound_step(struct coverage_bound *e, double known_s);
/* Returns the number of states that pricing.h has compared so far. */
int64_t coverage_bound_work(const struct coverage_bound *e);
/* Returns the bound proved so far; 0: none. */
double coverage_bound_s(const struct coverage_bound *e);

#endif
