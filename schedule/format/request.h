/* request.h - the request for a plan. plan_search and the functions below it read this struct.
 *
 * Plain data. The clock, the seed and cancellation are part of the request, so that a search has no
 * hidden input.
 */
#ifndef SCHEDULE_REQUEST_H
#define SCHEDULE_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"

/* Results of plan_search without a plan. err says why. err also names the nearest skip ratio that
 * has a plan, or the smallest sync_s found if it exceeds the limit. */
#define PLAN_INFEASIBLE 1 /* it is proved that no plan exists */
#define PLAN_NOT_FOUND 2  /* no plan was found, and nothing proves that none exists */

enum plan_algorithm {
	PLAN_BEST,      /* everything optimised together */
	PLAN_CBS,       /* the published method: conflict-based search */
	PLAN_NO_TC2,    /* the published method, with collisions ignored */
	PLAN_DTFM,      /* straight pipelines through all stages */
	PLAN_DTFM_SKIP, /* the allocation of PLAN_DTFM with random legal skips */
};
/* "best", "cbs", "no-tc2", "dtfm", "dtfm-skip"; NULL after the last. */
const char *plan_algorithm_name(enum plan_algorithm a);
/* Writes the algorithm of that name to *out. Returns false if there is none. */
bool plan_algorithm_named(const char *name, enum plan_algorithm *out);

struct plan_request {
	/* Number of stages that a path visits; 0: a third of the stages is skipped. */
	int path_length;
	/* Percent of each data node's microbatches whose paths have path_length stages; the rest
	 * visit every stage. 0: all paths have this length. Needs PLAN_BEST. Half of the search's
	 * budget then spreads these paths over all possible sub-networks. */
	int skip_share;
	enum plan_algorithm algorithm;
	/* true: pins are ignored; false: pinned nodes keep their stage, and only the rest are
	 * placed. */
	bool free_assignment;
	/* Each stage sums its gradients after its own last task. If the assignment is free, total_s
	 * is then the objective. */
	bool overlap_sync;
	/* Limit of sync_s. The search minimises iteration_s among the plans within this limit.
	 * Needs PLAN_BEST, a free assignment and a cluster with sync_pair_s. 0: no limit. */
	double sync_limit_s;
	double budget_s; /* seconds for the search; 0 or less: no limit */
	/* Number of evaluations; 0 or less: no limit. Without either limit plan_search takes one
	 * second. */
	int64_t evaluations;
	uint64_t seed;
	int threads; /* limit of threads; 1 or less: only the caller's */
	/* (n_nodes) borrowed: nodes that must not be used; NULL: none */
	const bool *excluded;
	bool ascending;                /* stages are never exchanged: every path computes the same
					* as a plain pipeline */
	/* The other data nodes take over the microbatches of excluded ones. false: the iteration
	 * has fewer microbatches. */
	bool keep_batch;
	/* Borrowed: the plan from which the search starts; nodes keep their stages unless excluded.
	 * NULL: none. */
	const struct plan *from;
	/* Clock in microseconds that never goes back; NULL: no clock, and budget_s must be 0 or
	 * less. */
	int64_t (*clock_us)(void *);
	void *clock_arg;
	const atomic_bool *cancel;     /* borrowed: true ends the search with the best plan so far,
					* if there is one. NULL: never */
	/* Called with each better plan, borrowed during the call, on the caller's thread. The first
	 * call comes as soon as there is any valid plan. NULL: no calls. */
	void (*on_improvement)(void *arg, const struct plan *plan);
	void *on_improvement_arg;
};

/* Sets the defaults: best, given assignment, one thread, seed 1, and no limit, clock or callback.
 */
void plan_request_init(struct plan_request *q);

/* Returns the path length if a third of the stages, rounded down, is skipped, or all that may be
 * skipped if these are fewer. */
int plan_default_path_length(const struct cluster *c);

#endif
