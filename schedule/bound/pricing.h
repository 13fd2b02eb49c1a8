/* pricing.h - the most that a data node's trips can be worth in a given time, when each way through the
 * other stages has a length and a price.
 *
 * The data node is a machine that sends each microbatch out (F) and takes its gradients back (B), with
 * as many under way as there are slots, and pays the dispatch overhead. A way fits that is not longer
 * than what lies between the two; a B may wait for one that is worth more. The loss is only a time
 * between them: its task may run beside the machine's others here.
 *
 * A walk through the numbers of F and B done, as in single_machine.h: of two states with the same numbers
 * the one that is later everywhere and has earned no more is dropped. Where too many are left two
 * become one with the better of each, so that nothing earns more than what is said. Internal to
 * schedule/.
 */
#ifndef SCHEDULE_PRICING_H
#define SCHEDULE_PRICING_H

#include <stdint.h>

#include "base/arena.h"
#include "schedule/search/strategy.h"

#define PRICING_STAGES 64

struct pricing_request {
	double forward_s, loss_s, backward_s, overhead_s;
	int n, slots; /* microbatches, below 65536; those under way at once, up to PRICING_MOST_SLOTS */
	int n_ways;   /* at least one */
	const double *way_s, *worth; /* (n_ways) both ascending */
	const uint64_t *stages;      /* (n_ways) that it visits, a bit for each */
};

struct pricing; /* opaque: room to work in */

/* most_states: kept for each pair of numbers. It lives as long as the arena. NULL: out of memory. */
struct pricing *pricing_new(struct arena *a, int most_states);
/* Visits of what earns most go into visits (PRICING_STAGES); exact as long as no two states became
 * one. -INFINITY: the microbatches do not fit. */
double pricing_most(struct pricing *t, const struct pricing_request *of, double within_s, int *visits);
/* States compared so far. */
int64_t pricing_work(const struct pricing *t);

#endif
