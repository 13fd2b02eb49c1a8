/* Runs a whole model in one process. A microbatch goes from stage to stage along its path, and a
 * step updates all stages. */
#include "model/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/backend.h"
#include "model/codec/codec.h"

struct trainer {
	struct hyperparameters hyper;
	uint32_t n;            /* number of stages */
	struct stage **stages; /* the n stages */
	/* For each stage: microbatches that visited it since the last step. */
	uint32_t *visits;
	float **x;             /* the activations after each of the n stages */
	float *grad[2];
	struct codec activation_codec, gradient_codec;
	struct sum_codec *sum_codecs; /* for each stage: codec of its sum; NULL: fp32 */
};

/* Checks that the device has memory for the weights, gradients and moments of all stages together,
 * before the first stage fills its memory. Each stage later checks its whole need, including
 * activations. o->memory_bytes is a limit of the machine's memory. Stages on a GPU take little of
 * this memory, so the limit is not used for them. */
static int check_memory(const struct model_config *c, const struct stage_options *o,
			struct error *err)
{
	enum { ARRAYS = 4 };
	struct stage_device device = { .device_bytes = SIZE_MAX };
	struct tensor_table table;
	size_t need = 0, left = o->memory_bytes;
	int rc = tensor_table_new(&table, c, err);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < c->n_stages; i++)
		need += ARRAYS * sizeof(float) * tensor_table_parameters(&table, i);
	tensor_table_free(&table);
	if (stage_device(&device, o->device, NULL) != 0 || strncmp(device.name, "cuda", 4) == 0 ||
	    !left)
		left = device.device_bytes;
	if (need <= left)
		return 0;
	return error_set(err, -ENOMEM,
			 "the model needs more than %.1f MiB for weights, gradients and moments, "
			 "but only %.1f MiB are free",
			 (double)need / 0x1p20, (double)left / 0x1p20);
}

static int new_at_level(struct trainer **out, const struct model_config *c,
			const struct hyperparameters *r, const struct stage_options *o,
			struct error *err)
{
	struct stage_options one = *o;
	struct trainer *t;
	int rc = model_config_check(c, err);

	if (!rc)
		rc = check_memory(c, o, err);
	if (rc)
		return rc;
	t = alloc_new(sizeof(*t));
	one.slots = 1;
	one.activations_stay = true;
	t->hyper = *r;
	t->n = c->n_stages;
	t->stages = alloc_array(t->n, sizeof(struct stage *));
	t->visits = alloc_array(t->n, sizeof(*t->visits));
	t->x = alloc_array(t->n, sizeof(float *));
	for (uint32_t i = 0; i < t->n && !rc; i++) {
		rc = stage_new(&t->stages[i], c, i, &one, err);
		if (!rc && !(t->x[i] = stage_room(t->stages[i], err)))
			rc = -ENOMEM;
	}
	for (int i = 0; i < 2 && !rc; i++)
		if (!(t->grad[i] = stage_room(t->stages[0], err)))
			rc = -ENOMEM;
	if (rc)
		trainer_free(t);
	else
		*out = t;
	return rc;
}

int trainer_new(struct trainer **out, const struct model_config *c, const struct hyperparameters *r,
		const struct stage_options *o, struct error *err)
{
	static const enum recompute levels[] = { RECOMPUTE_NONE, RECOMPUTE_NORMS, RECOMPUTE_BLOCK };
	struct stage_options one = *o;
	int rc = -ENOMEM;

	if (o->recompute != RECOMPUTE_AUTO)
		return new_at_level(out, c, r, o, err);
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]) && rc == -ENOMEM; i++) {
		one.recompute = levels[i];
		rc = new_at_level(out, c, r, &one, err);
	}
	return rc;
}

void trainer_free(struct trainer *t)
{
	if (!t)
		return;
	for (int i = 0; i < 2 && t->stages[0]; i++)
		stage_room_free(t->stages[0], t->grad[i]);
	for (uint32_t i = 0; i < t->n && t->stages[i]; i++) {
		stage_room_free(t->stages[i], t->x[i]);
		stage_free(t->stages[i]);
	}
	sum_codecs_free(t->sum_codecs);
	free(t->x);
	free(t->visits);
	free(t->stages);
	free(t);
}

int trainer_set_formats(struct trainer *t, enum tensor_format wire, enum tensor_format sum_wire,
			struct error *err)
{
	const struct model_config *c = stage_config(t->stages[0]);

	t->activation_codec = codec_of_activation(wire, c->dim);
	t->gradient_codec = codec_of_gradient(wire);
	sum_codecs_free(t->sum_codecs);
	t->sum_codecs = NULL;
	return sum_wire == FORMAT_FP32 ? 0 : sum_codecs_new(&t->sum_codecs, c, sum_wire, err);
}

const char *trainer_failure(const struct trainer *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (stage_failure(t->stages[i])[0])
			return stage_failure(t->stages[i]);
	return "";
}

struct stage *const *trainer_stages(const struct trainer *t)
{
	return t->stages;
}

size_t trainer_parameters(const struct trainer *t)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < t->n; i++)
		sum += stage_parameters(t->stages[i]);
	return sum;
}

enum recompute trainer_recompute(const struct trainer *t)
{
	return stage_layout(t->stages[0])->recompute;
}

size_t trainer_memory_bytes(const struct trainer *t)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < t->n; i++)
		sum += stage_memory_bytes(t->stages[i]);
	return sum;
}

