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
	int out; /* number of microbatches that are out, except those that will visit every stage */
	/* Number of visits that these microbatches have to make to each stage. */
	int need[CLUSTER_MOST_STAGES];
	/* The fields below are set by stage_quota_count for the next path. */
	int length;
	bool is_whole; /* the path will visit every stage, and takes nothing from the quota */
	/* For each stage, the number of later stages that the path may visit, and must visit. */
	int open_after[CLUSTER_MOST_STAGES], forced_after[CLUSTER_MOST_STAGES];
};

/* The state of a path after a visit. If two neighbouring stages are exchanged, the later stage
 * comes first, and the path then owes a visit of the earlier stage. */
enum visit_owing { OWES_NOTHING, OWES_EARLIER, HAS_PAID, VISIT_OWINGS };

struct visit {
	int stage;
	int top; /* highest stage visited so far; 0: only the data node was visited */
	enum visit_owing owing;
};

/* Largest number of entries that stage_quota_next writes. */
#define STAGE_QUOTA_MOST_NEXT (2 * CLUSTER_MOST_STAGES)

/* Begins with no microbatch out. */
void stage_quota_init(struct stage_quota *v, const struct problem *p);

/* Begins with all microbatches out. Every stage gets its least number of visits. The visits that
 * remain go to stage `first` and the stages after it, one each, as far as exposure allows. */
void stage_quota_deal(struct stage_quota *v, int first);

/* Takes a microbatch out: the visits of its path return to the quota. */
void stage_quota_leave(struct stage_quota *v, const struct solution *s, const int *path);
/* Gives a microbatch a path again: its visits are taken from the quota. */
void stage_quota_return(struct stage_quota *v, const struct solution *s, const int *path);

/* Call this before a path is built. path: where the path will be, which determines its length. */
void stage_quota_count(struct stage_quota *v, const int *path);
/* Returns true if the path that is being built must visit the stage. */
static inline bool stage_quota_forces(const struct stage_quota *v, int stage)
{
	return v->is_whole || v->need[stage] == v->out;
}
/* Returns true if a path may visit the stage next, and `more` visits after it can include all
 * stages that the path must still visit. */
bool stage_quota_may_visit(const struct stage_quota *v, int stage, int more);
/* Lists the visits that may follow `last` as number `level` (1 and up) of a path, so that the path
 * can still be completed. Returns how many there are. A path that only uses such visits misses no
 * required stage. */
int stage_quota_next(const struct stage_quota *v, int level, const struct visit *last,
		     struct visit *list);

#endif
