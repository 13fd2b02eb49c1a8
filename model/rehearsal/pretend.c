/* One stage on the device "pretend", which computes nothing. An agent only sleeps for the times
 * that the cluster file gives for its node (agent/execution/tasks.c). Many agents on one machine
 * therefore do not slow one another down.
 *
 * Outputs and gradients have the right sizes, and contents that are cheap to make: a multiplication
 * and an addition for each number. These contents depend on the input, the weights and the earlier
 * calls, and are the same bits on every machine. Hashes, sums, checkpoints and the command `verify`
 * therefore find lost, repeated and damaged tensors as in training. AdamW steps the weights as in
 * training. */
#include "model/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/cgroup.h"
#include "model/cpu/stage_memory.h"
#include "model/hash.h"
#include "model/squares.h"
#include "model/vector/vector.h"

struct pretend {
	const struct stage_layout *l;
	size_t size;   /* number of floats of an activation */
	float *arrays; /* (ARRAY_COUNT, P) weights, gradient and moments */
	/* true: only the first `size` floats of the gradient are up to date. pretend_array fills
	 * the rest of the gradient with copies of these floats. */
	bool repeats;
};

static int pretend_look(struct device_name *name, struct stage_device *out, struct error *err)
{
	(void)name;
	(void)err;
	snprintf(out->text, sizeof(out->text), "computes nothing");
	out->free_bytes = memory_usable();
	if (out->free_bytes == SIZE_MAX)
		out->free_bytes = UINT64_MAX;
	out->machine_bytes = out->free_bytes;
	return 0;
}

static size_t pretend_memory(const void *self)
{
	const struct pretend *s = self;

	return ARRAY_COUNT * s->l->parameters * sizeof(float);
}

static void pretend_free(void *self)
{
	struct pretend *s = self;

	stage_memory_free(s->arrays);
	free(s);
}

