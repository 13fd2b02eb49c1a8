/* machine.h - one data node by itself: how long it takes at least to send its microbatches out,
 * compute their losses and take their gradients back, when all else is free of contention.
 *
 * Each microbatch is F, a lag out, L, a lag back, B (and W where the backward pass is split) on
 * one machine that also pays the dispatch overhead, with as many under way as there are slots.
 * The lags are the least that a way through the other stages takes. Microbatches with the same
 * lags are interchangeable: in some best schedule they take their turns in the same order at F,
 * at L and at B, since sorting the times of each keeps every lag. So a branch and bound over
 * which kind of task comes next, and with which lags, is exact. Beyond a limit of steps a
 * formula stands in: the slots must hold every round trip, less what they cannot use while the
 * first F and the last tasks queue up. Internal to schedule/.
 */
#ifndef SCHEDULE_MACHINE_H
#define SCHEDULE_MACHINE_H

#include <stdbool.h>

#define MACHINE_MOST_LAGS 4
#define MACHINE_MOST_MB 64

/* Microbatches with the same lags. */
struct machine_lag {
	double loss_s, back_s; /* F end to L arrival, L end to B arrival */
	double round_s;        /* both together, at least: no way need have both least lags */
	int n;
};

struct machine {
	double forward_s, loss_s, backward_s, overhead_s;
	int slots;
	bool split; /* a W after each B gives the slot back; else the B does */
	double weights_s;
	int n_lags;
	struct machine_lag lags[MACHINE_MOST_LAGS];
};

/* The least makespan, or below_s where that is not less. *exact says whether by search (else by
 * formula, below it). most_steps limits the search. */
double machine_least_s(const struct machine *m, double below_s, long most_steps, bool *exact);

#endif
