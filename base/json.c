/* Reading of JSON objects, one function for each kind of value, with errors that name the key. */
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

static const char *kind_of(const json_t *v)
{
	if (!v)
		return "nothing";
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a text";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_NULL:
		return "null";
	default:
		return "a truth value";
	}
}

static void describe_value(const json_t *v, char *to, size_t size)
{
	/* jansson prints the number 2.0 as "2.0". The error for a key that needs a whole number
	 * then says "found 2.0", not "found 2". */
	if (v && json_is_number(v))
		to[json_dumpb(v, to, size - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12))] = '\0';
	else if (v && json_is_string(v))
		snprintf(to, size, "\"%.40s\"", json_string_value(v));
	else
		snprintf(to, size, "%s", kind_of(v));
}

int json_expected(const json_t *found, const char *where, const char *key, const char *what,
		  struct error *err)
{
	char seen[64];

	describe_value(found, seen, sizeof(seen));
	return error_set(err, -EINVAL, "%s%s%s: expected %s, found %s", where,
			 *where && *key ? "." : "", key, what, seen);
}

int json_known_keys(const json_t *object, const char *where, const char *const *keys,
		    struct error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
	{
		const char *const *k = keys;

		while (*k && strcmp(*k, key) != 0)
			k++;
		if (!*k)
			return error_set(err, -EINVAL, "%s%s%.60s: unknown key", where,
					 *where ? "." : "", key);
	}
	return 0;
}

int json_number(const json_t *object, const char *where, const char *key, double least,
		const double *fallback, double *out, struct error *err)
{
	const json_t *v = json_object_get(object, key);
	char what[64];
	double x;

	if (!v && fallback) {
		*out = *fallback;
		return 0;
	}
	x = v && json_is_number(v) ? json_number_value(v) : NAN;
	if (!(x >= least) || !isfinite(x)) {
		snprintf(what, sizeof(what), "a number, %g or more", least);
		return json_expected(v, where, key, what, err);
	}
	*out = x;
	return 0;
}

int json_int(const json_t *object, const char *where, const char *key, int least, int most,
	     const int *fallback, int *out, struct error *err)
{
	const json_t *v = json_object_get(object, key);
	char what[64];

	if (!v && fallback) {
		*out = *fallback;
		return 0;
	}
	if (!v || !json_is_integer(v) || json_integer_value(v) < least ||
	    json_integer_value(v) > most) {
		if (least == most)
			snprintf(what, sizeof(what), "%d", least);
		else
			snprintf(what, sizeof(what), "a whole number from %d to %d", least, most);
		return json_expected(v, where, key, what, err);
	}
	*out = (int)json_integer_value(v);
	return 0;
}

int json_u64(const json_t *object, const char *where, const char *key, uint64_t *out,
	     struct error *err)
{
	const json_t *v = json_object_get(object, key);

	if (!v || !json_is_integer(v) || json_integer_value(v) < 0)
		return json_expected(v, where, key, "a whole number, 0 or more", err);
	*out = (uint64_t)json_integer_value(v);
	return 0;
}

int json_bool(const json_t *object, const char *where, const char *key, bool fallback, bool *out,
	      struct error *err)
{
	const json_t *v = json_object_get(object, key);

	if (v && !json_is_boolean(v))
		return json_expected(v, where, key, "true or false", err);
	*out = v ? json_is_true(v) : fallback;
	return 0;
}

int json_text(const json_t *object, const char *where, const char *key, bool required, char **out,
	      struct error *err)
{
	const json_t *v = json_object_get(object, key);

	if (!v && !required) {
		*out = NULL;
		return 0;
	}
	if (!v || !json_is_string(v))
		return json_expected(v, where, key, "a text", err);
	*out = alloc_string(json_string_value(v));
	return 0;
}

int json_list(const json_t *object, const char *where, const char *key, int size,
	      const json_t **out, struct error *err)
{
	const json_t *v = json_object_get(object, key);
	char what[64];

	if (!v || !json_is_array(v))
		return json_expected(v, where, key, "an array", err);
	if (size >= 0 && json_array_size(v) != (size_t)size) {
		snprintf(what, sizeof(what), "an array of %d, found one of %zu", size,
			 json_array_size(v));
		return error_set(err, -EINVAL, "%s%s%s: expected %s", where, *where ? "." : "", key,
				 what);
	}
	*out = v;
	return 0;
}

static int check_format(const json_t *object, const char *name, struct error *err)
{
	const json_t *v = json_object_get(object, "format");
	char what[64];

	if (v && json_is_string(v) && strcmp(json_string_value(v), name) == 0)
		return 0;
	snprintf(what, sizeof(what), "\"%s\"", name);
	return json_expected(v, "", "format", what, err);
}

int json_check(const json_t *root, const char *format, const char *const *keys, struct error *err)
{
	int rc = check_format(root, format, err);

	return rc != 0 ? rc : json_known_keys(root, "", keys, err);
}

int json_parse_object(const char *text, size_t size, json_t **out, struct error *err)
{
	json_error_t why;
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);

	if (size == 0)
		return error_set(err, -EINVAL, "is empty");
	if (!root)
		return error_set(err, -EINVAL, "line %d, column %d: %s", why.line, why.column,
				 why.text);
	if (!json_is_object(root)) {
		json_decref(root);
		return error_set(err, -EINVAL, "expected a JSON object");
	}
	*out = root;
	return 0;
}

int json_parse(const char *text, size_t size, const char *format, const char *const *keys,
	       json_t **out, struct error *err)
{
	json_t *root;
	int rc = json_parse_object(text, size, &root, err);

	if (rc != 0)
		return rc;
	rc = json_check(root, format, keys, err);
	if (rc == 0)
		*out = root;
	else
		json_decref(root);
	return rc;
}

int json_read_object(const char *path, size_t most, json_t **out, struct error *err)
{
	char *text;
	size_t size;
	int rc = file_read_text(path, most, &text, &size, err);

	if (rc != 0)
		return rc;
	rc = json_parse_object(text, size, out, err);
	free(text);
	return rc != 0 ? error_prefix(err, rc, "%s", path) : 0;
}