/* Rounds an activation or a gradient to the numbers that the receiving stage would decode. */
static int travel(const struct trainer *t, float *room, const struct codec *codec)
{
	return stage_room_round(t->stages[0], room, codec);
}

/* Runs the forward pass, and leaves the last activation in x[n]. keep: saves what the backward pass
 * needs. */
static int forward_path(struct trainer *t, const uint32_t *path, size_t n,
			const int32_t *tokens, bool keep)
{
	int rc = n < t->n ? 0 : -EINVAL;

	for (size_t i = 0; i < n && !rc; i++)
		if (path[i] == 0 || path[i] >= t->n)
			rc = -EINVAL;
	if (!rc)
		rc = stage_forward(t->stages[0], 0, tokens, NULL, t->x[0], keep);
	for (size_t i = 0; i < n && !rc; i++) {
		if (keep)
			rc = travel(t, t->x[i], &t->activation_codec);
		if (!rc)
			rc = stage_forward(t->stages[path[i]], 0, NULL, t->x[i], t->x[i + 1],
					   keep);
	}
	if (!rc && keep && n > 0)
		rc = travel(t, t->x[n], &t->activation_codec);
	return rc;
}

int trainer_evaluate(struct trainer *t, const uint32_t *path, size_t n, const int32_t *tokens,
		     const int32_t *targets, float *loss)
{
	int rc = forward_path(t, path, n, tokens, false);

	return rc ? rc : stage_loss(t->stages[0], 0, t->x[n], targets, loss, NULL, false);
}

int trainer_logits(struct trainer *t, const uint32_t *path, size_t n, const int32_t *tokens,
		   float *logits)
{
	int rc = forward_path(t, path, n, tokens, false);

	return rc ? rc : stage_logits(t->stages[0], t->x[n], logits);
}

int trainer_microbatch(struct trainer *t, const uint32_t *path, size_t n, const int32_t *tokens,
		       const int32_t *targets, float *loss)
{
	float *down = t->grad[0], *up = t->grad[1];
	int rc = forward_path(t, path, n, tokens, true);

	if (!rc)
		rc = stage_loss(t->stages[0], 0, t->x[n], targets, loss, down, true);
	for (size_t i = n; i-- > 0 && !rc;) {
		float *swap = down;

		rc = travel(t, down, &t->gradient_codec);
		if (!rc)
			rc = stage_backward(t->stages[path[i]], 0, down, up, true);
		down = up;
		up = swap;
	}
	if (!rc && n > 0)
		rc = travel(t, down, &t->gradient_codec);
	if (!rc)
		rc = stage_backward(t->stages[0], 0, down, NULL, true);
	if (rc)
		return rc;
	t->visits[0]++;
	for (size_t i = 0; i < n; i++)
		t->visits[path[i]]++;
	return 0;
}

/* Returns the number by which stage i's summed gradient is divided. */
static double gradient_divisor(const struct trainer *t, uint32_t i, enum grad_norm by)
{
	uint32_t n = by == GRAD_NORM_VISITS ? t->visits[i] : t->visits[0];

	return n ? n : 1;
}

/* Rounds each stage's gradient as nodes do for a stage with one replica. In a run over nodes, the
 * sum of such a stage is rounded twice, but the second rounding changes nothing. */
static int round_sums(struct trainer *t)
{
	int rc = 0;

	for (uint32_t i = 0; t->sum_codecs && i < t->n && !rc; i++) {
		rc = sum_codec_round(&t->sum_codecs[i], stage_gradient(t->stages[i]),
				     stage_parameters(t->stages[i]), 1);
		stage_changed(t->stages[i]);
	}
	return rc;
}

/* Averages each stage's gradient by the stage's own divisor, and computes the norm of these
 * averages over the whole model. All stages are then clipped by the same factor. */
int trainer_step(struct trainer *t, uint64_t iteration, enum grad_norm by, double *norm)
{
	struct adamw h = t->hyper.adamw;
	double sum = 0, coefficient;
	int rc;

	if (t->visits[0] == 0 || iteration == 0)
		return -EINVAL;
	rc = round_sums(t);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < t->n; i++) {
		double squares;

		rc = stage_gradient_squares(t->stages[i], &squares);
		if (rc)
			return rc;
		sum += squares / (gradient_divisor(t, i, by) * gradient_divisor(t, i, by));
	}
	*norm = sqrt(sum);
	if (!isfinite(sum))
		return -ERANGE;
	h.lr = hyper_lr(&t->hyper, iteration);
	coefficient = (double)hyper_scale(&t->hyper, sum, 1);
	for (uint32_t i = 0; i < t->n; i++) {
		float scale = (float)(coefficient / gradient_divisor(t, i, by));

		rc = stage_step(t->stages[i], NULL, scale, &h, iteration);

		if (rc)
			return rc;
	}
	return trainer_drop_gradient(t);
}

int trainer_stack(struct trainer *t, uint32_t to, uint32_t from)
{
	if (to >= t->n || from >= t->n)
		return -EINVAL;
	stage_stack(t->stages[to], t->stages[from]);
	return 0;
}

int trainer_drop_gradient(struct trainer *t)
{
	int rc = 0;

	for (uint32_t i = 0; i < t->n && !rc; i++) {
		rc = stage_zero_gradient(t->stages[i]);
		t->visits[i] = 0;
	}
	return rc;
}
