/* bound.h - computes a lower bound of the iteration time for an assignment: no paths and no order
 * of tasks take less time.
 *
 * The bound is the largest of three kinds of bounds (docs/bounds.md):
 *
 *   one data node alone    single_machine.h, with the least lags that shortest_paths.h finds
 *   one stage alone        between the earliest arrival and the latest departure, its nodes have
 *                          to serve the visits that exposure demands
 *   all data nodes         each stage gets the visits that exposure demands: coverage_bound.h
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_BOUND_H
#define SCHEDULE_BOUND_H

#include "schedule/problem/problem.h"

#define BOUND_MET 1.000000001 /* a plan within this factor of the bound is optimal */

struct bound; /* opaque: the state of the computation */

/* Borrows p and s until bound_free. s gives the assignment of nodes to stages. finish_s: array of
 * n_mb, the second at which each microbatch finishes in the best plan so far. The bound examines
 * the data nodes of late microbatches first. finish_s NULL: it examines them in any order. */
struct bound *bound_new(const struct problem *p, const struct solution *s,
			const double *finish_s);
void bound_free(struct bound *b);
/* Works on one more part of the bound. Returns false if no part is left. */
bool bound_step(struct bound *b);
/* A search calls this after every `runs` evaluations. Takes as many steps as fit into a small part
 * of the search's time, and returns the bound. */
double bound_beside(struct bound *b, int64_t runs);
/* Takes as many steps as a short time allows (some tens of milliseconds in small clusters), and
 * returns the bound. */
double bound_answer(struct bound *b);
/* Returns the bound so far, which is valid at any time. This function and bound_step are public for
 * tests. */
double bound_s(const struct bound *b);

#endif
