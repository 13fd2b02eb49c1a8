/* Computes the widths of a rehearsal's model. All widths shrink by the square root of the divisor,
 * so that shapes stay similar. Some formats have a scale for each group or a mean for each channel.
 * With similar shapes, these scales and means take nearly the same share of the bytes as in the
 * real model. */
#include "model/rehearsal/rehearsal.h"

#include <math.h>

enum {
	GROUP = 32, /* numbers that share a scale, in the formats of activations */
	VOCAB_LEAST = 256 /* least vocabulary: the tokens of a corpus of bytes */
};

static uint32_t at_least(double v, uint32_t least)
{
	return v > least ? (uint32_t)lround(v) : least;
}

static double layer_parameters(const struct model_config *c)
{
	double dim = c->dim, kv = (double)c->n_kv_heads * model_head_size(c);

	return dim * (2 * dim + 2 * kv + 3.0 * c->ffn_dim + 2);
}

void rehearsal_shrink(struct model_config *c, struct hyperparameters *r, uint32_t divisor)
{
	const struct model_config real = *c;
	double dim = real.dim, left, rows;

	if (divisor > 1) {
		c->dim = GROUP * at_least(dim / sqrt(divisor) / GROUP, 1);
		c->n_heads = c->n_kv_heads = 1;
		left = layer_parameters(&real) / divisor / c->dim - 4.0 * c->dim - 2;
		c->ffn_dim = at_least(left / 3, 1);
		c->vocab = at_least(real.vocab * dim / c->dim / divisor, VOCAB_LEAST);
		rows = (double)r->batch * r->sequence * dim / c->dim / divisor;
		r->sequence = at_least(rows / r->batch, 1);
		c->context = r->sequence;
	}
	c->rehearsal = divisor;
}
