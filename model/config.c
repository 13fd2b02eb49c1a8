/* Checks models and hyperparameters against one table of fields, contains the presets, and computes
 * the schedules of the learning rate. */
#include "model/config_fields.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(type, member, kind, low, high) \
	{ \
#member, kind, offsetof(type, member), low, high, false, NULL \
	}
#define OPTIONAL(type, member, kind, high) \
	{ \
#member, kind, offsetof(type, member), 0, high, true, NULL \
	}
#define CUT(type, member) \
	{ \
#member, KIND_LAYERS, offsetof(type, member), 0, ROUTE_HOPS, true, NULL \
	}
#define NAMED(type, member, of) \
	{ \
#member, KIND_NAME, offsetof(type, member), 0, COUNT(of) - 1, true, of \
	}
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const schedules[] = { "cosine", "linear", "wsd", "wsd-sqrt" };

static const struct field of_model[] = {
	FIELD(struct model_config, vocab, KIND_U32, 2, 1 << 20),
	FIELD(struct model_config, dim, KIND_U32, 2, 1 << 16),
	FIELD(struct model_config, n_layers, KIND_U32, 1, 1024),
	FIELD(struct model_config, n_heads, KIND_U32, 1, 1024),
	FIELD(struct model_config, n_kv_heads, KIND_U32, 1, 1024),
	FIELD(struct model_config, ffn_dim, KIND_U32, 1, 1 << 18),
	FIELD(struct model_config, context, KIND_U32, 1, 1 << 20),
	FIELD(struct model_config, n_stages, KIND_U32, 1, 1024),
	FIELD(struct model_config, rope_theta, KIND_FLOAT, 1, 1e9),
	FIELD(struct model_config, norm_eps, KIND_FLOAT, 1e-12, 1e-1),
	FIELD(struct model_config, init_std, KIND_FLOAT, 0, 10),
	FIELD(struct model_config, tied, KIND_BOOL, 0, 1),
	OPTIONAL(struct model_config, rope_factor, KIND_FLOAT, 1e6),
	OPTIONAL(struct model_config, rope_low_freq_factor, KIND_FLOAT, 1e6),
	OPTIONAL(struct model_config, rope_high_freq_factor, KIND_FLOAT, 1e6),
	OPTIONAL(struct model_config, rope_original_context, KIND_U32, 1 << 20),
	OPTIONAL(struct model_config, rehearsal, KIND_U32, 1000000),
	CUT(struct model_config, stage_layers),
};

static const struct field of_hyper[] = {
	FIELD(struct hyperparameters, batch, KIND_U32, 1, HYPER_BATCH_MOST),
	FIELD(struct hyperparameters, sequence, KIND_U32, 1, 1 << 20),
	FIELD(struct hyperparameters, adamw.lr, KIND_FLOAT, 0, 10),
	FIELD(struct hyperparameters, adamw.beta1, KIND_FLOAT, 0, 0.999999),
	FIELD(struct hyperparameters, adamw.beta2, KIND_FLOAT, 0, 0.999999),
	FIELD(struct hyperparameters, adamw.eps, KIND_FLOAT, 1e-15, 1),
	FIELD(struct hyperparameters, adamw.weight_decay, KIND_FLOAT, 0, 10),
	FIELD(struct hyperparameters, clip, KIND_FLOAT, 0, 1e9),
	FIELD(struct hyperparameters, warmup, KIND_U32, 0, UINT32_MAX),
	FIELD(struct hyperparameters, iterations, KIND_U32, 0, UINT32_MAX),
	FIELD(struct hyperparameters, final_lr, KIND_FLOAT, 0, 1),
	NAMED(struct hyperparameters, schedule, schedules),
	OPTIONAL(struct hyperparameters, decay, KIND_FLOAT, 1 << 24),
};

const struct fields model_fields = { of_model, COUNT(of_model) };
const struct fields hyper_fields = { of_hyper, COUNT(of_hyper) };

