/* conflict_search.h - the published path search: conflict-based search (Sharon et al., 2015) over
 * microbatches, as SkipPipe (arXiv:2502.19913) uses it.
 *
 * The microbatches are sent in waves. In a wave, each data node sends as many microbatches as the
 * data node with the least memory can hold, one forward time apart. If later waves can use the
 * paths of the first wave, the agents are the microbatches of the first wave. Otherwise the agents
 * are all microbatches. The low level gives an agent the quickest trip under its constraints:
 * stages and nodes that it may not visit, and intervals for which a node is taken, so that the
 * agent has to wait. The high level is a best-first tree of constraints in three phases:
 *
 *   exposure    A stage has k visits too many. Each of up to three branches forbids the stage to
 *               k of its visitors. All branches forbid it to the k - 1 quickest visitors. Each
 *               branch also forbids it to one slower visitor: the first branch to the next quickest
 *               visitor, the second branch to the visitor after that, and so on. The phase ends
 *               with 32 candidates.
 *   memory      A node has k agents more than it can hold. Two branches forbid the node to k of
 *               them in the same way.
 *   collisions  Two agents use a node at the same time. There is one branch in which the first
 *               waits, and one in which the second waits.
 *
 * The execution model times each child of the last phase. The search stops when a solution takes
 * at most 0.88 of the first solution's time, after 8 solutions without conflicts, or when its
 * limits are reached.
 *
 * This code differs from the publication. Times come from the execution model instead of a
 * polling simulator, so no task is lost between ticks and memory is never exceeded. A candidate
 * without conflicts counts as a solution at once. Exposure must be exactly equal. If the first
 * phase finds nothing, the answer is the greedy paths of construct.h. Internal to schedule/. */
#ifndef SCHEDULE_CONFLICT_SEARCH_H
#define SCHEDULE_CONFLICT_SEARCH_H

#include <stdbool.h>

#include "schedule/problem/problem.h"
#include "schedule/problem/progress.h"

/* Improves the paths of a solution in place; its assignment does not change. If no better paths are
 * found, the paths do not change either. Each improvement is reported to g. collisions: the third
 * phase runs, too. Errors are those of progress_note. */
int conflict_search(struct solution *s, const struct problem *p, bool collisions,
		    struct progress *g, struct error *err);

#endif
