/* Themes are JSON files. They give each style a foreground, a background and attributes. A colour
 * that is not one of xterm's 256 becomes the nearest of these. */
#include "tui/screen/theme.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tui/json_line.h"

static const char *const colour_names[16] = {
	"black",        "red",           "green",       "yellow",         "blue",
	"magenta",      "cyan",          "white",       "bright-black",   "bright-red",
	"bright-green", "bright-yellow", "bright-blue", "bright-magenta", "bright-cyan",
	"bright-white",
};

static const struct {
	const char *name;
	uint8_t bit;
} attribute_names[] = {
	{ "bold", THEME_BOLD },           { "dim", THEME_DIM },
	{ "underline", THEME_UNDERLINE }, { "reverse", THEME_REVERSE },
	{ "italic", THEME_ITALIC },
};

void theme_plain(struct theme *out)
{
	static const uint8_t bold[] = { STYLE_STRONG,  STYLE_TITLE, STYLE_KEY,  STYLE_FAILED,
					STYLE_BLOCKED, STYLE_ALERT, STYLE_LIVE, STYLE_MARK };

	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "plain");
	for (int i = 0; i < STYLES; i++)
		out->styles[i] = (struct theme_style){ THEME_DEFAULT, THEME_DEFAULT, 0 };
	for (size_t i = 0; i < sizeof(bold); i++)
		out->styles[bold[i]].attributes = THEME_BOLD;
	out->styles[STYLE_LOST].attributes = THEME_REVERSE;
}

uint32_t theme_rgb(int colour)
{
	static const uint32_t first[16] = { 0x000000, 0xaa0000, 0x00aa00, 0xaa8200,
					    0x0000aa, 0xaa00aa, 0x00aaaa, 0xaaaaaa,
					    0x555555, 0xff5555, 0x55ff55, 0xffff55,
					    0x5555ff, 0xff55ff, 0x55ffff, 0xffffff };
	static const uint32_t steps[6] = { 0, 95, 135, 175, 215, 255 };

	if (colour < 16)
		return first[colour];
	if (colour >= 232)
		return (uint32_t)(8 + (colour - 232) * 10) * 0x010101;
	colour -= 16;
	return steps[colour / 36] << 16 | steps[colour / 6 % 6] << 8 | steps[colour % 6];
}

int theme_nearest(uint32_t rgb, int from, int to)
{
	int best = from, least = 1 << 30;

	for (int i = from; i < to; i++) {
		int d = 0;

		for (int shift = 0; shift <= 16; shift += 8) {
			int part = (int)(theme_rgb(i) >> shift & 255) - (int)(rgb >> shift & 255);

			d += part * part;
		}
		if (d < least) {
			least = d;
			best = i;
		}
	}
	return best;
}

/* Parses a colour: a number, a name, or "#rrggbb", which becomes the nearest of the 256 colours. */
static int parse_colour(const json_t *v, int16_t *out)
{
	const char *text = json_string_value(v);
	unsigned rgb;

	if (json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < 256) {
		*out = (int16_t)json_integer_value(v);
		return 0;
	}
	if (!text)
		return -EINVAL;
	if (strcmp(text, "default") == 0) {
		*out = THEME_DEFAULT;
		return 0;
	}
	for (int i = 0; i < 16; i++) {
		if (strcmp(text, colour_names[i]) == 0) {
			*out = (int16_t)i;
			return 0;
		}
	}
	if (text[0] == '#' && strlen(text) == 7 &&
	    strspn(text + 1, "0123456789abcdefABCDEF") == 6 &&
	    sscanf(text + 1, "%x", &rgb) == 1) {
		*out = (int16_t)theme_nearest(rgb, 16, 256);
		return 0;
	}
	return -EINVAL;
}

static int parse_attributes(const json_t *v, uint8_t *out)
{
	uint8_t bits = 0;
	const json_t *one;
	size_t i;

	if (!json_is_array(v))
		return -EINVAL;
	json_array_foreach(v, i, one)
	{
		const char *text = json_string_value(one);
		uint8_t bit = 0;

		for (size_t a = 0;
		     text && a < sizeof(attribute_names) / sizeof(attribute_names[0]); a++)
			if (strcmp(text, attribute_names[a].name) == 0)
				bit = attribute_names[a].bit;
		if (!bit)
			return -EINVAL;
		bits |= bit;
	}
	*out = bits;
	return 0;
}

