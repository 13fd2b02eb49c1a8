/* Computes with all stages of the model on one device and keeps the nodes' sums. A run has more
 * sums than stages, because several nodes hold each stage. A pass adds to the sum that is in the
 * stage's gradient buffer. Before a pass, the executor therefore saves the sum in the buffer if
 * this sum belongs to another node, and puts the right sum into the buffer. */
#include "verify/executor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct executor {
	uint32_t n_stages;
	/* The n_stages stages of the model, each with memory for one microbatch. */
	struct stage **stages;
	/* For each of the n_stages stages, a buffer of B * T * C floats. A repeated forward pass
	 * writes its output there, and nobody reads it. */
	float **unused_output;
	/* For each of the n_stages stages, the number of the sum in its gradient buffer. */
	uint32_t *buffered_sum;
	/* For each of the n_sums sums, its P floats, unless the sum is in a stage's buffer; NULL:
	 * nothing was added yet. */
	float **saved;
	uint32_t n_sums;
};

int executor_new(struct executor **out, const struct executor_setup *setup, struct error *err)
{
	struct stage_options o = { .slots = 1, .batch = setup->batch,
				   .sequence = setup->sequence, .threads = setup->threads,
				   .seed = setup->seed, .device = setup->device };
	uint32_t n = setup->config.n_stages;
	struct executor *e = alloc_new(sizeof(*e));
	int rc = 0;

	e->n_stages = n;
	e->stages = alloc_array(n, sizeof(struct stage *));
	e->unused_output = alloc_array(n, sizeof(float *));
	e->buffered_sum = alloc_array(n, sizeof(*e->buffered_sum));
	for (uint32_t s = 0; rc == 0 && s < n; s++) {
		rc = stage_new(&e->stages[s], &setup->config, s, &o, err);
		if (rc == 0)
			e->unused_output[s] = malloc(stage_activation(e->stages[s]) *
						     sizeof(float));
		if (rc == 0 && !e->unused_output[s])
			rc = error_set(err, -ENOMEM, "no memory for the output of stage %u", s);
	}
	if (rc != 0) {
		executor_free(e);
		return rc;
	}
	executor_begin(e, 0);
	*out = e;
	return 0;
}

static void drop_sums(struct executor *e)
{
	for (uint32_t i = 0; i < e->n_sums; i++)
		free(e->saved[i]);
	free(e->saved);
	e->saved = NULL;
	e->n_sums = 0;
}

void executor_free(struct executor *e)
{
	if (!e)
		return;
	for (uint32_t s = 0; s < e->n_stages; s++) {
		stage_free(e->stages[s]);
		free(e->unused_output[s]);
	}
	drop_sums(e);
	free(e->stages);
	free(e->unused_output);
	free(e->buffered_sum);
	free(e);
}

struct stage *const *executor_stages(const struct executor *e)
{
	return e->stages;
}

void executor_begin(struct executor *e, uint32_t n)
{
	drop_sums(e);
	for (uint32_t s = 0; s < e->n_stages; s++)
		e->buffered_sum[s] = EXECUTOR_NO_SUM;
	e->saved = alloc_array(n, sizeof(float *));
	e->n_sums = n;
}

/* Puts a sum into the stage's gradient buffer, so that the stage's next pass adds to it. */
static int buffer_sum(struct executor *e, uint32_t s, uint32_t sum)
{
	struct stage *stage = e->stages[s];
	size_t bytes = stage_parameters(stage) * sizeof(float);
	uint32_t buffered = e->buffered_sum[s];

	if (buffered == sum)
		return 0;
	if (buffered != EXECUTOR_NO_SUM) {
		if (!e->saved[buffered])
			e->saved[buffered] = malloc(bytes);
		if (!e->saved[buffered])
			return -ENOMEM;
		memcpy(e->saved[buffered], stage_gradient(stage), bytes);
		if (stage_failure(stage)[0])
			return -EIO;
	}
	if (e->saved[sum]) {
		memcpy(stage_gradient(stage), e->saved[sum], bytes);
		stage_changed(stage);
	} else {
		stage_zero_gradient(stage);
	}
	e->buffered_sum[s] = sum;
	return 0;
}

int executor_forward(struct executor *e, uint32_t stage, const int32_t *tokens, const float *in,
		     float *out)
{
	return stage_forward(e->stages[stage], 0, tokens, in, out, true);
}

int executor_loss(struct executor *e, uint32_t sum, const float *in, const int32_t *targets,
		  float *loss, float *grad)
{
	bool count = sum != EXECUTOR_NO_SUM;
	int rc = count ? buffer_sum(e, 0, sum) : 0;

	return rc ? rc : stage_loss(e->stages[0], 0, in, targets, loss, grad, count);
}

int executor_backward(struct executor *e, uint32_t stage, uint32_t sum, const int32_t *tokens,
		      const float *in, const float *grad_out, float *grad_in)
{
	bool count = sum != EXECUTOR_NO_SUM;
	int rc = count ? buffer_sum(e, stage, sum) : 0;

	if (rc == 0)
		rc = stage_forward(e->stages[stage], 0, tokens, in, e->unused_output[stage], true);
	return rc ? rc : stage_backward(e->stages[stage], 0, grad_out, grad_in, count);
}

void executor_sum(struct executor *e, uint32_t stage, uint32_t sum, float *to)
{
	size_t bytes = stage_parameters(e->stages[stage]) * sizeof(float);

	if (e->buffered_sum[stage] == sum)
		memcpy(to, stage_gradient(e->stages[stage]), bytes);
	else if (e->saved[sum])
		memcpy(to, e->saved[sum], bytes);
	else
		memset(to, 0, bytes);
}
