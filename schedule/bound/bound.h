/* bound.h - how short an iteration can be at all, for an assignment: below this no paths and no
 * order can go.
 *
 * One data node alone: single_machine.h, with the least lags that shortest_paths.h finds.
 *
 * One stage alone. Its nodes have to serve the visits that exposure demands, between the
 * earliest arrival and the latest departure that leaves time for the way home.
 *
 * All data nodes together, each stage visited as often as it must be: coverage_bound.h.
 *
 * With the backward pass split the weight gradients of other than data nodes are left out, which
 * keeps the bound valid.
 *
 * The bound is the largest of all these. Internal to schedule/.
 */
#ifndef SCHEDULE_BOUND_H
#define SCHEDULE_BOUND_H

#include "schedule/problem/problem.h"

#define BOUND_MET 1.000000001

struct bound; /* opaque: work in progress */

/* Both borrowed until bound_free; s gives the assignment and, by paths that finished late, which
 * data nodes to look at first (finish_s, (n_mb); NULL: any order). NULL: out of memory. */
struct bound *bound_new(const struct problem *p, const struct solution *s,
			const double *finish_s);
void bound_free(struct bound *b);
/* Looks at one more part of the problem. False when all have been looked at. */
bool bound_step(struct bound *b);
/* Beside a search, after so many more of its runs: as many steps as take little of its time. The bound
 * then. */
double bound_beside(struct bound *b, int64_t runs);
/* For an answer: as many steps as take little time, some tens of milliseconds where there are few nodes. The
 * bound then. */
double bound_answer(struct bound *b);
/* The bound so far: valid at any time. This and bound_step are public for tests. */
double bound_s(const struct bound *b);

#endif
