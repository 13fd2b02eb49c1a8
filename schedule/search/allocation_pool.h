/* allocation_pool.h - allocations of nodes to stages, and their plans. Each phase of a run gets an
 * allocation from the pool. Internal to schedule/search/. */
#ifndef SCHEDULE_ALLOCATION_POOL_H
#define SCHEDULE_ALLOCATION_POOL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/search/phase_plans.h"

/* Two allocations for each ratio, and four for each change of the ratio. */
enum { MOST_ALLOCATIONS = 6 * SKIP_SCHEDULE_MOST };

/* The sizes of the stages, and the stage of each node */
struct allocation {
	/* Owned; each node is pinned to its stage, or to -1 if it has none */
	struct cluster *cluster;
	/* The stage sizes differ from those of the pool's cluster `c`. */
	bool has_own_sizes;
	struct plan *plans[SKIP_SCHEDULE_MOST]; /* one for each ratio, owned; NULL: no plan */
};

/* A pool for several ratios. A ratio is a number of skipped stages, and the share of the
 * microbatches that skip them. */
struct allocation_pool {
	const struct cluster *c;             /* the cluster, borrowed */
	const struct phase_plans_request *q; /* the request, borrowed */
	int n_ratios;
	/* arrays of n_ratios: number of stages that a microbatch skips, and percent of the
	 * microbatches that skip these stages */
	uint32_t skips[SKIP_SCHEDULE_MOST], shares[SKIP_SCHEDULE_MOST];
	int n_phases;                     /* number of phases that the run reaches */
	int ratio_of[SKIP_SCHEDULE_MOST]; /* array of n_phases: index of the phase's ratio */
	/* Array of n_ratios: allocation with the shortest iteration */
	int best[SKIP_SCHEDULE_MOST];
	int n_allocations;
	struct allocation allocations[MOST_ALLOCATIONS];
};

/* Returns the predicted seconds of an iteration with its sums. INFINITY: there is no plan. */
static inline double allocation_seconds(const struct plan *p)
{
	return p ? p->predicted.iteration_s + plan_visible_sync_s(p) : INFINITY;
}

/* Makes a pool, and plans each of its allocations for each ratio. Errors are those of plan_search;
 * the message names the ratio. */
int allocation_pool_new(const struct cluster *c, const struct phase_plans_request *q,
			struct allocation_pool **out, struct error *err);
void allocation_pool_free(struct allocation_pool *o); /* o may be NULL */

#endif
