/* sums.h - the orders to sum a stage's gradient over its replicas: to whom, and when.
 *
 * Where links are measured, a stage's replicas are told with the iteration's start: each begins
 * once it has counted all that it was given, and no way to the controller and back lies between.
 * Elsewhere, and wherever the iteration's ways have changed since its start, they are told when all
 * is counted.
 */
#ifndef CONTROLLER_ITERATION_SUMS_H
#define CONTROLLER_ITERATION_SUMS_H

#include <stdbool.h>

struct iteration;

/* Sums that were begun, or done, no longer count: the next have a higher attempt. */
void sums_forget(struct iteration *it);
/* With the iteration's start, where that is so: every stage, each node once it has counted its own.
 */
void sums_order_ahead(struct iteration *it);
/* The stages in which every gradient has been counted, and that do not sum yet. */
void sums_order_counted(struct iteration *it);
/* All stages that do not sum yet. */
void sums_order_rest(struct iteration *it);

#endif
