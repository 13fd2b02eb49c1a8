/* bound.h - how short an iteration can be at all, for an assignment: below this no paths and no
 * order can go.
 *
 * One data node alone. Its microbatches are F, a lag of at least the fastest way out and back,
 * L, a lag of at least the fastest way of the gradient, B, on one machine that also pays the
 * dispatch overhead, with as many under way as it has memory. Everything else is taken as free
 * of contention. With equal lags the microbatches are interchangeable, so some best schedule
 * takes them in turn at F, at L and at B, and a search over the order of the kinds is
 * exact; beyond a limit of steps a formula stands in: slots times the iteration must hold every
 * round trip, less what the slots cannot use at both ends.
 *
 * One stage alone. Its nodes have to serve the visits that exposure demands, between the
 * earliest arrival and the latest departure that leaves time for the way home.
 *
 * With the backward pass split the data node's own weight gradients are a fourth kind of task,
 * which gives the slot back; those of other nodes are left out, which keeps the bound valid.
 *
 * The bound is the largest of all these. Internal to schedule/.
 */
#ifndef SCHEDULE_BOUND_H
#define SCHEDULE_BOUND_H

#include "schedule/problem.h"

/* The work of one data node: n microbatches, `slots` at once. */
struct bound_machine {
	double forward_s, loss_s, backward_s, overhead_s;
	double lag_loss_s, lag_back_s; /* F end to L arrival, L end to B arrival */
	int n, slots;
	bool split; /* a W after each B; else a microbatch ends with its B */
	double weights_s;
};

/* The least makespan of the machine; *exact says whether by search (else by formula, below it).
 * most_steps limits the search. */
double bound_machine_s(const struct bound_machine *m, long most_steps, bool *exact);

struct bound; /* opaque: work in progress */

/* Both borrowed until bound_free; s gives the assignment and, by paths that finished late, which
 * data nodes to look at first (finish_s, (n_mb); NULL: any order). NULL: out of memory. */
struct bound *bound_new(const struct problem *p, const struct solution *s,
			const double *finish_s);
void bound_free(struct bound *b);
/* Looks at one more part of the problem. False when all have been looked at. */
bool bound_step(struct bound *b);
/* The bound so far: valid at any time. */
double bound_s(const struct bound *b);

#endif
