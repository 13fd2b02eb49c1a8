/* Tests parts of the console one by one: screen, layout, themes, keys and recordings. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "tui/input/command.h"
#include "tui/config.h"
#include "tui/input/keymap.h"
#include "tui/screen/layout.h"
#include "tui/screen/glyphs.h"
#include "tui/record.h"
#include "tui/screen/screen.h"
#include "tui/screen/theme.h"

TEST(screen_clips)
{
	struct screen *s;
	char *text;

	s = screen_new(6, 2, false);
	screen_text(s, 4, 0, 99, STYLE_TEXT, "abcdef");
	screen_text(s, -2, 1, 99, STYLE_TEXT, "xyz");
	screen_put(s, 6, 0, 'Q', 0);
	screen_put(s, 0, 2, 'Q', 0);
	screen_box(s, (struct rect){ 40, 40, 3, 3 }, "far");
	text = screen_dump(s);
	assert_string_equal(text, "    ab\nz\n");
	free(text);
	screen_free(s);
}

TEST(paragraphs_end_between_words)
{
	static const char words[] = "one two  three fourteen";
	struct screen *s = screen_new(6, 5, false);
	char *text;

	assert_int_equal(screen_paragraph(s, (struct rect){ 0, 0, 6, 0 }, STYLE_TEXT, words), 5);
	assert_int_equal(screen_paragraph(s, (struct rect){ 0, 0, 6, 9 }, STYLE_TEXT, words), 5);
	text = screen_dump(s);
	assert_string_equal(text, "one\ntwo\nthree\nfourte\nen\n");
	free(text);
	screen_clear(s);
	assert_int_equal(screen_paragraph(s, (struct rect){ 1, 1, 5, 2 }, STYLE_TEXT, words), 2);
	text = screen_dump(s);
	assert_string_equal(text, "\n one\n two\n\n\n");
	free(text);
	assert_int_equal(screen_paragraph(s, (struct rect){ 0, 0, 0, 1 }, STYLE_TEXT, words), 1);
	assert_int_equal(screen_paragraph(s, (struct rect){ 0, 0, 6, 1 }, STYLE_TEXT, ""), 1);
	screen_free(s);
}

/* A journal line may contain escape sequences, which must not reach the terminal. */
TEST(screen_is_safe)
{
	static const char nasty[] = "a\033[2J\a\x7f\x9b"
				    "b\xc2\x9b"
				    "c\xe4\xb8\xad"
				    "d\xff"
				    "e\xc3\xa9\xe2\x80\xae";
	struct screen *s;
	char *text;

	s = screen_new(40, 1, false);
	screen_text(s, 0, 0, 40, STYLE_TEXT, nasty);
	for (int i = 0; i < 40; i++) {
		uint32_t g = screen_cells(s)[i].glyph;

		assert_true(g >= 0x20 && g != 0x7f && !(g >= 0x80 && g < 0xa0) && g != 0x202e);
	}
	text = screen_dump(s);
	assert_string_equal(text, "a?[2J???b?c?d?e\xc3\xa9?\n");
	free(text);
	screen_free(s);
	s = screen_new(8, 1, true);
	screen_text(s, 0, 0, 8, STYLE_TEXT, "\xe2\x94\x80\xe2\x94\x82\xe2\xa0\x81\xc3\xa9");
	text = screen_dump(s);
	assert_string_equal(text, "-|??\n");
	free(text);
	screen_free(s);
}

static bool inside(struct rect r, int w, int h)
{
	return r.h == 0 ||
	       (r.x >= 0 && r.y >= 0 && r.w >= 0 && r.x + r.w <= w && r.y + r.h <= h);
}

static bool apart(struct rect a, struct rect b)
{
	return a.h == 0 || b.h == 0 || a.w == 0 || b.w == 0 || a.x + a.w <= b.x ||
	       b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
}

/* At every size and for small and large clusters, panels do not overlap and stay on the screen. */
TEST(layout_holds)
{
	static const uint32_t nodes[][2] = {
		{ 0, 0 }, { 1, 1 }, { 20, 5 }, { 200, 34 }, { 1000, 167 }
	};

	for (int w = 1; w <= 320; w += w < 100 ? 1 : 7) {
		for (int h = 1; h <= 100; h++) {
			for (size_t k = 0; k < 10; k++) {
				struct layout l;
				struct rect *r[11];
				int n = 0;

				layout_make(&l, w, h, nodes[k / 2][0], nodes[k / 2][1], k % 2);
				r[n++] = &l.header, r[n++] = &l.pipeline, r[n++] = &l.timeline;
				r[n++] = &l.motion, r[n++] = &l.collisions, r[n++] = &l.loss;
				r[n++] = &l.receipts, r[n++] = &l.alerts, r[n++] = &l.journal;
				r[n++] = &l.prompt, r[n++] = &l.keys;
				for (int i = 0; i < n; i++) {
					assert_true(inside(*r[i], w, h));
					for (int j = 0; j < i; j++)
						assert_true(apart(*r[i], *r[j]));
				}
			}
		}
	}
}

