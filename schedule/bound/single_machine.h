/* single_machine.h - one data node alone: the least time it takes to send its microbatches out,
 * compute their losses and take their gradients back, if nothing else causes a wait.
 *
 * Each microbatch has three tasks on one machine: F (forward), L (loss) and B (backward), with a
 * lag between F and L and a lag between L and B. The machine also pays the dispatch overhead and
 * has at most `slots` microbatches under way. The lags are the least times of a route through the
 * other stages. Microbatches are interchangeable: sorting the times of all F, of all L and of all B
 * keeps every lag, so some best schedule takes the microbatches in the same order at F, L and B.
 * Only the order of the kinds of task is open.
 *
 * The search walks through the numbers of F, L and B done so far. Of two states with the same
 * numbers, the one that is later in all its times is dropped, which keeps the result exact. If too
 * many states are left, two states are merged: the new state has the earlier times. Then the result
 * is only a lower bound. Internal to schedule/. */
#ifndef SCHEDULE_SINGLE_MACHINE_H
#define SCHEDULE_SINGLE_MACHINE_H

#include <stdbool.h>

#include "schedule/problem/strategy.h"

struct single_machine {
	double forward_s, loss_s, backward_s, overhead_s;
	/* Least time from the end of a microbatch's forward pass until the input of its loss is
	 * back at this node. */
	double lag_loss_s;
	/* Least time from the end of a microbatch's loss until the input of its backward pass is
	 * back at this node. */
	double lag_back_s;
	double lag_round_s; /* least sum of lag_loss_s and lag_back_s on one route */
	int n;              /* number of microbatches */
	int slots;          /* limit of microbatches under way at once */
};

/* Returns a lower bound of the makespan, in seconds. Sets *exact if the bound is the least makespan
 * itself. States with the same numbers of F, L and B tasks done form a group. most_states: number
 * of states kept in a group.
 *
 * Only a formula is used if most_states is 0, or if there are more than SINGLE_MACHINE_MOST_SLOTS
 * slots or SINGLE_MACHINE_MOST_MB microbatches. The formula takes the longest of three times: one
 * round trip; all tasks of the machine; and the sum of all round trips and of the unused times of
 * slots, divided by the number of slots. A slot is unused while its first F or its last B waits for
 * the machine. */
double single_machine_least_s(const struct single_machine *m, int most_states, bool *exact);

#endif
