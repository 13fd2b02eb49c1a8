/* Parses the operator's config.json. A mistake in the file is only a warning, because a console
 * must open during an incident even if its settings are wrong. */
#include "tui/config.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tui/json_line.h"

void config_default(struct config *out)
{
	*out = (struct config){ .graph = -1 };
}

static int take_graph(struct config *c, const char *text)
{
	static const char *const names[] = { "braille", "block", "ascii" };

	for (int i = 0; text && i < 3; i++) {
		if (strcmp(text, names[i]) == 0) {
			c->graph = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Returns NULL if the value was accepted, otherwise a text that names the expected value. */
static const char *take_setting(struct config *c, const char *key, const json_t *v)
{
	const char *text = json_string_value(v);
	json_int_t number = json_integer_value(v);

	if (strcmp(key, "theme") == 0) {
		if (!text || strlen(text) >= sizeof(c->theme))
			return "a theme's name";
		snprintf(c->theme, sizeof(c->theme), "%s", text);
	} else if (strcmp(key, "graph") == 0) {
		if (take_graph(c, text) != 0)
			return "\"braille\", \"block\" or \"ascii\"";
	} else if (strcmp(key, "fps") == 0) {
		if (!json_is_integer(v) || number < 1 || number > 60)
			return "1 to 60";
		c->fps = (int)number;
	} else if (strcmp(key, "mouse") == 0 || strcmp(key, "color") == 0) {
		if (!json_is_boolean(v))
			return "true or false";
		if (key[0] == 'm')
			c->mouse = json_is_true(v);
		else
			c->no_color = json_is_false(v);
	} else {
		return "one of theme, graph, fps, mouse, color";
	}
	return NULL;
}

int config_parse(struct config *c, const char *name, const char *json, struct error *err)
{
	json_error_t where;
	json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &where), *v;
	const char *key, *expected;
	int rc = 0;

	if (!root)
		return error_set(err, -EINVAL, "%s:%d: %s", name, where.line, where.text);
	if (!json_is_object(root))
		rc = error_set(err, -EINVAL, "%s:1: an object was expected", name);
	else
		json_object_foreach(root, key, v)
		{
			expected = take_setting(c, key, v);
			if (expected && rc == 0)
				rc = error_set(err, -EINVAL, "%s:%d: %s: expected %s", name,
					       json_line(json, key), key, expected);
		}
	json_decref(root);
	return rc;
}