/* Converts one of the colours 16 to 231 to linear red, green and blue. */
static void linear_colour(int colour, double rgb[3])
{
	static const int steps[6] = { 0, 95, 135, 175, 215, 255 };
	const int parts[3] = { (colour - 16) / 36, (colour - 16) / 6 % 6, (colour - 16) % 6 };

	for (int i = 0; i < 3; i++)
		rgb[i] = pow(steps[parts[i]] / 255.0, 2.2);
}

/* Converts linear red, green and blue to Oklab (Ottosson, 2020). In Oklab, equal distances look
 * equally large. */
static void to_oklab(const double rgb[3], double lab[3])
{
	static const double cones[3][3] = { { 0.4122, 0.5363, 0.0514 },
					    { 0.2119, 0.6807, 0.1074 },
					    { 0.0883, 0.2817, 0.6300 } };
	static const double axes[3][3] = { { 0.2105, 0.7936, -0.0041 },
					   { 1.9780, -2.4286, 0.4506 },
					   { 0.0259, 0.7828, -0.8087 } };
	double seen[3];

	for (int i = 0; i < 3; i++)
		seen[i] = cbrt(fmax(0, cones[i][0] * rgb[0] + cones[i][1] * rgb[1] +
					       cones[i][2] * rgb[2]));
	for (int i = 0; i < 3; i++)
		lab[i] = axes[i][0] * seen[0] + axes[i][1] * seen[1] + axes[i][2] * seen[2];
}

/* Returns the distance between two colours as people see them, without a deficiency or with one:
 * complete protanopia, deuteranopia or tritanopia (Machado, Oliveira and Fernandes, 2009). */
static double colour_distance(int a, int b, int deficiency)
{
	static const double seen[4][3][3] = {
		{ { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } },
		{ { 0.152, 1.053, -0.205 }, { 0.115, 0.786, 0.099 }, { -0.004, -0.048, 1.052 } },
		{ { 0.367, 0.861, -0.228 }, { 0.280, 0.673, 0.047 }, { -0.012, 0.043, 0.969 } },
		{ { 1.256, -0.077, -0.179 }, { -0.078, 0.931, 0.148 }, { 0.005, 0.691, 0.304 } }
	};
	double labs[2][3], sum = 0;

	for (int k = 0; k < 2; k++) {
		double rgb[3], out[3];

		linear_colour(k ? b : a, rgb);
		for (int i = 0; i < 3; i++)
			out[i] = fmin(1, fmax(0, seen[deficiency][i][0] * rgb[0] +
							 seen[deficiency][i][1] * rgb[1] +
							 seen[deficiency][i][2] * rgb[2]));
		to_oklab(out, labs[k]);
	}
	for (int i = 0; i < 3; i++)
		sum += (labs[0][i] - labs[1][i]) * (labs[0][i] - labs[1][i]);
	return sqrt(sum);
}

/* People with any colour vision can tell the colours of microbatches apart: in Oklab, 0.02 is about
 * the least distance that a person notices. */
TEST(microbatch_colours_differ)
{
	static const char *const names[] = { "default", "light", "colour-blind-safe", "solarized",
					     "high-contrast" };
	static const char *const folders[] = { "themes", NULL };
	struct error err = { "" };
	struct theme t;

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		assert_int_equal(theme_find(&t, names[k], folders, &err), 0);
		for (int i = STYLE_MICROBATCH_0; i <= STYLE_MICROBATCH_11; i++) {
			assert_in_range(t.styles[i].fg, 16, 231);
			for (int j = STYLE_MICROBATCH_0; j < i; j++)
				for (int deficiency = 0; deficiency < 4; deficiency++)
					assert_true(colour_distance(t.styles[i].fg,
								    t.styles[j].fg,
								    deficiency) > 0.08);
		}
	}
}

