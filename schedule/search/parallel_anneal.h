/* parallel_anneal.h - anneals in several chains, on as many threads as the request allows.
 *
 * All chains anneal a round, each with its own random numbers, in slices of some milliseconds.
 * Between slices the caller's thread collects the results, announces improvements and works on the
 * bound. After a round all chains continue from the best solution.
 *
 * The result depends on the seed and the number of evaluations, not on the threads that ran the
 * chains. In small problems the number of chains is always the same. In large problems each chain
 * improves slowly, so there are no more chains than threads.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_PARALLEL_ANNEAL_H
#define SCHEDULE_PARALLEL_ANNEAL_H

#include "schedule/improve/anneal.h"
#include "schedule/bound/bound.h"
#include "schedule/problem/progress.h"

/* Anneals until the limits of g are reached, the bound is met, or the search has made `until`
 * evaluations in all. `first` has been annealed for a while; it is one of the chains, and gets the
 * best solution at the end. Meanwhile improves the bound b and reports it to g; NULL: none. Errors
 * are those of progress_note. */
int parallel_anneal_run(struct progress *g, struct anneal *first, struct bound *b, int64_t until,
			struct error *err);

#endif
