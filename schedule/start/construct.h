/* construct.h - builds a first solution quickly: it assigns nodes to stages, then gives each
 * microbatch in turn the cheapest round trip, taking into account the work that the nodes already
 * have. Internal to schedule/.
 *
 * Stages ascend along every path, therefore the solution cannot come to a standstill. Quotas give
 * every stage the visits that equal exposure (CC3) requires. If a stage's quota equals the number
 * of remaining microbatches, each of these must visit the stage. A stage whose quota is used up
 * cannot be visited. */
#ifndef SCHEDULE_CONSTRUCT_H
#define SCHEDULE_CONSTRUCT_H

#include "base/rng.h"
#include "schedule/problem/problem.h"

/* Fills in stage_of, members and start of s. A pinned node gets the stage of its pin, a node in
 * q->from keeps its stage, and the remaining nodes get any stage with room. PLAN_INFEASIBLE: some
 * stage gets no node. */
int construct_assignment(struct solution *s, const struct problem *p, struct error *err);

/* Builds the paths for the assignment in s.
 *
 * repair: a microbatch keeps its path of the start plan (q->from) if this path is legal now and
 * exposure allows it. attempt: attempt 0 treats similar nodes as one and keeps few partial paths.
 * Later attempts consider all nodes and partial paths. From attempt 2 on, the order of the
 * microbatches is drawn from rng.
 *
 * PLAN_INFEASIBLE: this attempt found no legal paths. */
int construct_paths(struct solution *s, const struct problem *p, int attempt, bool repair,
		    struct rng *rng, struct error *err);

/* Like construct_paths, but ties microbatches: groups of `group` microbatches of a data node take
 * the same path. If a data node sends n microbatches, the members of a group are n / group apart,
 * so that they belong to different waves. Microbatches that do not fill a group get a path of their
 * own. The order of the microbatches is drawn from rng; NULL: wave by wave. PLAN_INFEASIBLE: there
 * are no such paths. */
int construct_tied(struct solution *s, const struct problem *p, int group, struct rng *rng);

/* Links the members of each group of construct_tied into a ring, as far as they still have the
 * same path in s. ring: array of n_mb, gets the next member of each microbatch's ring. After the
 * last member comes the first. A microbatch without a partner gets itself. */
void construct_rings(int *ring, const struct solution *s, const struct problem *p, int group);

#endif
