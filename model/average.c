/* Averages the neighbours of a lost stage, element by element, in the order of the calls. */
#include "model/average.h"

void average_add(float *to, const float *from, size_t n, float weight, bool first)
{
	for (size_t i = 0; i < n; i++) {
		float part = weight * from[i];

		to[i] = first ? part : to[i] + part;
	}
}

/* Compares only the numbers of layers, because all layers have the same tensors. Stage 0 also has
 * the embedding, the last norm and the head, so it cannot replace another stage, and no other stage
 * can replace stage 0. */
bool average_fits(const struct model_config *c, uint32_t a, uint32_t b)
{
	return a != 0 && b != 0 && a < c->n_stages && b < c->n_stages &&
	       model_layer_count(c, a) == model_layer_count(c, b);
}
