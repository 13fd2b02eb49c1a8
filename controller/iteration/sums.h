/* sums.h - orders the replicas of a stage to sum its gradient.
 *
 * With measured links, the controller sends this order with the iteration's start. Each replica
 * can therefore begin as soon as it has counted all its microbatches, without a round trip to the
 * controller. In emulated runs, and after a reroute, the controller sends the order once all
 * gradients have been counted. */
#ifndef CONTROLLER_ITERATION_SUMS_H
#define CONTROLLER_ITERATION_SUMS_H

#include <stdbool.h>

struct iteration;

/* Voids the sums that have begun or are complete. The next sums have a higher attempt number. */
void sums_forget(struct iteration *it);
/* Called when the iteration starts. If links are measured, orders the replicas of all stages to
 * sum their gradients. */
void sums_order_ahead(struct iteration *it);
/* When every gradient of a stage has been counted, orders the stage's replicas to sum. */
void sums_order_counted(struct iteration *it);
/* Orders the replicas of all remaining stages to sum. */
void sums_order_rest(struct iteration *it);

#endif
