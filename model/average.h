/* average.h - a stage that nobody holds any more, made of its neighbours.
 *
 * Stages between the first and the last have the same shapes and, being residual, do similar
 * things: CheckFree (arXiv:2506.15461) puts in a lost stage's place the average of the stages
 * before and after it, each weighed by the squared norm of its gradient. Here the optimizer's
 * moments are averaged in the same way as the weights, and the learning rate is left as it is.
 */
#ifndef MODEL_AVERAGE_H
#define MODEL_AVERAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/stage.h"

/* to (n) += weight * from, element by element; first: to = weight * from. */
void average_add(float *to, const float *from, size_t n, float weight, bool first);
/* Whether b's weights could stand in a's place: the same tensors, names of layers apart. */
bool average_fits(const struct model_config *c, uint32_t a, uint32_t b);

#endif
