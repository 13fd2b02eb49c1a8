/* capacity.h - what a stage of a model takes on a node, from the model's shape alone.
 *
 * Used before anything is built: how many microbatches a node's free memory holds, and how long the
 * loss takes beside a forward pass. Estimates from counts of numbers and of multiplications; an agent
 * that has built its stage has measured both. Pure.
 */
#ifndef CONTROLLER_CAPACITY_H
#define CONTROLLER_CAPACITY_H

#include <stdint.h>

#include "model/config.h"

/* Bytes of one microbatch's activations in a stage, and what is kept of it to be sent again. */
double capacity_slot_bytes(const struct model_config *m, const struct recipe *r);
/* Bytes that a stage of so many parameters takes besides: weights, gradient, moments, a sum under way,
 * and a copy of another stage as a keeper has it. Both are public for tests. */
double capacity_stage_bytes(uint64_t parameters);
/* Microbatches that fit in so many bytes beside the stage: 1 to most. */
int capacity_slots(const struct model_config *m, const struct recipe *r, uint64_t parameters,
		   double bytes, int most);
/* The loss' time (head, cross entropy, their gradients) over a stage's forward pass. */
double capacity_loss_ratio(const struct model_config *m, const struct recipe *r);

#endif
