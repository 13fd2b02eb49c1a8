/* pricing.h - finds the trips of a data node with the highest total price within a given time.
 * Each route through the other stages has a length and a price (`worth`).
 *
 * The data node is a machine with two tasks for each microbatch: it sends the microbatch out (F,
 * the forward pass) and takes its gradients back (B, the backward pass). It pays the dispatch
 * overhead and has at most `slots` microbatches under way. A route fits if it is not longer than
 * the time between F and B; B may wait for a longer route with a higher price. The loss task takes
 * time between the two, but does not occupy the machine here.
 *
 * The search walks through the numbers of F and B done, as in single_machine.h. Of two states with
 * equal numbers, the one that is later in all its times and has no higher total price is dropped.
 * If too many states are left, two of them are merged: the new state has the earlier times and the
 * higher total price. The result can then only be too high, which keeps the bound valid. Internal
 * to schedule/. */
#ifndef SCHEDULE_PRICING_H
#define SCHEDULE_PRICING_H

#include <stdint.h>

#include "base/arena.h"
#include "schedule/problem/strategy.h"

#define PRICING_STAGES 64

struct pricing_request {
	double forward_s, loss_s, backward_s, overhead_s;
	int n;        /* number of microbatches, below 65536 */
	int slots;    /* limit of microbatches under way at once, up to PRICING_MOST_SLOTS */
	int n_routes; /* number of routes, at least one */
	/* arrays of n_routes: length and price of each route, both ascending */
	const double *route_s, *worth;
	const uint64_t *stages; /* array of n_routes: stages that each route visits, as bits */
};

struct pricing; /* opaque: working memory */

/* most_states: number of states kept for each number of microbatches under way. The result lives as
 * long as the arena. */
struct pricing *pricing_new(struct arena *a, int most_states);
/* Returns the highest total price of n trips within within_s, and adds the visits of each stage to
 * `visits` (PRICING_STAGES entries). -INFINITY: the microbatches do not fit. */
double pricing_most(struct pricing *t, const struct pricing_request *of, double within_s,
		    int *visits);
/* Returns the number of states compared so far. */
int64_t pricing_work(const struct pricing *t);

#endif
