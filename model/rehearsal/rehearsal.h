/* rehearsal.h - the model of a rehearsal, whose tensors have only a part of the real bytes.
 *
 * A rehearsal runs a cluster whose agents compute nothing (device "pretend"). Its model has as
 * many stages and layers as the real model, but narrower ones: activations and gradients have
 * 1/divisor of the floats in the real model. If the network, real or emulated, also has 1/divisor
 * of the real bandwidths, transfers take the real times.
 */
#ifndef MODEL_REHEARSAL_REHEARSAL_H
#define MODEL_REHEARSAL_REHEARSAL_H

#include <stdint.h>

#include "model/config.h"

enum { REHEARSAL_MOST = 1000000 };

/* Divides the sizes of the model and of its microbatches, and sets c->rehearsal. The caller has
 * checked the model. divisor: 1 .. REHEARSAL_MOST. Activations, and stages with layers, get
 * 1/divisor of their size, to within a few percent. In a very small model a width may reach its
 * minimum, and the sizes are then larger. */
void rehearsal_shrink(struct model_config *c, struct hyperparameters *r, uint32_t divisor);

#endif
