/* Reads and prints a model and its hyperparameters as JSON. One table of fields drives reading,
 * printing and checking, so that the three cannot differ. */
#include "model/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "model/config_fields.h"

static int refuse_name(const struct field *f, struct error *err)
{
	char list[80] = "";

	for (uint32_t i = 0; i <= f->high; i++) {
		size_t end = strlen(list);

		snprintf(list + end, sizeof(list) - end, "%s%s",
			 i == 0        ? ""
			 : i < f->high ? ", "
				       : " or ",
			 f->names[i]);
	}
	return error_set(err, -EINVAL, "%s: expected %s", field_name(f), list);
}

/* Reads an array such as [0, 5, 3]. An empty array is refused. */
static int layers_read(const struct field *f, struct stage_layers *to, const json_t *value,
		       struct error *err)
{
	struct stage_layers read = { .n = (uint32_t)json_array_size(value) };

	if (json_array_size(value) < 1 || json_array_size(value) > ROUTE_HOPS)
		return error_set(err, -EINVAL,
				 "%s: expected an array of 1 to %d numbers of layers, one for "
				 "each stage",
				 field_name(f), ROUTE_HOPS);
	for (uint32_t s = 0; s < read.n; s++) {
		const json_t *layers = json_array_get(value, s);

		if (!json_is_integer(layers) || json_integer_value(layers) < 0 ||
		    json_integer_value(layers) > 1024)
			return error_set(err, -EINVAL,
					 "%s[%u]: expected a whole number from 0 to 1024",
					 field_name(f), s);
		read.of[s] = (uint16_t)json_integer_value(layers);
	}
	*to = read;
	return 0;
}

static int field_read(const struct field *f, void *object, const json_t *value,
		      struct error *err)
{
	char *at = (char *)object + f->offset;

	if (f->kind == KIND_LAYERS)
		return layers_read(f, (struct stage_layers *)(void *)at, value, err);
	if (f->kind == KIND_BOOL) {
		if (!json_is_boolean(value))
			return error_set(err, -EINVAL, "%s: expected true or false",
					 field_name(f));
		*(bool *)at = json_is_true(value);
	} else if (f->kind == KIND_NAME) {
		uint32_t u = 0;

		while (u <= f->high && (!json_is_string(value) ||
					strcmp(f->names[u], json_string_value(value)) != 0))
			u++;
		if (u > f->high)
			return refuse_name(f, err);
		memcpy(at, &u, sizeof(u));
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

/* Compares the keys with the table of fields, so that both an unknown and a missing key are
 * found. */
static int object_read(const struct fields *fields, void *object, json_t *json,
		       const char *what, struct error *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(json))
		return error_set(err, -EINVAL, "%s: expected an object", what);
	json_object_foreach(json, key, value)
	{
		size_t i = 0;

		while (i < fields->n && strcmp(field_name(&fields->of[i]), key) != 0)
			i++;
		if (i == fields->n)
			return error_set(err, -EINVAL, "%s.%s: unknown key", what, key);
	}
	for (size_t i = 0; i < fields->n; i++) {
		int rc;

		value = json_object_get(json, field_name(&fields->of[i]));
		if (!value && fields->of[i].optional)
			continue;
		if (!value)
			return error_set(err, -EINVAL, "%s.%s: missing", what,
					 field_name(&fields->of[i]));
		rc = field_read(&fields->of[i], object, value, err);
		if (rc)
			return error_prefix(err, rc, "%s", what);
	}
	return 0;
}

int model_config_read(struct model_config *c, struct hyperparameters *r, const json_t *root,
		      struct error *err)
{
	static const char *const keys[] = { "format", "model", "recipe", NULL };
	struct model_config config = { 0 };
	struct hyperparameters hyper = { 0 };
	struct stage_layers cut;
	json_t *hyper_json = json_object_get(root, "recipe");
	int rc = json_check(root, "skippipe.model/1", keys, err);

	if (!rc)
		rc = object_read(&model_fields, &config, json_object_get(root, "model"), "model",
				 err);
	if (!rc)
		rc = model_config_check(&config, err);
	cut = config.stage_layers;
	/* An equal cut is stored as n_stages alone, so that equal models have equal configs. */
	if (!rc)
		rc = model_cut(&config, &cut, "stage_layers", err);
	if (!rc && hyper_json)
		rc = object_read(&hyper_fields, &hyper, hyper_json, "recipe", err);
	if (!rc && hyper_json)
		rc = hyper_check(&hyper, &config, err);
	if (rc)
		return rc;
	*c = config;
	if (r && hyper_json)
		*r = hyper;
	return 0;
}

int model_config_parse(struct model_config *c, struct hyperparameters *r, const char *text,
		       size_t size, const char *where, struct error *err)
{
	json_t *root;
	int rc = json_parse_object(text, size, &root, err);

	if (!rc) {
		rc = model_config_read(c, r, root, err);
		json_decref(root);
	}
	return rc ? error_prefix(err, rc, "%s", where) : 0;
}

static json_t *layers_print(const struct stage_layers *cut)
{
	json_t *list = json_array();

	for (uint32_t s = 0; s < cut->n; s++)
		json_array_append_new(list, json_integer(cut->of[s]));
	if (json_array_size(list) == cut->n)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *object_print(const struct fields *fields, const void *object)
{
	json_t *json = json_object();

	for (size_t i = 0; json && i < fields->n; i++) {
		double v = field_value(&fields->of[i], object);
		json_t *value;

		if (v == 0 && fields->of[i].optional)
			continue;
		if (fields->of[i].kind == KIND_LAYERS)
			value = layers_print(&((const struct model_config *)object)->stage_layers);
		else if (fields->of[i].kind == KIND_NAME)
			value = json_string(fields->of[i].names[(size_t)v]);
		else if (fields->of[i].kind == KIND_U32)
			value = json_integer((json_int_t)v);
		else if (fields->of[i].kind == KIND_FLOAT)
			value = json_real(model_shortest((float)v));
		else
			value = json_boolean(v != 0);

		if (json_object_set_new(json, field_name(&fields->of[i]), value) < 0) {
			json_decref(json);
			return NULL;
		}
	}
	return json;
}

char *model_config_print(const struct model_config *c, const struct hyperparameters *r)
{
	json_t *root = json_object();
	char *text = NULL;

	if (root && json_object_set_new(root, "format", json_string("skippipe.model/1")) == 0 &&
	    json_object_set_new(root, "model", object_print(&model_fields, c)) == 0 &&
	    (!r || json_object_set_new(root, "recipe", object_print(&hyper_fields, r)) == 0))
		text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(root);
	return text;
}

static int set_field(const struct fields *fields, void *object, const char *name,
		     const json_t *value, struct error *err)
{
	for (size_t i = 0; i < fields->n; i++)
		if (strcmp(field_name(&fields->of[i]), name) == 0)
			return field_read(&fields->of[i], object, value, err);
	return -ENOENT;
}

int model_config_set(struct model_config *c, struct hyperparameters *r, const char *name,
		     const char *text, struct error *err)
{
	json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
	int rc;

	if (!value)
		value = json_string(text);
	rc = c ? set_field(&model_fields, c, name, value, err) : -ENOENT;
	if (rc == -ENOENT)
		rc = set_field(&hyper_fields, r, name, value, err);
	json_decref(value);
	if (rc == -ENOENT)
		return error_set(err, -EINVAL, "%s: no such field of %s", name,
				 c ? "model or hyperparameters" : "hyperparameters");
	return rc;
}
