/* stage_quota.h - which stages the paths of microbatches may go through that have left together and come back one after
 * the other: what they leave is shared, so exposure stays as it is. Internal to schedule/.
 *
 * A path is built visit by visit. A stage that has as many visits left as microbatches are out must be
 * visited by each of them.
 */
#ifndef SCHEDULE_VISITS_H
#define SCHEDULE_VISITS_H

#include "schedule/problem/problem.h"

struct visits {
	const struct problem *p;
	int out;                       /* microbatches that are */
	int need[CLUSTER_MOST_STAGES]; /* visits they have left */
	/* As of the last visits_count: later stages that may, that must be visited. */
	int open_after[CLUSTER_MOST_STAGES], forced_after[CLUSTER_MOST_STAGES];
};

/* Where a path stands after a visit. Of two neighbours that are exchanged the later stage comes
 * first: then the path owes the earlier one. */
enum visits_owing { OWES_NOTHING, OWES_EARLIER, HAS_PAID, VISITS_OWING };

struct visit {
	int stage;
	int top; /* latest stage seen; 0: none but the data node's */
	enum visits_owing owing;
};

#define VISITS_MOST (2 * CLUSTER_MOST_STAGES) /* that visits_next lists */

/* Nobody is out. */
void visits_init(struct visits *v, const struct problem *p);

/* The stages of a path are left, or visited again. */
void visits_leave(struct visits *v, const struct solution *s, const int *path);
void visits_return(struct visits *v, const struct solution *s, const int *path);

/* Before the next path is built. */
void visits_count(struct visits *v);
/* What may follow `last` as the visit number `level` (1 and up) of a path, so that the rest can be filled;
 * how many. What follows the last level leaves nothing out. */
int visits_next(const struct visits *v, int level, const struct visit *last, struct visit *list);

#endif