/* Parses a style. Themes are written by hand, so errors name file, line, style and key. */
static int parse_style(struct theme_style *out, const char *file, const char *json,
		       const char *style, const json_t *v, struct error *err)
{
	const char *key;
	const json_t *one;

	if (!json_is_object(v))
		return error_set(err, -EINVAL, "%s:%d: styles.%s: an object was expected", file,
				 json_line(json, style), style);
	json_object_foreach((json_t *)(uintptr_t)v, key, one)
	{
		int rc;

		if (strcmp(key, "fg") == 0)
			rc = parse_colour(one, &out->fg);
		else if (strcmp(key, "bg") == 0)
			rc = parse_colour(one, &out->bg);
		else if (strcmp(key, "attributes") == 0)
			rc = parse_attributes(one, &out->attributes);
		else
			return error_set(
				err, -EINVAL,
				"%s:%d: styles.%s.%s: unknown key (fg, bg, attributes)", file,
				json_line(json, style), style, key);
		if (rc != 0)
			return error_set(
				err, rc, "%s:%d: styles.%s.%s: expected %s", file,
				json_line(json, style), style, key,
				key[0] == 'a'
					? "a list of bold, dim, underline, reverse, italic"
					: "default, a colour's name, 0..255 or \"#rrggbb\"");
	}
	return 0;
}

static int parse_styles(struct theme *t, const char *file, const char *json,
			const json_t *styles, struct error *err)
{
	const char *key;
	const json_t *one;

	if (!json_is_object(styles))
		return error_set(err, -EINVAL, "%s: styles: an object was expected", file);
	json_object_foreach((json_t *)(uintptr_t)styles, key, one)
	{
		enum style which;
		int rc;

		if (style_parse(key, &which) != 0)
			return error_set(err, -EINVAL,
					 "%s:%d: styles.%s: there is no such style", file,
					 json_line(json, key), key);
		rc = parse_style(&t->styles[which], file, json, key, one, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int parse_root(struct theme *t, const char *file, const char *json, const json_t *root,
		      struct error *err)
{
	const char *format = json_string_value(json_object_get(root, "format"));
	const char *name = json_string_value(json_object_get(root, "name"));
	const char *key;
	const json_t *one;

	json_object_foreach((json_t *)(uintptr_t)root, key, one) if (
		strcmp(key, "format") != 0 && strcmp(key, "name") != 0 &&
		strcmp(key, "styles") !=
			0) return error_set(err, -EINVAL,
					    "%s:%d: %s: unknown key (format, name, styles)",
					    file, json_line(json, key), key);
	if (!format || strcmp(format, "skippipe.theme/1") != 0)
		return error_set(err, -EINVAL, "%s: format: \"skippipe.theme/1\" was expected",
				 file);
	if (!name || !*name || strlen(name) >= sizeof(t->name))
		return error_set(err, -EINVAL,
				 "%s: name: a text of 1 to %zu bytes was expected", file,
				 sizeof(t->name) - 1);
	snprintf(t->name, sizeof(t->name), "%s", name);
	return parse_styles(t, file, json, json_object_get(root, "styles"), err);
}

int theme_parse(struct theme *out, const char *name, const char *json, struct error *err)
{
	json_error_t where;
	json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &where);
	struct theme t;
	int rc;

	if (!root)
		return error_set(err, -EINVAL, "%s:%d: %s", name, where.line, where.text);
	for (int i = 0; i < STYLES; i++)
		t.styles[i] = (struct theme_style){ THEME_DEFAULT, THEME_DEFAULT, 0 };
	rc = parse_root(&t, name, json, root, err);
	json_decref(root);
	if (rc == 0)
		*out = t;
	return rc;
}

static int load_theme(struct theme *out, const char *path, struct error *err)
{
	char *text;
	size_t size;
	int rc = file_read_text(path, 1 << 20, &text, &size, err);

	if (rc != 0)
		return rc;
	rc = theme_parse(out, path, text, err);
	free(text);
	return rc;
}

int theme_find(struct theme *out, const char *name, const char *const *folders,
	       struct error *err)
{
	size_t n = strlen(name);

	if (strchr(name, '/') || (n > 5 && strcmp(name + n - 5, ".json") == 0))
		return load_theme(out, name, err);
	for (; *folders; folders++) {
		char path[4096];
		int rc;

		if (snprintf(path, sizeof(path), "%s/%s.json", *folders, name) >=
		    (int)sizeof(path))
			continue;
		rc = load_theme(out, path, err);
		if (rc != -ENOENT)
			return rc;
	}
	return error_set(err, -ENOENT,
			 "no theme \"%s\" (shipped: default, light, mono, "
			 "colour-blind-safe, solarized, high-contrast)",
			 name);
}