const char *field_name(const struct field *f)
{
	const char *dot = strchr(f->name, '.');

	return dot ? dot + 1 : f->name;
}

double field_value(const struct field *f, const void *object)
{
	const char *at = (const char *)object + f->offset;

	switch (f->kind) {
	case KIND_LAYERS:
		return ((const struct stage_layers *)(const void *)at)->n;
	case KIND_NAME:
	case KIND_U32: {
		uint32_t v;
		memcpy(&v, at, sizeof(v));
		return v;
	}
	case KIND_FLOAT: {
		float v;
		memcpy(&v, at, sizeof(v));
		return v;
	}
	case KIND_BOOL:
		break;
	}
	return *(const bool *)at ? 1 : 0;
}

double model_shortest(float v)
{
	for (int digits = 1; digits < 10; digits++) {
		char text[32];

		snprintf(text, sizeof(text), "%.*g", digits, (double)v);
		if (strtof(text, NULL) == v)
			return strtod(text, NULL);
	}
	return (double)v;
}

static int check_ranges(const struct fields *fields, const void *object, struct error *err)
{
	for (size_t i = 0; i < fields->n; i++) {
		const struct field *f = &fields->of[i];
		double v = field_value(f, object);

		/* The value is a float, so the lower limit is rounded to a float too. Without this,
		 * a value equal to the limit could be refused. */
		if (!(v >= (double)(float)f->low && v <= f->high))
			return error_set(err, -EINVAL, "%s is %g, expected %g to %g",
					 field_name(f), v, f->low, f->high);
	}
	return 0;
}

static int check_scaling(const struct model_config *c, struct error *err)
{
	double factor = (double)c->rope_factor, low = (double)c->rope_low_freq_factor,
	       high = (double)c->rope_high_freq_factor;

	if (factor != 0 && factor < 1)
		return error_set(err, -EINVAL,
				 "rope_factor is %g, expected 0 (plain RoPE), or 1 or more",
				 factor);
	if (low == 0 && high == 0 && c->rope_original_context == 0)
		return 0;
	if (factor == 0 || low == 0 || c->rope_original_context == 0)
		return error_set(err, -EINVAL,
				 "rope_factor, rope_low_freq_factor, rope_high_freq_factor and "
				 "rope_original_context: expected all four, or rope_factor alone");
	if (high <= low)
		return error_set(err, -EINVAL,
				 "rope_high_freq_factor is %g, expected more than "
				 "rope_low_freq_factor %g",
				 high, low);
	return 0;
}

int model_config_check(const struct model_config *c, struct error *err)
{
	int rc = check_ranges(&model_fields, c, err);

	if (rc)
		return rc;
	if (c->dim % c->n_heads)
		return error_set(err, -EINVAL,
				 "dim is %" PRIu32 ", not a multiple of n_heads %" PRIu32,
				 c->dim, c->n_heads);
	if (c->dim / c->n_heads % 2)
		return error_set(err, -EINVAL,
				 "dim / n_heads is %" PRIu32 ", expected an even head size",
				 c->dim / c->n_heads);
	if (c->n_heads % c->n_kv_heads)
		return error_set(err, -EINVAL,
				 "n_kv_heads is %" PRIu32 ", does not divide n_heads %" PRIu32,
				 c->n_kv_heads, c->n_heads);
	if (c->n_stages > c->n_layers + 1)
		return error_set(err, -EINVAL,
				 "n_stages is %" PRIu32 ", more than one above the %" PRIu32
				 " of n_layers",
				 c->n_stages, c->n_layers);
	rc = model_cut_check(c, err);
	return rc ? rc : check_scaling(c, err);
}

int hyper_check(const struct hyperparameters *r, const struct model_config *c, struct error *err)
{
	int rc = check_ranges(&hyper_fields, r, err);

	if (!rc && r->sequence > c->context)
		rc = error_set(err, -EINVAL,
			       "sequence is %" PRIu32 ", longer than the context %" PRIu32,
			       r->sequence, c->context);
	if (!rc && r->decay > 0 && (r->schedule == LR_COSINE || r->schedule == LR_LINEAR))
		rc = error_set(err, -EINVAL,
			       "decay is %g, but with schedule %s the rate falls in all iterations",
			       (double)r->decay, schedules[r->schedule]);
	return rc;
}

