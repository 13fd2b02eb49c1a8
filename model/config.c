#include "model/config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* One row a field drives checking of ranges, reading and printing. */
enum kind { KIND_U32, KIND_FLOAT, KIND_BOOL };

struct field {
	const char *name;
	enum kind kind;
	size_t offset;
	double low, high; /* allowed, both ends included */
};

#define FIELD(type, member, kind, low, high) \
	{ \
#member, kind, offsetof(type, member), low, high \
	}

static const struct field model_fields[] = {
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
};

static const struct field recipe_fields[] = {
	FIELD(struct recipe, batch, KIND_U32, 1, 1 << 16),
	FIELD(struct recipe, sequence, KIND_U32, 1, 1 << 20),
	FIELD(struct recipe, adamw.lr, KIND_FLOAT, 0, 10),
	FIELD(struct recipe, adamw.beta1, KIND_FLOAT, 0, 0.999999),
	FIELD(struct recipe, adamw.beta2, KIND_FLOAT, 0, 0.999999),
	FIELD(struct recipe, adamw.eps, KIND_FLOAT, 1e-15, 1),
	FIELD(struct recipe, adamw.weight_decay, KIND_FLOAT, 0, 10),
	FIELD(struct recipe, clip, KIND_FLOAT, 0, 1e9),
	FIELD(struct recipe, warmup, KIND_U32, 0, UINT32_MAX),
	FIELD(struct recipe, iterations, KIND_U32, 0, UINT32_MAX),
	FIELD(struct recipe, final_lr, KIND_FLOAT, 0, 1),
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The name as people write it: without the struct it lies in. */
static const char *field_name(const struct field *f)
{
	const char *dot = strchr(f->name, '.');

	return dot ? dot + 1 : f->name;
}

static double field_value(const struct field *f, const void *object)
{
	const char *at = (const char *)object + f->offset;

	switch (f->kind) {
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

static int check_ranges(const struct field *fields, size_t n, const void *object,
			struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		double v = field_value(&fields[i], object);

		/* Single precision rounds the ends as it rounds the values. */
		if (!(v >= (double)(float)fields[i].low && v <= fields[i].high))
			return error_set(err, -EINVAL, "%s is %g, expected %g to %g",
					 field_name(&fields[i]), v, fields[i].low,
					 fields[i].high);
	}
	return 0;
}

int model_config_check(const struct model_config *c, struct error *err)
{
	int rc = check_ranges(model_fields, COUNT(model_fields), c, err);

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
	return 0;
}

int recipe_check(const struct recipe *r, const struct model_config *c, struct error *err)
{
	int rc = check_ranges(recipe_fields, COUNT(recipe_fields), r, err);

	if (!rc && r->sequence > c->context)
		rc = error_set(err, -EINVAL,
			       "sequence is %" PRIu32 ", longer than the context %" PRIu32,
			       r->sequence, c->context);
	return rc;
}

/* Reading and writing. */

static int field_read(const struct field *f, void *object, const json_t *value,
		      struct error *err)
{
	char *at = (char *)object + f->offset;

	if (f->kind == KIND_BOOL) {
		if (!json_is_boolean(value))
			return error_set(err, -EINVAL, "%s: expected true or false",
					 field_name(f));
		*(bool *)at = json_is_true(value);
	} else if (f->kind == KIND_U32) {
		json_int_t v = json_is_integer(value) ? json_integer_value(value) : -1;
		uint32_t u = (uint32_t)v;

		if (v < 0 || v > UINT32_MAX)
			return error_set(err, -EINVAL,
					 "%s: expected a whole number from 0 to %u",
					 field_name(f), UINT32_MAX);
		memcpy(at, &u, sizeof(u));
	} else {
		float v = (float)json_number_value(value);

		if (!json_is_number(value))
			return error_set(err, -EINVAL, "%s: expected a number", field_name(f));
		memcpy(at, &v, sizeof(v));
	}
	return 0;
}

static int object_read(const struct field *fields, size_t n, void *object, json_t *json,
		       const char *what, struct error *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(json))
		return error_set(err, -EINVAL, "%s: expected an object", what);
	json_object_foreach(json, key, value)
	{
		size_t i = 0;

		while (i < n && strcmp(field_name(&fields[i]), key) != 0)
			i++;
		if (i == n)
			return error_set(err, -EINVAL, "%s.%s: unknown key", what, key);
	}
	for (size_t i = 0; i < n; i++) {
		int rc;

		value = json_object_get(json, field_name(&fields[i]));
		if (!value)
			return error_set(err, -EINVAL, "%s.%s: missing", what,
					 field_name(&fields[i]));
		rc = field_read(&fields[i], object, value, err);
		if (rc)
			return error_prefix(err, rc, "%s", what);
	}
	return 0;
}

static int document_read(json_t *root, struct model_config *c, struct recipe *r,
			 bool *has_recipe, struct error *err)
{
	const char *key, *format = json_string_value(json_object_get(root, "format"));
	json_t *value, *recipe = json_object_get(root, "recipe");
	int rc;

	if (!json_is_object(root))
		return error_set(err, -EINVAL, "expected an object");
	json_object_foreach(root, key, value)
	{
		if (strcmp(key, "format") != 0 && strcmp(key, "model") != 0 &&
		    strcmp(key, "recipe") != 0)
			return error_set(err, -EINVAL, "%s: unknown key", key);
	}
	if (!format || strcmp(format, "skippipe.model/1") != 0)
		return error_set(err, -EINVAL, "format: expected \"skippipe.model/1\"");
	rc = object_read(model_fields, COUNT(model_fields), c, json_object_get(root, "model"),
			 "model", err);
	if (!rc)
		rc = model_config_check(c, err);
	*has_recipe = recipe != NULL;
	if (!rc && recipe) {
		rc = object_read(recipe_fields, COUNT(recipe_fields), r, recipe, "recipe", err);
		if (!rc)
			rc = recipe_check(r, c, err);
	}
	return rc;
}

int model_config_parse(struct model_config *c, struct recipe *r, const char *text, size_t size,
		       const char *where, struct error *err)
{
	struct model_config config = { 0 };
	struct recipe recipe = { 0 };
	bool has_recipe = false;
	json_error_t at;
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &at);
	int rc;

	if (!root)
		return error_set(err, -EINVAL, "%s: line %d: %s", where, at.line, at.text);
	rc = document_read(root, &config, &recipe, &has_recipe, err);
	json_decref(root);
	if (rc)
		return error_prefix(err, rc, "%s", where);
	*c = config;
	if (r && has_recipe)
		*r = recipe;
	return 0;
}

