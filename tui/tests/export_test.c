/* Tests that other programs can read the exports: JSON is valid, tables are complete, and every
 * task occurs once. */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "tui/export.h"
#include "tui/manual.h"
#include "tui/tests/golden.h"
#include "tui/views/view.h"

static struct state *finished(void)
{
	struct stream_options o;

	stream_defaults(&o);
	o.live = 1;
	return golden_state(&o, INT64_MAX / 4);
}

TEST(trace)
{
	struct state *s = finished();
	char *text = export_trace(s);
	json_t *root = json_loads(text, 0, NULL), *events, *e;
	size_t i, actual = 0, planned = 0, flows = 0;

	assert_non_null(root);
	events = json_object_get(root, "traceEvents");
	json_array_foreach(events, i, e)
	{
		const char *ph = json_string_value(json_object_get(e, "ph"));
		int pid = (int)json_integer_value(json_object_get(e, "pid"));

		actual += *ph == 'X' && pid == 1;
		planned += *ph == 'X' && pid == 2;
		flows += *ph == 's' || *ph == 't' || *ph == 'f';
		if (*ph == 'X')
			assert_true(json_integer_value(json_object_get(e, "dur")) > 0);
	}
	assert_int_equal(actual, 30 * 9);
	assert_int_equal(planned, 30 * 9);
	assert_int_equal(flows, 30 * 9);
	json_decref(root);
	free(text);
	state_free(s);
}

static size_t lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

TEST(tables)
{
	struct state *s = finished();
	char *csv = export_csv(s), *jsonl = export_jsonl(s), *save, *line;
	const char *name;
	size_t n = 0;

	assert_int_equal(lines(csv), 1 + s->history.n_iterations);
	assert_int_equal(lines(jsonl), 1 + s->history.n_iterations + s->history.n_validations +
					       s->history.n_notes);
	for (line = strtok_r(jsonl, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save), n++) {
		json_t *o = json_loads(line, 0, NULL);

		assert_non_null(o);
		name = json_string_value(json_object_get(o, "event"));
		assert_non_null(name);
		if (strcmp(name, "iteration") == 0 || strcmp(name, "note") == 0)
			assert_int_equal(strncmp(json_string_value(json_object_get(o, "time")),
						 "2025-11-21T", 11),
					 0);
		json_decref(o);
	}
	assert_int_equal(n, 1 + s->history.n_iterations + s->history.n_validations +
				    s->history.n_notes);
	free(csv);
	free(jsonl);
	state_free(s);
}

/* The SVG is well formed: all tags are closed, and special characters are escaped. */
TEST(picture)
{
	struct state *s = finished();
	struct screen *screen;
	struct theme t;
	struct ui u;
	char *svg;

	golden_ui(&u, s, 1700000);
	snprintf(s->run.name, sizeof(s->run.name), "a<b&c");
	screen = screen_new(80, 24, false);
	view_draw(screen, s, &u);
	theme_plain(&t);
	svg = export_svg(screen, &t, true);
	assert_non_null(strstr(svg, "a&lt;b&amp;c"));
	assert_null(strstr(svg, "a<b"));
	assert_non_null(strstr(svg, "</svg>"));
	free(svg);
	screen_free(screen);
	state_free(s);
}

/* The manual describes every action, command and kind of injected failure. */
TEST(manual)
{
	char *text, *keys;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	manual_page(f);
	fclose(f);
	f = open_memstream(&keys, &size);
	manual_tables(f);
	fclose(f);
	for (unsigned k = FAULT_NONE + 1; k <= FAULT_LAST; k++) {
		char row[64];

		snprintf(row, sizeof(row), "| `%s` |", fault_name(k));
		assert_non_null(strstr(keys, row));
		assert_non_null(strstr(text, fault_describe(k)->what));
	}
	for (int a = 1; a < ACTIONS; a++) {
		const struct keymap_entry *e = keymap_find((enum action)a);
		char quoted[64];

		if (!e)
			continue;
		snprintf(quoted, sizeof(quoted), "| `%s` |", e->name);
		assert_non_null(strstr(keys, quoted));
	}
	assert_non_null(strstr(text, "heal\\-all"));
	assert_non_null(strstr(text, ".SH KEYS"));
	free(text);
	free(keys);
}