/* ---- presets ----
 * The larger presets have the dimensions that were published for LLaMA-style models of their
 * size. */

/* The last fields of a preset's model: RoPE is not scaled, the model is for training (no
 * rehearsal), and the cut is equal. */
#define PLAIN \
	0, 0, 0, 0, 0, \
	{ \
		0, { 0 } \
	}
/* The last fields of a preset's hyperparameters: schedule and decay. */
#define SCHEDULE LR_WSD, 0

static const struct preset {
	const char *name;
	struct model_config config;
	struct hyperparameters hyper;
} presets[] = {
	{ "tiny",
	  { 256, 96, 12, 6, 3, 256, 256, 6, 10000, 1e-5f, 0.06f, false, PLAIN },
	  { 4, 64, { 5e-3f, 0.9f, 0.95f, 1e-8f, 0.1f }, 1, 5, 0, 1, SCHEDULE } },
	{ "30m",
	  { 32000, 320, 12, 5, 5, 1280, 512, 6, 10000, 1e-5f, 0.02f, true, PLAIN },
	  { 4, 256, { 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f }, 1, 100, 0, 0.1f, SCHEDULE } },
	{ "124m",
	  { 50304, 768, 12, 12, 12, 2048, 1024, 4, 10000, 1e-5f, 0.02f, true, PLAIN },
	  { 4, 1024, { 6e-4f, 0.9f, 0.95f, 1e-8f, 0.1f }, 1, 500, 0, 0.1f, SCHEDULE } },
	{ "500m",
	  { 32000, 1024, 24, 16, 16, 4096, 1024, 6, 10000, 1e-5f, 0.02f, false, PLAIN },
	  { 4, 1024, { 3e-4f, 0.9f, 0.95f, 1e-8f, 0.1f }, 1, 1000, 0, 0.1f, SCHEDULE } },
	{ "1.5b",
	  { 32000, 2048, 24, 16, 16, 5632, 4096, 6, 10000, 1e-5f, 0.02f, false, PLAIN },
	  { 1, 4096, { 3e-4f, 0.9f, 0.95f, 1e-8f, 0.1f }, 1, 2000, 0, 0.1f, SCHEDULE } },
	{ "7b",
	  { 32000, 4096, 32, 32, 32, 11008, 4096, 8, 10000, 1e-5f, 0.02f, false, PLAIN },
	  { 1, 4096, { 3e-4f, 0.9f, 0.95f, 1e-8f, 0.1f }, 1, 2000, 0, 0.1f, SCHEDULE } },
};

const char *model_preset_name(size_t i)
{
	return i < COUNT(presets) ? presets[i].name : NULL;
}

int model_preset(const char *name, struct model_config *c, struct hyperparameters *r,
		 struct error *err)
{
	char list[128] = "";

	for (size_t i = 0; i < COUNT(presets); i++) {
		size_t end = strlen(list);

		if (strcmp(name, presets[i].name) == 0) {
			if (c)
				*c = presets[i].config;
			if (r)
				*r = presets[i].hyper;
			return 0;
		}
		snprintf(list + end, sizeof(list) - end, "%s%s", i ? ", " : "",
			 presets[i].name);
	}
	return error_set(err, -ENOENT, "no model preset \"%s\"; there are %s", name, list);
}

/* ---- positions, and the schedules of the learning rate ---- */

uint32_t model_head_size(const struct model_config *c)
{
	return c->dim / c->n_heads;
}

/* Returns the angle in radians by which each position turns pair i of a head, without RoPE
 * scaling. */
static double plain_frequency(const struct model_config *c, size_t i)
{
	size_t half = model_head_size(c) / 2;

	return pow((double)c->rope_theta, -(double)i / (double)half);
}

