/* allocate.h - the published allocation of nodes to stages (DT-FM, arXiv:2206.01288; used by
 * SkipPipe, arXiv:2502.19913): a genetic search over assignments with fixed stage sizes.
 *
 * The cost of an assignment: the bottleneck matching of every two stages' nodes (delay and
 * compute) gives a distance between stages; the shortest open tour over the stages from stage 0
 * is the pipeline's cost, and the slowest sum of gradients inside a stage is added:
 * sync_s + 2 * tour. Stages of one size are numbered in the order of the tour.
 *
 * Ours differs: local search exchanges pairs of nodes instead of moving cycles of them, and the
 * gradient's cost is the sync_s of the plan instead of a delay times a ratio of bytes. Pinned
 * nodes stay, then without renumbering. Internal to schedule/.
 */
#ifndef SCHEDULE_ALLOCATE_H
#define SCHEDULE_ALLOCATE_H

#include "base/rng.h"
#include "schedule/problem/problem.h"
#include "schedule/problem/progress.h"

/* The largest edge, made as small as can be, of a matching that covers the smaller side: cost is
 * (n, m), n <= m; match (n) gets a column each, -1 where only absent edges are left. Returns that
 * edge, INFINITY when the side cannot be covered; -1 when memory runs out. */
double allocate_match(const double *cost, int n, int m, int *match);

/* Improves the assignment of s (stage_of, members, start) in place until `trials` are done or g
 * says stop. -ENOMEM. */
int allocate_genetic(struct solution *s, const struct problem *p, const struct progress *g,
		     int trials);

#endif
