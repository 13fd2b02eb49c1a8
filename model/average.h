/* average.h - rebuilds a stage that no node has, from the stages before and after it.
 *
 * Stages between the first and the last have the same shapes and do similar things, because all of
 * them add to the residual stream. CheckFree (arXiv:2506.15461) therefore replaces a lost stage by
 * the average of its two neighbours, each weighted by the squared norm of its gradient. The
 * optimizer's moments are averaged in the same way as the weights, and the learning rate stays
 * unchanged.
 */
#ifndef MODEL_AVERAGE_H
#define MODEL_AVERAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/stage.h"

/* Adds weight * from[i] to to[i] for all i < n. first: sets to[i] to weight * from[i] instead. */
void average_add(float *to, const float *from, size_t n, float weight, bool first);
/* Returns true if stage b's weights could replace stage a's: the tensors of both are the same,
 * except for the layer numbers in their names. */
bool average_fits(const struct model_config *c, uint32_t a, uint32_t b);

#endif
