#include "verify/executor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/executor_private.h"

/* Stages of one slot each, on that device, and for each an output that nobody wants. All or
 * nothing. */
int executor_new(struct executor **out, const struct executor_setup *setup, const char *device,
		 struct error *err)
{
	struct stage_options o = { .slots = 1, .batch = setup->batch,
				   .sequence = setup->sequence, .threads = setup->threads,
				   .seed = setup->seed, .device = device };
	uint32_t n = setup->config.n_stages;
	struct executor *e = calloc(1, sizeof(*e));
	struct stage_device d;
	int rc = stage_device(&d, device, err);

	if (e && rc == 0) {
		e->setup = *setup;
		snprintf(e->text, sizeof(e->text), "%s", d.text);
		e->stages = calloc(n, sizeof(struct stage *));
		e->scratch = calloc(n, sizeof(float *));
		e->held = calloc(n, sizeof(*e->held));
	}
	if (rc == 0 && (!e || !e->stages || !e->scratch || !e->held))
		rc = error_set(err, -ENOMEM, "out of memory");
	for (uint32_t s = 0; rc == 0 && s < n; s++) {
		rc = stage_new(&e->stages[s], &setup->config, s, &o, err);
		if (rc == 0)
			e->scratch[s] = malloc(stage_activation(e->stages[s]) * sizeof(float));
		if (rc == 0 && !e->scratch[s])
			rc = error_set(err, -ENOMEM, "out of memory");
	}
	if (rc != 0) {
		executor_free(e);
		return rc;
	}
	executor_begin(e, 0);
	*out = e;
	return 0;
}

static void forget_weights(struct executor *e)
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
	process_end(e->process);
	for (uint32_t s = 0; s < e->setup.config.n_stages; s++) {
		if (e->stages)
			stage_free(e->stages[s]);
		if (e->scratch)
			free(e->scratch[s]);
	}
	forget_weights(e);
	free(e->stages);
	free(e->scratch);
	free(e->held);
	free(e);
}

const char *executor_text(const struct executor *e)
{
	return e->text;
}

struct stage *const *executor_stages(const struct executor *e)
{
	return e->stages;
}

int executor_begin(struct executor *e, uint32_t n)
{
	if (e->process)
		return process_begin(e->process, n);
	forget_weights(e);
	for (uint32_t s = 0; s < e->setup.config.n_stages; s++)
		e->held[s] = EXECUTOR_NO_SUM;
	e->saved = calloc(n + 1, sizeof(float *));
	if (!e->saved)
		return -ENOMEM;
	e->n_sums = n;
	return 0;
}

/* Puts a sum in the stage's own gradient, where the stage adds to it. */
static int hold_sum(struct executor *e, uint32_t s, uint32_t sum)
{
	struct stage *stage = e->stages[s];
	size_t bytes = stage_parameters(stage) * sizeof(float);
	uint32_t held = e->held[s];

	if (held == sum)
		return 0;
	if (held != EXECUTOR_NO_SUM) {
		if (!e->saved[held])
			e->saved[held] = malloc(bytes);
		if (!e->saved[held])
			return -ENOMEM;
		memcpy(e->saved[held], stage_gradient(stage), bytes);
	}
	if (e->saved[sum]) {
		memcpy(stage_gradient(stage), e->saved[sum], bytes);
		stage_changed(stage);
	} else {
		stage_zero_gradient(stage);
	}
	e->held[s] = sum;
	return 0;
}

int executor_forward(struct executor *e, uint32_t stage, const int32_t *tokens, const float *in,
		     float *out)
{
	if (e->process)
		return process_forward(e->process, stage, tokens, in, out);
	return stage_forward(e->stages[stage], 0, tokens, in, out, true);
}

int executor_loss(struct executor *e, uint32_t sum, const float *in, const int32_t *targets,
		  float *loss, float *grad)
{
	bool count = sum != EXECUTOR_NO_SUM;
	int rc = 0;

	if (e->process)
		return process_loss(e->process, sum, in, targets, loss, grad);
	if (count)
		rc = hold_sum(e, 0, sum);
	return rc ? rc : stage_loss(e->stages[0], 0, in, targets, loss, grad, count);
}

int executor_backward(struct executor *e, uint32_t stage, uint32_t sum, const int32_t *tokens,
		      const float *in, const float *grad_out, float *grad_in)
{
	bool count = sum != EXECUTOR_NO_SUM;
	int rc = 0;

	if (e->process)
		return process_backward(e->process, stage, sum, tokens, in, grad_out, grad_in);
	if (count)
		rc = hold_sum(e, stage, sum);
	if (rc == 0)
		rc = stage_forward(e->stages[stage], 0, tokens, in, e->scratch[stage], true);
	return rc ? rc : stage_backward(e->stages[stage], 0, grad_out, grad_in, count);
}

int executor_sum(struct executor *e, uint32_t stage, uint32_t sum, float *to)
{
	size_t bytes;

	if (e->process)
		return process_sum(e->process, stage, sum, to);
	bytes = stage_parameters(e->stages[stage]) * sizeof(float);
	if (e->held[stage] == sum)
		memcpy(to, stage_gradient(e->stages[stage]), bytes);
	else if (e->saved[sum])
		memcpy(to, e->saved[sum], bytes);
	else
		memset(to, 0, bytes);
	return 0;
}

int executor_set_weights(struct executor *e, uint32_t stage, const float *weights)
{
	if (e->process)
		return process_set_weights(e->process, stage, weights);
	memcpy(stage_weights(e->stages[stage]), weights,
	       stage_parameters(e->stages[stage]) * sizeof(float));
	stage_changed(e->stages[stage]);
	return 0;
}