static int pretend_make(void **self, const struct stage_layout *l, struct error *err)
{
	struct pretend *s = alloc_new(sizeof(*s));
	void *arrays;
	int rc;

	s->l = l;
	s->size = (size_t)l->batch * l->sequence * l->config.dim;
	rc = stage_memory_new(&arrays, pretend_memory(s), l->memory_bytes, err);
	if (rc) {
		free(s);
		return error_prefix(err, rc, "stage %u", l->index);
	}
	s->arrays = arrays;
	s->repeats = true;
	*self = s;
	return 0;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static float *pretend_array(void *self, enum stage_array which)
{
	struct pretend *s = self;
	size_t p = s->l->parameters;
	float *array = s->arrays + (size_t)which * p;

	if (which == ARRAY_GRADIENT && s->repeats) {
		for (size_t at = s->size; at < p; at += s->size)
			memcpy(array + at, array, smaller(s->size, p - at) * sizeof(*array));
		s->repeats = false;
	}
	return array;
}

/* Adds the numbers of a tensor to the stage's gradient. The gradient is longer than the tensor, so
 * the tensor's numbers are used repeatedly. Until someone reads the gradient, one copy of the sum
 * suffices. A large stage would otherwise spend more time here than for all its messages. */
static void add_gradient(struct pretend *s, const float *from)
{
	size_t p = s->repeats ? smaller(s->size, s->l->parameters) : s->l->parameters;
	float *gradient = s->arrays + ARRAY_GRADIENT * s->l->parameters;
	size_t n;

	for (size_t at = 0; at < p; at += n) {
		n = smaller(s->size, p - at);
		for (size_t i = 0; i < n; i++)
			gradient[at + i] += 0.125f * from[i];
	}
}

static void embed_tokens(const struct pretend *s, const int32_t *tokens, float *out)
{
	size_t c = s->l->config.dim;

	for (size_t row = 0; row < s->size / c; row++)
		for (size_t i = 0; i < c; i++)
			out[row * c + i] =
				(float)((tokens[row] * 31 + (int32_t)i * 17) % 255 - 127) * 0x1p-7f;
}

static int pretend_forward(void *self, uint32_t slot, const int32_t *tokens, const float *in,
			   float *out, bool keep)
{
	struct pretend *s = self;
	const float *w = pretend_array(s, ARRAY_WEIGHTS);
	size_t n;

	(void)slot;
	(void)keep;
	if (tokens)
		embed_tokens(s, tokens, out);
	else
		memcpy(out, in, s->size * sizeof(*out));
	for (size_t at = 0; at < s->size; at += n) {
		n = smaller(s->size - at, s->l->parameters);
		for (size_t i = 0; i < n; i++)
			out[at + i] = 0.75f * out[at + i] + 0.25f * w[i];
	}
	return 0;
}

static int pretend_backward(void *self, uint32_t slot, const float *grad_out, float *grad_in,
			    bool count)
{
	struct pretend *s = self;

	(void)slot;
	for (size_t i = 0; grad_in && i < s->size; i++)
		grad_in[i] = 0.75f * grad_out[i];
	if (count)
		add_gradient(s, grad_out);
	return 0;
}

/* Reports a loss of 0, because none is computed. Nothing shows this loss. */
static int pretend_loss(void *self, const float *in, const int32_t *targets, float *loss,
			float *grad, bool count)
{
	struct pretend *s = self;

	(void)targets;
	*loss = 0;
	for (size_t i = 0; grad && i < s->size; i++)
		grad[i] = 0x1p-10f * in[i];
	if (count && grad)
		add_gradient(s, grad);
	return 0;
}

static int pretend_logits(void *self, const float *in, float *logits)
{
	(void)self;
	(void)in;
	(void)logits;
	return -ENOTSUP;
}

static int pretend_zero_gradient(void *self)
{
	struct pretend *s = self;

	memset(s->arrays + ARRAY_GRADIENT * s->l->parameters, 0,
	       smaller(s->size, s->l->parameters) * sizeof(float));
	s->repeats = true;
	return 0;
}

static void pretend_changed(void *self)
{
	(void)self; /* callers write to the stage's own arrays: nothing has to be copied */
}

static void pretend_put_state(void *self, size_t at, size_t n, const float *const state[3])
{
	static const enum stage_array arrays[] = { ARRAY_WEIGHTS, ARRAY_MOMENT1, ARRAY_MOMENT2 };

	for (int k = 0; k < 3; k++)
		if (state[k])
			memcpy(pretend_array(self, arrays[k]) + at, state[k], n * sizeof(float));
}

static uint64_t pretend_hash(void *self)
{
	struct pretend *s = self;

	return hash_floats(pretend_array(s, ARRAY_WEIGHTS), s->l->parameters);
}

static int pretend_squares(void *self, double *sum)
{
	struct pretend *s = self;

	*sum = squares_sum(pretend_array(s, ARRAY_GRADIENT), s->l->parameters);
	return 0;
}

/* Steps with plain instructions, because the other instruction sets may round differently. */
static int pretend_step(void *self, const float *gradient, float scale, const struct adamw *h,
			uint64_t t)
{
	struct pretend *s = self;
	const struct vector_ops *v = vector_ops_named("plain");

	if (!gradient)
		gradient = pretend_array(s, ARRAY_GRADIENT);
	for (size_t i = 0; i < s->l->n_tensors; i++) {
		const struct tensor *x = &s->l->tensors[i];
		struct adamw_factors f =
			adamw_factors(h, scale, x->dims > 1 ? h->weight_decay : 0, t);

		v->adamw(pretend_array(s, ARRAY_WEIGHTS) + x->offset,
			 pretend_array(s, ARRAY_MOMENT1) + x->offset,
			 pretend_array(s, ARRAY_MOMENT2) + x->offset, gradient + x->offset,
			 x->count, &f);
	}
	return 0;
}

const struct backend backend_pretend = {
	.name = "pretend",
	.look = pretend_look,
	.make = pretend_make,
	.free = pretend_free,
	.forward = pretend_forward,
	.loss = pretend_loss,
	.logits = pretend_logits,
	.backward = pretend_backward,
	.zero_gradient = pretend_zero_gradient,
	.memory = pretend_memory,
	.host_memory = pretend_memory,
	.array = pretend_array,
	.own = pretend_array,
	.changed = pretend_changed,
	.put_state = pretend_put_state,
	.hash = pretend_hash,
	.squares = pretend_squares,
	.step = pretend_step,
};
