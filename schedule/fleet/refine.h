/* refine.h - improves a candidate by small changes, each of which is planned. Internal to
 * schedule/fleet/.
 */
#ifndef SCHEDULE_REFINE_H
#define SCHEDULE_REFINE_H

#include "base/rng.h"
#include "schedule/fleet/evaluate.h"

/* refine() calls `note` with each candidate that it has evaluated, so that the caller can keep the
 * best. */
struct refine_notes {
	void (*note)(void *arg, struct candidate *c);
	void *arg;
};

/* Changes the candidate until the share of the work is done, or no change has helped for long. The
 * changes are: a layer goes from one stage to another; a node goes to another stage, is left out,
 * or is taken in; two nodes exchange their stages; stage 0 gets another number of nodes;
 * microbatches get another size. The search then restarts a few times from candidates that differ
 * from the best one by several changes. */
void refine(struct effort *e, struct candidate *c, int64_t evaluations, double share,
	    struct rng *rng, const struct refine_notes *notes);

#endif
