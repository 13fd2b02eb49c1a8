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

/* Results of plan_search without a plan. err says why. It also names the nearest skip ratio that
 * has a plan, or the least sync_s found if that exceeds the limit. */
#define PLAN_INFEASIBLE 1 /* proved: no plan exists */
#define PLAN_NOT_FOUND 2  /* none was found, and nothing proves that none exists */

enum plan_algorithm {
	PLAN_BEST,      /* everything optimised together */
	PLAN_CBS,       /* the published method: conflict-based search */
	PLAN_NO_TC2,    /* the same, blind to collisions */
	PLAN_DTFM,      /* straight pipelines through all stages */
	PLAN_DTFM_SKIP, /* the allocation of PLAN_DTFM with random legal skips */
};
/* "best", "cbs", "no-tc2", "dtfm", "dtfm-skip"; NULL after the last. */
const char *plan_algorithm_name(enum plan_algorithm a);
/* Writes the algorithm of that name to *out. Returns false if there is none. */
bool plan_algorithm_named(const char *name, enum plan_algorithm *out);

struct plan_request {
	int path_length;               /* 0: skip a third of the stages */
	enum plan_algorithm algorithm;
	bool free_assignment;          /* pins are ignored; else pinned nodes keep their stage and
					* only the others are placed */
	bool overlap_sync;             /* each stage sums after its own last task; the objective of
					* a free assignment is then total_s */
	double sync_limit_s;           /* > 0: of the plans with at most this sync_s, find the one
					* with the least iteration_s. Needs PLAN_BEST, a free
					* assignment and a cluster with sync_pair_s. 0: no limit */
	double budget_s;               /* <= 0: no limit in time */
	int64_t evaluations;           /* <= 0: no limit in evaluations. Without either limit
					* plan_search takes one second */
	uint64_t seed;
	int threads;                   /* most threads to use; <= 1: only the caller's */
	const bool *excluded;          /* (n_nodes) borrowed: nodes not to use; NULL: none */
	bool ascending;                /* stages are never exchanged: every path computes the same
					* as a plain pipeline */
	bool keep_batch;               /* if data nodes are excluded, the others take over their
					* microbatches; else the iteration has fewer */
	const struct plan *from;       /* borrowed: the plan to start from; nodes keep their stages
					* unless excluded. NULL: none */
	int64_t (*clock_us)(void *);   /* microseconds, never going back; NULL: no clock, and
					* budget_s must be <= 0 */
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

/* The path length if a third of the stages, rounded down, is skipped, or all that may be skipped if
 * these are fewer. */
int plan_default_path_length(const struct cluster *c);

#endif