double model_frequency(const struct model_config *c, size_t i)
{
	double plain = plain_frequency(c, i), factor = (double)c->rope_factor,
	       low = (double)c->rope_low_freq_factor, high = (double)c->rope_high_freq_factor,
	       turns, kept;

	if (factor == 0)
		return plain;
	if (high == 0)
		return plain / factor;
	turns = c->rope_original_context * plain / (2 * acos(-1));
	kept = fmin(fmax((turns - low) / (high - low), 0), 1);
	return kept * plain + (1 - kept) * plain / factor;
}

void model_angles(const struct model_config *c, size_t positions, float *cosines, float *sines)
{
	size_t half = model_head_size(c) / 2;

	for (size_t i = 0; i < half; i++) {
		double frequency = model_frequency(c, i);

		for (size_t t = 0; t < positions; t++) {
			double angle = (double)t * frequency;

			cosines[t * half + i] = (float)cos(angle);
			sines[t * half + i] = (float)sin(angle);
		}
	}
}

const char *hyper_schedule_name(const struct hyperparameters *r)
{
	return schedules[r->schedule];
}

uint64_t hyper_decay_begin(const struct hyperparameters *r)
{
	double decay = r->decay > 0 ? (double)r->decay : HYPER_DECAY, n;

	if (r->iterations <= r->warmup)
		return UINT64_MAX;
	if (r->schedule == LR_COSINE || r->schedule == LR_LINEAR)
		return r->warmup;
	n = fmax(round(decay < 1 ? decay * r->iterations : decay), 1);
	return n < r->iterations - r->warmup ? r->iterations - (uint64_t)n : r->warmup;
}

void hyper_end_with(struct hyperparameters *r, uint64_t done, uint64_t iterations)
{
	bool keeps_peak = r->schedule == LR_WSD || r->schedule == LR_WSD_SQRT;

	if (keeps_peak ? done > hyper_decay_begin(r) : done > 0 || r->iterations > 0)
		return;
	if (iterations > 0 && iterations <= done)
		return;
	r->iterations = iterations > UINT32_MAX ? 0 : (uint32_t)iterations;
	if (r->iterations > 0 && hyper_decay_begin(r) < done)
		r->decay = (float)(iterations - done);
}

float hyper_lr(const struct hyperparameters *r, uint64_t t)
{
	double peak = (double)r->adamw.lr, low = (double)r->final_lr, along, left;
	uint64_t begin = hyper_decay_begin(r);

	if (t < r->warmup)
		return (float)(peak * (double)t / (double)r->warmup);
	if (t <= begin)
		return r->adamw.lr;
	along = fmin((double)(t - begin) / (double)(r->iterations - begin), 1);
	if (r->schedule == LR_COSINE)
		left = 0.5 * (1 + cos(acos(-1) * along));
	else
		left = 1 - (r->schedule == LR_WSD_SQRT ? sqrt(along) : along);
	return (float)(peak * (low + (1 - low) * left));
}

uint64_t hyper_position(const struct hyperparameters *was, const struct hyperparameters *now,
			uint64_t position)
{
	uint64_t read = (uint64_t)was->batch * was->sequence;
	uint64_t each = (uint64_t)now->batch * now->sequence;

	if (read == each)
		return position;
	return (uint64_t)fminl(ceill((long double)position * (long double)read / (long double)each),
			       (long double)INT64_MAX);
}

float hyper_scale(const struct hyperparameters *r, double sum_squares, double divisor)
{
	double norm = sqrt(sum_squares) / divisor, clip = (double)r->clip;

	return (float)((clip > 0 && norm > clip ? clip / norm : 1) / divisor);
}

float hyper_stage_scale(float scale, const struct stage_visits *visits, uint32_t stage)
{
	if (stage >= visits->n || visits->of[stage] == 0)
		return scale;
	return (float)((double)scale / visits->of[stage]);
}
