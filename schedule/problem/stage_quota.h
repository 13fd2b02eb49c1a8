/* stage_quota.h - keeps exposure equal while the paths of several microbatches are built one after
 * the other. The microbatches share a quota of visits of each stage; the quota says which stages
 * the next path may visit. Internal to schedule/.
 *
 * A microbatch that has no path is called "out". A path is built visit by visit. If a stage's
 * quota equals the number of microbatches that are out, each of these microbatches must visit the
 * stage. */
#ifndef SCHEDULE_STAGE_QUOTA_H
#define SCHEDULE_STAGE_QUOTA_H

#include "schedule/problem/problem.h"

struct stage_quota {
	const struct problem *p;
	/* Number of microbatches without a path, except microbatches that will visit every
	 * stage. */
	int out;
	/* Number of visits that the microbatches counted in `out` must make to each stage. */
	int need[CLUSTER_MOST_STAGES];
	/* The fields below are set by stage_quota_count for the next path. */
	int length;
	bool is_whole; /* the path will visit every stage, and takes nothing from the quota */
	/* For each stage: number of later stages that the path may visit, and number of later
	 * stages that it must visit. */
	int open_after[CLUSTER_MOST_STAGES], forced_after[CLUSTER_MOST_STAGES];
};

/* State of a path after a visit. OWES_EARLIER: the visit begins an exchange of two neighbouring
 * stages; the path has visited the later stage, and must visit the earlier one next. HAS_PAID: the
 * visit was that earlier stage. OWES_NOTHING: any other visit. */
enum visit_owing { OWES_NOTHING, OWES_EARLIER, HAS_PAID, VISIT_OWINGS };

struct visit {
	int stage;
	int top; /* highest stage visited so far; 0: only the data node was visited */
	enum visit_owing owing;
};

/* Largest number of entries that stage_quota_next writes. */
#define STAGE_QUOTA_MOST_NEXT (2 * CLUSTER_MOST_STAGES)

/* Initialises the quota as empty: every microbatch has a path. */
void stage_quota_init(struct stage_quota *v, const struct problem *p);

/* Fills the quota for the case that no microbatch has a path. Every stage gets its smallest
 * number of visits. The visits that remain go to stage `first` and the stages after it, one to
 * each, as far as exposure allows. */
void stage_quota_deal(struct stage_quota *v, int first);

/* Adds the visits of a microbatch's path to the quota, because the path is given up. */
void stage_quota_leave(struct stage_quota *v, const struct solution *s, const int *path);
/* Takes the visits of a microbatch's new path from the quota. */
void stage_quota_return(struct stage_quota *v, const struct solution *s, const int *path);

/* Prepares the quota for the next path, before it is built. path: the array for the new path. The
 * new path gets as many nodes as this array has now. */
void stage_quota_count(struct stage_quota *v, const int *path);
/* Returns true if the path that is being built must visit the stage. */
static inline bool stage_quota_forces(const struct stage_quota *v, int stage)
{
	return v->is_whole || v->need[stage] == v->out;
}
/* Returns true if the path may visit the stage next, and if `more` visits after it are enough for
 * all later stages that it must visit. */
bool stage_quota_may_visit(const struct stage_quota *v, int stage, int more);
/* Lists the visits that may follow the visit `last` of a path, so that the path can still be
 * completed. level: number of the visit after `last`; the data node is number 0. Returns how many
 * visits are listed. A path that only uses such visits misses no required stage. */
int stage_quota_next(const struct stage_quota *v, int level, const struct visit *last,
		     struct visit *list);

#endif
