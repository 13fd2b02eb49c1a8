/* reference.h - an independent implementation of the model in double precision and plain loops, for
 * comparison. */
#ifndef MODEL_TESTS_REFERENCE_H
#define MODEL_TESTS_REFERENCE_H

#include <stdint.h>

#include "model/config.h"
#include "model/tensor.h"

struct reference {
	const struct model_config *config;
	const struct tensor_table *table;
	double **weights; /* the weights, one array for each of the table->n tensors */
	uint32_t batch, sequence;
};

/* Returns the mean cross entropy after stage 0 and then the stages of path (n). hidden: receives
 * the residual stream (B, T, C) before the last norm; may be NULL. */
double reference_loss(const struct reference *r, const uint32_t *path, size_t n,
		      const int32_t *tokens, const int32_t *targets, double *hidden);

#endif