TEST(themes)
{
	static const char *const names[] = {
		"default", "light", "mono", "colour-blind-safe", "solarized", "high-contrast"
	};
	static const char *const folders[] = { "/nonexistent", "themes", NULL };
	struct error err = { "" };
	struct theme t, same;

	for (int i = 0; i < 6; i++) {
		if (theme_find(&t, names[i], folders, &err) != 0)
			fail_msg("%s", err.text);
		assert_string_equal(t.name, names[i]);
		/* These styles must differ at a glance. */
		assert_memory_not_equal(&t.styles[STYLE_FORWARD], &t.styles[STYLE_BACKWARD],
					sizeof(t.styles[0]));
		assert_memory_not_equal(&t.styles[STYLE_LIVE], &t.styles[STYLE_LOST],
					sizeof(t.styles[0]));
		assert_memory_not_equal(&t.styles[STYLE_IDLE], &t.styles[STYLE_FAILED],
					sizeof(t.styles[0]));
	}
	theme_find(&t, "mono", folders, &err);
	for (int i = 0; i < STYLES; i++)
		assert_true(t.styles[i].fg == THEME_DEFAULT && t.styles[i].bg == THEME_DEFAULT);
	same = t;
	assert_int_equal(theme_find(&t, "nothing", folders, &err), -ENOENT);
	assert_int_equal(theme_parse(&t, "x.json",
				     "{\"format\": \"skippipe.theme/1\", \"name\": \"x\",\n"
				     "\"styles\": {\n\"forwards\": {}}}",
				     &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "x.json:3: styles.forwards"));
	assert_int_equal(theme_parse(&t, "x.json",
				     "{\"format\": \"skippipe.theme/1\", \"name\": \"x\","
				     "\"styles\": {\"forward\": {\"fg\": 256}}}",
				     &err),
			 -EINVAL);
	assert_int_equal(theme_parse(&t, "x.json",
				     "{\"format\": \"skippipe.theme/2\", \"name\": \"x\"}",
				     &err),
			 -EINVAL);
	assert_int_equal(theme_parse(&t, "x.json", "{", &err), -EINVAL);
	assert_memory_equal(&same, &t, sizeof(t)); /* an invalid text leaves the theme unchanged */
	assert_int_equal(theme_parse(&t, "x.json",
				     "{\"format\": \"skippipe.theme/1\", \"name\": \"x\","
				     "\"styles\": {\"forward\": {\"fg\": \"#ff0000\", \"bg\": "
				     "\"bright-blue\"}}}",
				     &err),
			 0);
	assert_int_equal(t.styles[STYLE_FORWARD].fg, 196);
	assert_int_equal(t.styles[STYLE_FORWARD].bg, 12);
}

TEST(keys)
{
	struct error err = { "" };
	struct keymap map, same;
	uint32_t seen[ACTIONS * KEYMAP_EACH];
	int n = 0;

	keymap_default(&map);
	for (int a = 1; a < ACTIONS; a++) {
		for (int k = 0; k < KEYMAP_EACH && map.keys[a][k]; k++) {
			for (int i = 0; i < n; i++)
				assert_int_not_equal(seen[i],
						     /* Each key has only one action */
						     map.keys[a][k]);
			seen[n++] = map.keys[a][k];
			assert_int_equal(keymap_action(&map, map.keys[a][k]), a);
		}
	}
	/* A lowercase letter must not change the run at once: it starts actions that can be undone,
	 * or opens a dialog. */
	assert_int_equal(keymap_action(&map, 'f'), ACTION_FOLLOW);
	assert_int_equal(keymap_action(&map, 'x'), ACTION_NONE);
	assert_int_equal(keymap_action(&map, 'F'), ACTION_FAIL);
	assert_int_equal(
		keymap_parse_json(&map, "k",
				  "{\"heal-all\": \"ctrl-x\", \"down\": [\"n\", \"down\"]}",
				  &err),
		0);
	assert_int_equal(keymap_action(&map, 'X' - '@'), ACTION_HEAL_ALL);
	assert_int_equal(keymap_action(&map, 'X'), ACTION_NONE);
	/* By default, the key n belongs to the action find-next. */
	assert_int_equal(keymap_action(&map, 'n'), ACTION_DOWN);
	assert_int_equal(keymap_action(&map, 'j'), ACTION_NONE);
	same = map;
	assert_int_equal(keymap_parse_json(&map, "k.json",
					   "{\n\"quit\": \"q\",\n\"nonsense\": \"x\"}", &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "k.json:3: nonsense"));
	assert_int_equal(keymap_parse_json(&map, "k.json", "{\"quit\": \"hyper-q\"}", &err),
			 -EINVAL);
	assert_int_equal(keymap_parse_json(&map, "k.json", "{\"theme\": \"ctrl-l\"}", &err),
			 -EINVAL);
	assert_memory_equal(&same, &map, sizeof(map));
}

/* A keyboard of another script sends no Latin letters. Its letters can therefore be keys, here the
 * letter that a Russian keyboard has in the place of q. */
