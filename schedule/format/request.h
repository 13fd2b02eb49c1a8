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

/* Results of plan_search if it finds no plan. err says why. If a plan is found with another skip
 * ratio, err names the nearest such ratio. If sync_s exceeds its limit, err instead names the
 * smallest sync_s that was found. */
#define PLAN_INFEASIBLE 1 /* it was proved that no plan exists */
#define PLAN_NOT_FOUND 2  /* no plan was found, and nothing proves that none exists */

enum plan_algorithm {
	PLAN_BEST,      /* SkipPipe's own search, which optimises everything together */
	PLAN_CBS,       /* the published method: conflict-based search */
	PLAN_NO_TC2,    /* the published method without avoiding collisions */
	PLAN_DTFM,      /* straight pipelines through all stages */
	PLAN_DTFM_SKIP, /* the allocation of PLAN_DTFM, with stages skipped at random */
};
/* Returns "best", "cbs", "no-tc2", "dtfm" or "dtfm-skip"; NULL after the last algorithm. */
const char *plan_algorithm_name(enum plan_algorithm a);
/* Writes the algorithm with this name to *out. Returns false if no algorithm has this name. */
bool plan_algorithm_named(const char *name, enum plan_algorithm *out);

struct plan_request {
	/* Number of stages that a path visits; 0: the default, which skips about a third of the
	 * stages. */
	int path_length;
	/* Percent of each data node's microbatches that visit only path_length stages. The other
	 * microbatches visit every stage. 0: all microbatches visit path_length stages. Needs
	 * PLAN_BEST. The search then spends half of its budget on spreading the skipping paths over
	 * all possible sets of stages. */
	int skip_share;
	enum plan_algorithm algorithm;
	/* true: the search may give each node any stage. false: pinned nodes keep their stage, and
	 * the search places only the other nodes. */
	bool free_assignment;
	/* True: each stage sums its gradients after its own last task. If the assignment is free,
	 * the search then minimises total_s. */
	bool overlap_sync;
	/* Limit of sync_s. The search minimises iteration_s among the plans within this limit.
	 * Needs PLAN_BEST, a free assignment and a cluster with sync_pair_s. 0: no limit. */
	double sync_limit_s;
	double budget_s; /* time limit of the search; 0 or less: no limit */
	/* Limit of the number of evaluations; 0 or less: no limit. If neither this limit nor
	 * budget_s is given, plan_search takes one second. */
	int64_t evaluations;
	uint64_t seed;
	int threads; /* largest number of threads; 1 or less: only the caller's thread */
	/* array of n_nodes, borrowed: nodes that must not be used; NULL: all nodes may be used */
	const bool *excluded;
	/* Every path must visit its stages in ascending order, as a plain pipeline does. */
	bool ascending;
	/* true: the other data nodes take over the microbatches of excluded data nodes. false: the
	 * iteration has fewer microbatches. */
	bool keep_batch;
	/* The plan from which the search starts, borrowed; nodes keep their stages unless they are
	 * excluded. NULL: none. */
	const struct plan *from;
	/* Clock in microseconds that never goes back; NULL: no clock, and budget_s must be 0 or
	 * less. */
	int64_t (*clock_us)(void *);
	void *clock_arg;
	/* Borrowed; true ends the search with the best plan so far, if there is one. NULL: the
	 * search cannot be cancelled */
	const atomic_bool *cancel;
	/* Called with each better plan on the caller's thread; the plan is borrowed during the
	 * call. The first call comes as soon as there is any valid plan. NULL: no calls. */
	void (*on_improvement)(void *arg, const struct plan *plan);
	void *on_improvement_arg;
};

/* Sets the defaults: algorithm PLAN_BEST, no free assignment, one thread, seed 1, and no limit,
 * clock or callback. */
void plan_request_init(struct plan_request *q);

/* Returns the number of stages that a path visits by default. The path skips a third of the stages,
 * rounded down, but no stage that every microbatch must visit. */
int plan_default_path_length(const struct cluster *c);

#endif
