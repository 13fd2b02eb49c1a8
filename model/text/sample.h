/* sample.h - choosing the next token. */
#ifndef MODEL_SAMPLE_H
#define MODEL_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

struct sampler; /* opaque: room to sort in */

/* Draws tokens below vocab; a model may have more logits. NULL without memory. */
struct sampler *sampler_new(size_t vocab);
void sampler_free(struct sampler *s);

/* A token of softmax(logits / temperature), among the likeliest that together have probability
 * top_p (Holtzman et al., 2020). temperature 0: the likeliest, the first of equals. */
int32_t sampler_draw(struct sampler *s, const float *logits, float temperature, float top_p,
		     struct rng *r);

#endif
