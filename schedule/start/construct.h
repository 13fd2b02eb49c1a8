/* construct.h - a first solution, fast: nodes to stages, then a path for one microbatch after the
 * other, each the cheapest round trip given what is taken already. Internal to schedule/.
 *
 * Paths ascend, so the solution cannot stand still. Exposure is exact by quotas: a stage whose
 * remaining quota equals the microbatches still to come must be visited by each of them, one
 * without quota by none.
 */
#ifndef SCHEDULE_CONSTRUCT_H
#define SCHEDULE_CONSTRUCT_H

#include "base/rng.h"
#include "schedule/problem/problem.h"

/* stage_of, members, start: pins, then the plan to start from, then whatever has room.
 * PLAN_INFEASIBLE, -ENOMEM. */
int construct_assignment(struct solution *s, const struct problem *p, struct error *err);

/* The paths, for the assignment given. repair: microbatches keep the paths of the plan to start
 * from where they are still whole and exposure allows. attempt 0 takes nodes that are alike as one
 * and keeps few partial paths; later ones look at all, from 2 on in an order drawn from rng.
 * PLAN_INFEASIBLE: this attempt found no legal paths; -ENOMEM. */
int construct_paths(struct solution *s, const struct problem *p, int attempt, bool repair,
		    struct rng *rng, struct error *err);

/* As construct_paths, where of each data node's n microbatches groups of so many take the same path: those
 * n / group apart, so that a group has one of each wave. What cannot be dealt to groups is built
 * alone. rng: an order drawn from it; NULL: waves. PLAN_INFEASIBLE: no such paths; -ENOMEM. */
int construct_tied(struct solution *s, const struct problem *p, int group, struct rng *rng);

/* Of such groups, those that have the same path in s: into ring (n_mb) the next of them, after the
 * last the first; itself where it is alone. */
void construct_rings(int *ring, const struct solution *s, const struct problem *p, int group);

#endif
