/* conflict_search.h - the published path search: conflict-based search (Sharon et al., 2015) over
 * microbatches, as SkipPipe (arXiv:2502.19913) uses it.
 *
 * The agents are the microbatches of the first wave: as many of a data node as it has memory, one
 * forward time apart. Later waves use the same paths. The low level gives an agent the quickest
 * trip under its constraints: stages and nodes that it may not visit, and intervals in which a node
 * is taken (an agent that arrives then waits). The high level is a best-first tree of constraints
 * in three phases:
 *
 *   exposure    A stage has k visits too many. A branch forbids the stage to k of its visitors.
 *               The first branch takes the quickest k; two more branches replace the last of these
 *               by the next quickest visitors. The phase ends with 32 candidates.
 *   memory      A node has k agents more than it can hold. Two branches forbid the node in the
 *               same way.
 *   collisions  Two agents are at a node at the same time. In each of two branches another one of
 *               them waits.
 *
 * The execution model times each child of the last phase. The search stops at 0.88 of the first
 * solution, after 8 solutions without conflicts, or when its limits are reached.
 *
 * Ours differs: the execution model judges instead of a polling simulator, so no task is lost
 * between ticks and memory is never exceeded. A candidate without conflicts counts from the start.
 * Equal exposure is demanded exactly. If the first phase finds nothing, the greedy paths of
 * construct.h replace it, so that there is always an answer. Internal to schedule/.
 */
#ifndef SCHEDULE_CONFLICT_SEARCH_H
#define SCHEDULE_CONFLICT_SEARCH_H

#include <stdbool.h>

#include "schedule/problem/problem.h"
#include "schedule/problem/progress.h"

/* Improves a solution in place; the assignment is kept, and the paths remain if none are found.
 * Each improvement goes to g. collisions: runs the third phase too. Errors are those of
 * progress_note. */
int conflict_search(struct solution *s, const struct problem *p, bool collisions,
		    struct progress *g, struct error *err);

#endif
