/* tensor.h - the only table of a model's tensors.
 *
 * Names, shapes [out, in] and order are those of the LLaMA checkpoints that other tools read. The
 * table drives sizes, pointers, initial weights, checkpoints and tests. Within a stage the tensors
 * lie one after another in a flat array, without gaps, in the table's order. q, k and v of a layer
 * are adjacent, so one matrix product computes all three. Likewise, gate and up are adjacent.
 */
#ifndef MODEL_TENSOR_H
#define MODEL_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/config.h"

enum tensor_role {
	TENSOR_EMBED,     /* (vocab, dim) */
	TENSOR_NORM1,     /* (dim) input_layernorm */
	TENSOR_Q,         /* (dim, dim) */
	TENSOR_K,         /* (n_kv_heads * head, dim) */
	TENSOR_V,         /* (n_kv_heads * head, dim) */
	TENSOR_O,         /* (dim, dim) */
	TENSOR_NORM2,     /* (dim) post_attention_layernorm */
	TENSOR_GATE,      /* (ffn, dim) */
	TENSOR_UP,        /* (ffn, dim) */
	TENSOR_DOWN,      /* (dim, ffn) */
	TENSOR_LAST_NORM, /* (dim) model.norm */
	TENSOR_HEAD,      /* (vocab, dim); absent when tied */
};

struct tensor {
	char name[64];
	enum tensor_role role;
	uint32_t stage;
	uint32_t layer; /* layer in the whole model; 0 for tensors outside the layers */
	uint32_t rows,
		/* cols: number of columns. A norm has rows = dim and cols = 1, and is written to
		 * files with one dimension. */
		cols;
	uint32_t dims; /* number of dimensions, 1 or 2 */
	size_t count;  /* number of values: rows * cols */
	size_t offset; /* offset in floats from the beginning of the stage's flat array */
};

struct tensor_table {
	size_t n;
	/* Tensors sorted by stage, and then by their order within a stage. */
	struct tensor *tensors;
};

/* Makes the table. c must be valid. -ENOMEM. */
int tensor_table_new(struct tensor_table *t, const struct model_config *c, struct error *err);
/* Frees the table's contents. A zeroed table is allowed. */
void tensor_table_free(struct tensor_table *t);
/* Returns the number of floats of the stage's tensors. */
size_t tensor_table_parameters(const struct tensor_table *t, uint32_t stage);

/* Checks the shape (dims) that a file gives a tensor of this name. -EINVAL: another shape; the
 * message gives both shapes. */
int tensor_check_shape(const struct tensor *t, const char *path, const char *name,
		       uint32_t dims, const uint64_t *shape, struct error *err);

/* Fills `to` (count) with the initial values of one tensor: N(0, std) for matrices, 1 for norms.
 * The values depend only on std, the seed and the name, so the number of stages does not change
 * them. */
void tensor_initialise(const struct tensor *t, float std, uint64_t seed, float *to);

#endif
