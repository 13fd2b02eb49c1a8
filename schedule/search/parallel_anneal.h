/* parallel_anneal.h - annealing by several chains, on as many threads as the request allows.
 *
 * A round is annealed by all chains, each with random numbers of its own, in slices of some
 * milliseconds; between slices the caller's thread takes stock, tells of improvements and works
 * on the bound. After a round all go on from the best.
 *
 * What comes out depends on the seed and the number of evaluations, not on which thread ran
 * what. Small problems always get the same number of chains. In large ones a chain takes long
 * to get anywhere, so there are no more of them than threads.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_PARALLEL_ANNEAL_H
#define SCHEDULE_PARALLEL_ANNEAL_H

#include "schedule/improve/anneal.h"
#include "schedule/bound/bound.h"
#include "schedule/problem/progress.h"

/* Until g says that it is over, the bound is met, or so many evaluations have been made in all.
 * `first` has been annealed a while; it is one of the chains, and has the best solution in the end. b: NULL, or worked on as long
 * as the search lasts, into g's lower bound. -ENOMEM; errors of progress_note. */
int parallel_anneal_run(struct progress *g, struct anneal *first, struct bound *b, int64_t until,
	       struct error *err);

#endif
