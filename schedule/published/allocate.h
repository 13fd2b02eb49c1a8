/* allocate.h - the published allocation of nodes to stages (DT-FM, arXiv:2206.01288; used by
 * SkipPipe, arXiv:2502.19913): a genetic search over assignments with fixed stage sizes.
 *
 * The cost of an assignment is sync_s + 2 * tour. sync_s is the slowest sum of gradients within a
 * stage. `tour` is the length of the shortest open tour from stage 0 over all stages. The distance
 * of two stages is the longest edge of a bottleneck matching between their nodes. The length of an
 * edge is the delay plus the time of a forward task. Stages of the same size are numbered in the
 * order of the tour.
 *
 * This code differs from the publication: the local search exchanges pairs of nodes instead of
 * moving cycles of nodes, and the cost of gradients is the plan's sync_s instead of a delay times a
 * ratio of bytes. Pinned nodes keep their stage; stages are then not renumbered. Internal to
 * schedule/. */
#ifndef SCHEDULE_ALLOCATE_H
#define SCHEDULE_ALLOCATE_H

#include "base/rng.h"
#include "schedule/problem/problem.h"
#include "schedule/problem/progress.h"

/* Finds a matching that covers the smaller side and whose longest edge is as short as possible.
 * cost: array of (n, m), n <= m; INFINITY: no edge. match: array of n, which gets a column for each
 * row; -1: none. Returns the largest edge; INFINITY: the smaller side cannot be covered. */
double allocate_match(const double *cost, int n, int m, int *match);

/* Improves the assignment of s (stage_of, members, start) in place until `trials` children have
 * been made or g is over. */
void allocate_genetic(struct solution *s, const struct problem *p, const struct progress *g,
		      int trials);

#endif