/* A float is printed with the fewest digits that read back as the same float. */
static json_t *shortest(float v)
{
	for (int digits = 1; digits < 10; digits++) {
		char text[32];

		snprintf(text, sizeof(text), "%.*g", digits, (double)v);
		if (strtof(text, NULL) == v)
			return json_real(strtod(text, NULL));
	}
	return json_real((double)v);
}

static json_t *object_print(const struct field *fields, size_t n, const void *object)
{
	json_t *json = json_object();

	for (size_t i = 0; json && i < n; i++) {
		double v = field_value(&fields[i], object);
		json_t *value = fields[i].kind == KIND_U32     ? json_integer((json_int_t)v)
				: fields[i].kind == KIND_FLOAT ? shortest((float)v)
							       : json_boolean(v != 0);

		if (json_object_set_new(json, field_name(&fields[i]), value) < 0) {
			json_decref(json);
			return NULL;
		}
	}
	return json;
}

char *model_config_print(const struct model_config *c, const struct recipe *r)
{
	json_t *root = json_object();
	char *text = NULL;

	if (root && json_object_set_new(root, "format", json_string("skippipe.model/1")) == 0 &&
	    json_object_set_new(root, "model",
				object_print(model_fields, COUNT(model_fields), c)) == 0 &&
	    (!r ||
	     json_object_set_new(root, "recipe",
				 object_print(recipe_fields, COUNT(recipe_fields), r)) == 0))
		text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(root);
	return text;
}

static int set_field(const struct field *fields, size_t n, void *object, const char *name,
		     const json_t *value, struct error *err)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(field_name(&fields[i]), name) == 0)
			return field_read(&fields[i], object, value, err);
	return -ENOENT;
}

