/* refine.h - improves a candidate by small changes, each of which is planned. Internal to
 * schedule/fleet/.
 */
#ifndef SCHEDULE_REFINE_H
#define SCHEDULE_REFINE_H

#include "base/rng.h"
#include "schedule/fleet/evaluate.h"

/* Changes the candidate until the share of the work is done, or no change has helped for long: a
 * layer goes from one stage to another; a node goes to another stage, out, or in; two nodes
 * exchange their stages; other nodes hold stage 0; microbatches get another size. Calls note with
 * each candidate that is evaluated. */
void refine(struct effort *e, struct candidate *c, int64_t evaluations, double share,
	    struct rng *rng, void (*note)(void *arg, struct candidate *c), void *arg);

#endif