TEST(keys_of_other_scripts)
{
	struct error err = { "" };
	struct keymap map;
	char text[16];

	keymap_default(&map);
	assert_int_equal(
		keymap_parse_json(&map, "k", "{\"quit\": [\"q\", \"\u0439\"]}", &err), 0);
	assert_int_equal(keymap_action(&map, 'q'), ACTION_QUIT);
	assert_int_equal(keymap_action(&map, 0x439), ACTION_QUIT);
	keymap_show(0x439, text);
	assert_string_equal(text, "\xd0\xb9");
	assert_int_equal(keymap_parse_json(&map, "k", "{\"quit\": \"\u0439q\"}", &err), -EINVAL);
	/* The console shows Hebrew and wide letters as '?', so they cannot be keys. */
	assert_int_equal(keymap_parse_json(&map, "k", "{\"quit\": \"\u05e9\"}", &err), -EINVAL);
	assert_int_equal(keymap_parse_json(&map, "k", "{\"quit\": \"\u3042\"}", &err), -EINVAL);
	assert_int_equal(keymap_action(&map, '?'), ACTION_HELP);
}

TEST(configs)
{
	struct error err = { "" };
	struct config c;

	config_default(&c);
	assert_int_equal(config_parse(&c, "c.json",
				      "{\"theme\": \"light\", \"graph\": \"block\", \"fps\": 4,"
				      " \"mouse\": true, \"color\": false}",
				      &err),
			 0);
	assert_string_equal(c.theme, "light");
	assert_true(c.graph == 1 && c.fps == 4 && c.mouse && c.no_color);
	config_default(&c);
	assert_int_equal(
		config_parse(&c, "c.json", "{\n\"fbs\": 4,\n\"theme\": \"mono\"}", &err),
		-EINVAL);
	assert_non_null(strstr(err.text, "c.json:2: fbs"));
	assert_string_equal(c.theme, "mono"); /* valid settings are used in spite of the errors */
	assert_int_equal(config_parse(&c, "c.json", "{\"fps\": 0}", &err), -EINVAL);
	assert_int_equal(config_parse(&c, "c.json", "[]", &err), -EINVAL);
	assert_int_equal(config_parse(&c, "c.json", "{", &err), -EINVAL);
	assert_int_equal(c.fps, 0);
}

TEST(words)
{
	char text[16];
	long s;
	size_t found[8];

	glyphs_count(14400, text);
	assert_string_equal(text, "14.4k");
	glyphs_age(187, text);
	assert_string_equal(text, "3m07");
	glyphs_change(33.3, 28.9, text);
	assert_string_equal(text, "-13%");
	glyphs_change(0, 5, text);
	assert_string_equal(text, "?");
	glyphs_clock(INT64_C(1763733600000000), INT64_C(1763733600000000) + 3600000000, text);
	assert_string_equal(text, "14:00:00");
	glyphs_clock(INT64_C(1763733600000000), INT64_C(1763733600000000) + 36000000000, text);
	assert_string_equal(text, "11-21 14:00:00");
	assert_int_equal(command_seconds("10m", &s), 0);
	assert_int_equal(s, 600);
	assert_int_equal(command_seconds("m", &s), -EINVAL);
	/* The letters need not be neighbours in the name. */
	assert_true(command_match("h-a", found, 8) > 0);
	assert_string_equal(command_at(found[0])->name, "heal-all");
}

TEST(records)
{
	char *data;
	size_t size, got;
	const void *bytes;
	FILE *f = open_memstream(&data, &size);
	struct record_reader *r;
	int64_t at;

	assert_int_equal(record_write(f, -5, "hello", 5), 0);
	assert_int_equal(record_write(f, 7, "", 0), 0);
	assert_int_equal(record_write(f, INT64_MAX, "xyz", 3), 0);
	fclose(f);
	/* A killed console may leave any part of a recording. */
	for (size_t cut = 0; cut <= size; cut++) {
		size_t n = 0;

		r = record_open_memory(data, cut);
		while (record_next(r, &at, &bytes, &got) == 0)
			n++;
		assert_int_equal(n, (cut >= 17) + (cut >= 29) + (cut >= 44));
		record_close(r);
	}
	r = record_open_memory(data, size);
	assert_int_equal(record_next(r, &at, &bytes, &got), 0);
	assert_true(at == -5 && got == 5 && memcmp(bytes, "hello", 5) == 0);
	assert_int_equal(record_next(r, &at, &bytes, &got), 0);
	assert_int_equal(record_next(r, &at, &bytes, &got), 0);
	assert_true(at == RECORD_MOST_US && got == 3);
	record_close(r);
	memset(data, 0xff, size);
	r = record_open_memory(data, size);
	assert_int_equal(record_next(r, &at, &bytes, &got), -EBADMSG);
	record_close(r);
	free(data);
}
