/* rehearsal.h - the model of a rehearsal, whose tensors have only a part of the real bytes.
 *
 * A rehearsal runs a cluster whose agents compute nothing (device "pretend"). Its model has the
 * stages and layers of the real model, but narrower ones, so that activations and gradients have
 * 1/divisor of the real numbers of floats. A network with 1/divisor of the bandwidths, or an
 * emulated one, then shows the real times.
 */
#ifndef MODEL_REHEARSAL_REHEARSAL_H
#define MODEL_REHEARSAL_REHEARSAL_H

#include <stdint.h>

#include "model/config.h"

enum { REHEARSAL_MOST = 1000000 };

/* Divides the sizes of the model and of its microbatches, and sets c->rehearsal. The sizes of
 * activations and of stages with layers are within a few percent of 1/divisor, unless the model is
 * so small that a width reaches its minimum. divisor: 1 .. REHEARSAL_MOST. The caller has checked
 * the model. */
void rehearsal_shrink(struct model_config *c, struct hyperparameters *r, uint32_t divisor);

#endif
