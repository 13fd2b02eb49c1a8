/* sample.h - chooses the next token. */
#ifndef MODEL_SAMPLE_H
#define MODEL_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

struct sampler; /* opaque: memory for sorting */

/* Makes a sampler that draws tokens below vocab; logits beyond are ignored. NULL if memory runs
 * out. */
struct sampler *sampler_new(size_t vocab);
void sampler_free(struct sampler *s);

/* Draws a token from softmax(logits / temperature), restricted to the likeliest tokens whose
 * probabilities together reach top_p (Holtzman et al., 2020). temperature 0: returns the
 * likeliest token. If several tokens are equally likely, returns the one with the lowest number.
 * Returns -1 if a logit is not finite. */
int32_t sampler_draw(struct sampler *s, const float *logits, float temperature, float top_p,
		     struct rng *r);

#endif
