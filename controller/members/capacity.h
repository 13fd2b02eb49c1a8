/* capacity.h - memory and time that a stage needs on a node, computed from the model's shape alone.
 *
 * The first plan needs two figures before any agent has built a stage: how many microbatches fit
 * into a node's free memory, and how long the loss takes compared with a forward pass. The first
 * figure is estimated from the count of numbers that a stage stores, the second from the count of
 * multiplications. An agent that has built its stage reports measured values instead. The functions
 * have no side effects. */
#ifndef CONTROLLER_JOINING_CAPACITY_H
#define CONTROLLER_JOINING_CAPACITY_H

#include <stdint.h>

#include "model/config.h"

/* Largest number of microbatches that a node holds at once. Plans do not become faster if nodes
 * hold more. */
enum { CAPACITY_SLOTS_MOST = 8 };

/* Returns the bytes that one microbatch takes in the stage with the most layers: its activations,
 * and its output, which is kept in case it is sent again. The stage with the most layers counts,
 * because a node keeps its number of slots when its stage changes. */
double capacity_slot_bytes(const struct model_config *m, const struct hyperparameters *r);
/* Returns the bytes that a stage takes in addition to its microbatches: weights, gradient, moments,
 * a sum in progress, and a standby copy of another stage. This function and capacity_slot_bytes are
 * public for tests. */
double capacity_stage_bytes(uint64_t parameters);
/* Returns how many microbatches fit into `bytes` together with the stage: at least 1 and at most
 * `most`. */
int capacity_slots(const struct model_config *m, const struct hyperparameters *r,
		   uint64_t parameters, double bytes, int most);
/* Returns the number of layers in a stage that has one unit of work (model_stage_work). */
double capacity_unit_layers(const struct model_config *m);
/* Returns the time of the loss as a multiple of the time of a forward pass. The loss includes the
 * head, the cross entropy and their gradients. The forward pass is that of a stage with one unit of
 * work (model_stage_work). */
double capacity_loss_ratio(const struct model_config *m, const struct hyperparameters *r);

#endif
