/* bound.h - a lower bound of the iteration for an assignment: no paths and no order take less time.
 *
 * The bound is the largest of three kinds of bounds (docs/bounds.md):
 *
 *   one data node alone    single_machine.h, with the least lags that shortest_paths.h finds
 *   one stage alone        its nodes have to serve the visits that exposure demands between the
 *                          earliest arrival and the latest departure
 *   all data nodes         each stage gets the visits that exposure demands: coverage_bound.h
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_BOUND_H
#define SCHEDULE_BOUND_H

#include "schedule/problem/problem.h"

#define BOUND_MET 1.000000001 /* a plan within this factor of the bound is optimal */

struct bound; /* opaque: the work in progress */

/* p and s are borrowed until bound_free; s gives the assignment. Data nodes whose microbatches
 * finished late are examined first (finish_s, (n_mb); NULL: any order). */
struct bound *bound_new(const struct problem *p, const struct solution *s,
			const double *finish_s);
void bound_free(struct bound *b);
/* Works on one more part. Returns false if no part is left. */
bool bound_step(struct bound *b);
/* To be called by a search after each `runs` evaluations. Does as many steps as take a small part
 * of the search's time, and returns the bound. */
double bound_beside(struct bound *b, int64_t runs);
/* Does as many steps as a short time allows, some tens of milliseconds in small clusters, and
 * returns the bound. */
double bound_answer(struct bound *b);
/* Returns the bound so far, which is valid at any time. This and bound_step are public for tests.
 */
double bound_s(const struct bound *b);

#endif
