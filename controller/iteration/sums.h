/* sums.h - orders the replicas of a stage to sum its gradient.
 *
 * With measured links, the controller sends this order with the iteration's start. Each replica
 * then begins once it has counted all its microbatches, without a round trip to the controller. In
 * emulated runs, and after a reroute, the controller sends the order once all gradients have been
 * counted. */
#ifndef CONTROLLER_ITERATION_SUMS_H
#define CONTROLLER_ITERATION_SUMS_H

#include <stdbool.h>

struct iteration;

/* Voids the sums that have begun or are complete. The next sums have a higher attempt number. */
void sums_forget(struct iteration *it);
/* If links are measured, orders the sums of all stages when the iteration starts. */
void sums_order_ahead(struct iteration *it);
/* Orders the sums of stages in which every gradient has been counted. */
void sums_order_counted(struct iteration *it);
/* Orders the sums of all remaining stages. */
void sums_order_rest(struct iteration *it);

#endif
