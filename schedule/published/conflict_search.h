/* conflict_search.h - the published path search: conflict-based search (Sharon et al., 2015) over
 * microbatches, as SkipPipe (arXiv:2502.19913) uses it.
 *
 * Agents are the microbatches of the first wave, as many of a data node as it has memory, one
 * forward time apart; later waves use the same paths. The low level gives an agent the quickest
 * trip that its constraints allow: stages it may not visit, nodes it may not visit, times at
 * which a node is taken (arriving then, it waits). The high level is a best-first tree of
 * constraints in three phases: exposure (a stage visited too often: its quickest agents are
 * turned away, in up to three ways) until 32 candidates are found; memory (a node visited by more
 * agents than it holds: up to two ways); collisions (two agents on a node at one time: either
 * waits). Each child is timed by the execution model; the search stops at 0.88 of the first
 * solution, after 8 solutions without conflicts, or when told to.
 *
 * Ours differs: the judge is the execution model instead of a polling simulator, so nothing is
 * lost behind its ticks and memory always holds; a candidate without conflicts counts from the
 * start; equal exposure is demanded exactly; where the first phase finds nothing, the greedy
 * stages of construct.h stand in, so that there is always an answer. Internal to schedule/.
 */
#ifndef SCHEDULE_CONFLICT_SEARCH_H
#define SCHEDULE_CONFLICT_SEARCH_H

#include <stdbool.h>

#include "schedule/problem/problem.h"
#include "schedule/problem/progress.h"

/* From a first solution (its assignment is kept, its stages stand in as said) to the best found,
 * in place; each improvement is noted with g. collisions: run the third phase too. */
int conflict_search(struct solution *s, const struct problem *p, bool collisions,
		    struct progress *g, struct error *err);

#endif
