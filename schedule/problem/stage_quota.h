/* stage_quota.h - which stages the paths of microbatches may go through that have left together and come back one after
 * the other: what they leave is shared, so exposure stays as it is. Internal to schedule/.
 *
 * A path is built visit by visit. A stage that has as many visits left as microbatches are out must be
 * visited by each of them.
 */
#ifndef SCHEDULE_STAGE_QUOTA_H
#define SCHEDULE_STAGE_QUOTA_H

#include "schedule/problem/problem.h"

struct stage_quota {
	const struct problem *p;
	int out;                       /* microbatches that are */
	int need[CLUSTER_MOST_STAGES]; /* visits they have left */
	/* As of the last stage_quota_count, for each stage: later ones that may, that must be visited. */
	int open_after[CLUSTER_MOST_STAGES], forced_after[CLUSTER_MOST_STAGES];
};

/* Where a path stands after a visit. Of two neighbours that are exchanged the later stage comes
 * first: then the path owes the earlier one. */
enum visit_owing { OWES_NOTHING, OWES_EARLIER, HAS_PAID, VISIT_OWINGS };

struct visit {
	int stage;
	int top; /* latest stage seen; 0: none but the data node's */
	enum visit_owing owing;
};

#define STAGE_QUOTA_MOST_NEXT (2 * CLUSTER_MOST_STAGES) /* that stage_quota_next lists */

/* Nobody is out. */
void stage_quota_init(struct stage_quota *v, const struct problem *p);

/* All microbatches are out, and every stage has its least visits left; what remains goes to stage `first` and
 * those after it, one each. */
void stage_quota_deal(struct stage_quota *v, int first);

/* The stages of a path are left, or visited again. */
void stage_quota_leave(struct stage_quota *v, const struct solution *s, const int *path);
void stage_quota_return(struct stage_quota *v, const struct solution *s, const int *path);

/* Before the next path is built. */
void stage_quota_count(struct stage_quota *v);
/* May a path visit the stage next, so that so many more visits fill it and it sees all that it must? */
bool stage_quota_may_visit(const struct stage_quota *v, int stage, int more);
/* What may follow `last` as the visit number `level` (1 and up) of a path, so that the rest can be filled;
 * how many. What follows the last level leaves nothing out. */
int stage_quota_next(const struct stage_quota *v, int level, const struct visit *last, struct visit *list);

#endif
