/* exact.h - the shortest iteration of a small instance, for its assignment: over all paths that
 * keep the rules and, where the order is free, over all work-conserving orders at the nodes;
 * else first come, first served.
 *
 * Branch and bound over the execution itself: whenever a node may choose among waiting tasks it
 * branches over them, and whenever a forward task starts, over the next hops that some legal
 * path allows. A branch is cut when what is under way cannot be back before the best plan
 * known: by the least rest of every chain, by the work left at a data node, or by what its
 * slots still have to hold. Microbatches of one data node that have not started are alike where
 * the order is free. Internal to schedule/.
 */
#ifndef SCHEDULE_EXACT_H
#define SCHEDULE_EXACT_H

#include "schedule/problem/progress.h"

/* Small enough to be worth a try (REGIME_EXACT), every node with a stage, the backward pass whole. */
bool exact_is_small(const struct problem *p);

/* s gives the assignment. Only what is shorter than below_s is of interest: the best known; INFINITY: all.
 * At most most_steps branches, and until g (NULL: none) says that it is over. 0: proved; *out is a best plan
 * (with an order where it needs one), or NULL where none is shorter than below_s. PLAN_NOT_FOUND: gave up,
 * *out is the best found, or NULL. -ENOMEM. */
int exact_search(const struct problem *p, const struct solution *s, double below_s, long most_steps,
		 const struct progress *g, struct plan **out);

#endif
