/* request.h - what is asked of a search: plan_search and everything below it read this one struct.
 *
 * Plain data. The clock, the seed and the way to cancel come in here, so that a search has no
 * hidden input.
 */
#ifndef SCHEDULE_REQUEST_H
#define SCHEDULE_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "schedule/format/plan.h"

/* plan_search returns one of these when there is no plan: none can exist; or none was found,
 * and the cluster is too large, or its assignment too free, to be sure. err says why, and the
 * nearest skip ratio with which there is a plan, or the least sync_s found where that is over
 * the limit. */
#define PLAN_INFEASIBLE 1
#define PLAN_NOT_FOUND 2

enum plan_algorithm {
	PLAN_BEST,      /* everything optimised together */
	PLAN_CBS,       /* the published method: conflict-based search */
	PLAN_NO_TC2,    /* the same without collisions in view */
	PLAN_DTFM,      /* straight pipelines, no skips */
	PLAN_DTFM_SKIP, /* its allocation, random legal skips */
};
/* "best", "cbs", "no-tc2", "dtfm", "dtfm-skip"; NULL past the last. */
const char *plan_algorithm_name(enum plan_algorithm a);
/* The one of that name into *out; false: there is none. */
bool plan_algorithm_named(const char *name, enum plan_algorithm *out);

struct plan_request {
	int path_length;               /* 0: skip a third of the stages */
	enum plan_algorithm algorithm;
	bool free_assignment;          /* place nodes anew, whatever stage they are pinned to;
					* else pinned nodes stay and only the others are placed */
	bool overlap_sync;             /* a stage's sum begins with its own last task's end; a free
					* assignment is then for the least total_s */
	double sync_limit_s;           /* > 0: of the plans whose sync_s is at most this, the one
					* with the least iteration_s, whatever overlaps; for
					* PLAN_BEST, a free assignment and a cluster with
					* sync_pair_s. 0: none */
	double budget_s;               /* <= 0: no limit in time */
	int64_t evaluations;           /* <= 0: no limit in evaluations. Without either limit
					* plan_search takes one second */
	uint64_t seed;
	int threads;                   /* most to use; <= 1: the caller's alone */
	const bool *excluded;          /* (n_nodes) borrowed: nodes that are out; NULL: none */
	bool ascending;                /* no stages exchanged: every path computes what a plain
					* pipeline does */
	bool keep_batch;               /* with data nodes out, the others take their microbatches
					* over; else the iteration has fewer */
	const struct plan *from;       /* borrowed: where to start; its nodes keep their stages as
					* far as they are in. NULL: from nothing */
	int64_t (*clock_us)(void *);   /* microseconds, never going back; NULL: time is not
					* looked at, and budget_s must be <= 0 */
	void *clock_arg;
	const atomic_bool *cancel;     /* borrowed: true ends the search, with the best plan so
					* far if there is one; NULL: never */
	/* Called with each better plan, borrowed during the call, on the caller's thread. The
	 * first call comes as soon as there is any valid plan. NULL: not told. */
	void (*on_improvement)(void *arg, const struct plan *plan);
	void *on_improvement_arg;
};

/* best, given assignment, one thread, seed 1, and no limit, clock or callback. */
void plan_request_init(struct plan_request *q);

/* What path_length 0 means for so many stages: a third skipped, rounded down. */
int plan_default_path_length(int n_stages);

#endif