int model_config_set(struct model_config *c, struct recipe *r, const char *name,
		     const char *text, struct error *err)
{
	json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
	int rc = set_field(model_fields, COUNT(model_fields), c, name, value, err);

	if (rc == -ENOENT)
		rc = set_field(recipe_fields, COUNT(recipe_fields), r, name, value, err);
	json_decref(value);
	if (rc == -ENOENT)
		return error_set(err, -EINVAL, "%s: no such field of a model or a recipe",
				 name);
	return rc;
}

/* Presets. The larger ones have the dimensions published for LLaMA-style models of their size.
 */

static const struct preset {
	const char *name;
	struct model_config config;
	struct recipe recipe;
} presets[] = {
	{ "tiny",
	  { 256, 96, 12, 6, 3, 256, 256, 6, 10000, 1e-5f, 0.06f, false },
	  { 4, 64, { 5e-3f, 0.9f, 0.95f, 1e-8f, 0.1f }, 1, 5, 0, 1 } },
	{ "30m",
	  { 32000, 320, 12, 5, 5, 1280, 512, 6, 10000, 1e-5f, 0.02f, true },
	  { 4, 256, { 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f }, 1, 100, 0, 0.1f } },
	{ "124m",
	  { 50304, 768, 12, 12, 12, 2048, 1024, 4, 10000, 1e-5f, 0.02f, true },
	  { 4, 1024, { 6e-4f, 0.9f, 0.95f, 1e-8f, 0.1f }, 1, 500, 0, 0.1f } },
	{ "500m",
	  { 32000, 1024, 24, 16, 16, 4096, 1024, 6, 10000, 1e-5f, 0.02f, false },
	  { 4, 1024, { 3e-4f, 0.9f, 0.95f, 1e-8f, 0.1f }, 1, 1000, 0, 0.1f } },
	{ "1.5b",
	  { 32000, 2048, 24, 16, 16, 5632, 4096, 6, 10000, 1e-5f, 0.02f, false },
	  { 1, 4096, { 3e-4f, 0.9f, 0.95f, 1e-8f, 0.1f }, 1, 2000, 0, 0.1f } },
	{ "7b",
	  { 32000, 4096, 32, 32, 32, 11008, 4096, 8, 10000, 1e-5f, 0.02f, false },
	  { 1, 4096, { 3e-4f, 0.9f, 0.95f, 1e-8f, 0.1f }, 1, 2000, 0, 0.1f } },
};

const char *model_preset_name(size_t i)
{
	return i < COUNT(presets) ? presets[i].name : NULL;
}

int model_preset(const char *name, struct model_config *c, struct recipe *r, struct error *err)
{
	char list[128] = "";

	for (size_t i = 0; i < COUNT(presets); i++) {
		size_t end = strlen(list);

		if (strcmp(name, presets[i].name) == 0) {
			if (c)
				*c = presets[i].config;
			if (r)
				*r = presets[i].recipe;
			return 0;
		}
		snprintf(list + end, sizeof(list) - end, "%s%s", i ? ", " : "",
			 presets[i].name);
	}
	return error_set(err, -ENOENT, "no model preset \"%s\"; there are %s", name, list);
}

/* The cut into stages, and the schedule of learning rates. */

uint32_t model_first_layer(const struct model_config *c, uint32_t stage)
{
	return (uint32_t)((uint64_t)stage * c->n_layers / c->n_stages);
}

uint32_t model_layer_count(const struct model_config *c, uint32_t stage)
{
	return model_first_layer(c, stage + 1) - model_first_layer(c, stage);
}

uint32_t model_head_size(const struct model_config *c)
{
	return c->dim / c->n_heads;
}

float recipe_lr(const struct recipe *r, uint64_t t)
{
	double peak = (double)r->adamw.lr, low = (double)r->final_lr, along;

	if (t < r->warmup)
		return (float)(peak * (double)t / (double)r->warmup);
	if (r->iterations <= r->warmup)
		return r->adamw.lr;
	along = (double)(t - r->warmup) / (double)(r->iterations - r->warmup);
	if (along > 1)
		along = 1;
	return (float)(peak * (low + (1 - low) * 0.5 * (1 + cos(acos(-1) * along))));
}

float recipe_scale(const struct recipe *r, double sum_squares, double divisor)
{
	double norm = sqrt(sum_squares) / divisor, clip = (double)r->clip;

	return (float)((clip > 0 && norm > clip ? clip / norm : 1) / divisor);
}
