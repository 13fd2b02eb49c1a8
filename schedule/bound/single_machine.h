/* single_machine.h - one data node by itself: how long it takes at least to send its microbatches
 * out, compute their losses and take their gradients back, when all else is free of contention.
 *
 * Each microbatch is F, a lag out, L, a lag back, B on one machine that also pays the dispatch
 * overhead, with as many under way as there are slots. The lags are the least that a way through
 * the other stages takes. Microbatches are interchangeable: in some best schedule they take their
 * turns in the same order at F, at L and at B, since sorting the times of each keeps every lag. So
 * only the order of the kinds of task is open.
 *
 * That is a walk through the numbers of F, L, B done so far. Of two ways to the same numbers one is
 * no worse if the machine is free no later and no microbatch under way is later; the worse is
 * dropped. What is left at the end is exact. Where too many ways are left, two are taken as one
 * with the earlier of each of their times: that is no longer exact, but nothing is below it.
 * Internal to schedule/.
 */
#ifndef SCHEDULE_SINGLE_MACHINE_H
#define SCHEDULE_SINGLE_MACHINE_H

#include <stdbool.h>

#include "schedule/search/strategy.h"


struct single_machine {
	double forward_s, loss_s, backward_s, overhead_s;
	double lag_loss_s, lag_back_s; /* F end to L arrival, L end to B arrival */
	double lag_round_s; /* both together, at least: no way need have both least lags */
	int n, slots;       /* microbatches; those under way at once */
};

/* The least makespan. *exact says whether it is that, or only below it. most_ways: kept for each
 * set of numbers; 0, or past SINGLE_MACHINE_MOST_SLOTS or SINGLE_MACHINE_MOST_MB: by formula alone:
 * the slots must hold every round trip, less what they cannot use while the first F and the last
 * tasks queue up. */
double single_machine_least_s(const struct single_machine *m, int most_ways, bool *exact);

#endif
