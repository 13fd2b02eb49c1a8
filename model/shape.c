/* shape.c - counts the work and the memory of a model's layers.
 *
 * The memory is the size of the arrays that model/cuda/stage_cuda.c and model/slots.h place in a
 * GPU's memory. A change in those files has to be repeated here; shape_test compares the results
 * with the memory of real stages. */
#include "model/shape.h"

enum {
	REAL = 2, /* bytes of a number in bf16 on a GPU */
	FLOAT = 4,
	ARRAYS = 4, /* number of arrays of P floats: weights, gradient, two moments */
	/* Number of arrays of P floats for a sum under way: on a CPU, and on a GPU. */
	SUM_ARRAYS = 2,
	GPU_SUM_ARRAYS = 1,
};
#define MOST_LOGITS 0x1p28   /* limit of the numbers of logits that are computed at a time */
#define FIXED_BYTES 0x2.2p28 /* bytes: 512 MiB for code and graphs, 32 MiB for cuBLASLt */

/* Returns the number of values of a token's q, k and v. */
static double packed_of(const struct model_config *c)
{
	return c->dim + 2.0 * c->n_kv_heads * model_head_size(c);
}

static double count_layer(const struct model_config *c)
{
	double dim = c->dim;

	return dim * packed_of(c) + dim * dim + 3 * dim * c->ffn_dim + 2 * dim;
}

/* Returns how many bytes one layer's arrays take in a slot for each token, with RECOMPUTE_NORMS. */
static double layer_bytes(const struct model_config *c, double real)
{
	double reals = packed_of(c) + c->dim + 2.0 * c->ffn_dim;

	return real * reals + FLOAT * (2.0 * c->dim + c->n_heads + 2);
}

static double scratch_bytes(const struct model_config *c, double real)
{
	double reals = 4.0 * c->dim + 4.0 * c->ffn_dim + packed_of(c);

	return real * reals + FLOAT * (c->dim + (double)c->n_heads);
}

/* Computes the work and the memory. real: bytes of one number of an activation. */
static void count(const struct model_config *c, const struct hyperparameters *r, double real,
		  struct model_shape *out)
{
	double tokens = r->sequence, dim = c->dim, table = dim * c->vocab;

	*out = (struct model_shape){
		.n_layers = (int)c->n_layers,
		.width = (int)c->dim,
		.batch = (int)r->batch,
		.tokens = tokens,
		.layer_weights = count_layer(c),
		.end_weights = (c->tied ? 1 : 2) * table + dim,
		.weight_bytes = ARRAYS * FLOAT,
		.layer_flop = tokens * (2 * count_layer(c) + 4 * dim * tokens),
		.head_flop = 2 * tokens * table,
		.activation_bytes = FLOAT * tokens * dim,
		.kept_bytes = { tokens * layer_bytes(c, real), FLOAT * tokens * dim },
		/* The second term is the arrays of one more layer, which passes use if they keep no
		 * activations. */
		.scratch_bytes = tokens * (scratch_bytes(c, real) + layer_bytes(c, real)),
		.end_scratch_bytes = FLOAT * tokens * (dim + 4),
		.logits_bytes = (FLOAT + real) * tokens * c->vocab,
		.most_logits_bytes = (FLOAT + real) * MOST_LOGITS,
		.slot_bytes = 2 * FLOAT * tokens,
	};
}

void model_shape_of(const struct model_config *c, const struct hyperparameters *r,
		    struct model_shape *out)
{
	count(c, r, REAL, out);
	out->weight_bytes += GPU_SUM_ARRAYS * FLOAT + REAL;
	out->fixed_bytes = FIXED_BYTES;
}

void model_shape_in_fp32(const struct model_config *c, const struct hyperparameters *r,
			 struct model_shape *out)
{
	count(c, r, FLOAT, out);
	out->weight_bytes += (SUM_ARRAYS + ARRAYS) * FLOAT;
}
