/* A picture as a grid of cells; each cell has a glyph and a style. Views draw into it. terminal.c
 * shows the cells that have changed; tests and exports read all cells. Text is cut at the edges of
 * its rectangle; its width is counted in cells, not bytes. */
#include "tui/screen/screen.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct screen {
	int w, h;
	bool ascii;
	struct cell *cells;
};

static const char *const names[STYLES] = {
	[STYLE_TEXT] = "text",
	[STYLE_FAINT] = "faint",
	[STYLE_STRONG] = "strong",
	[STYLE_TITLE] = "title",
	[STYLE_RULE] = "rule",
	[STYLE_KEY] = "key",
	[STYLE_FORWARD] = "forward",
	[STYLE_BACKWARD] = "backward",
	[STYLE_LOSS] = "loss",
	[STYLE_EVALUATE] = "evaluate",
	[STYLE_IDLE] = "idle",
	[STYLE_BLOCKED] = "blocked",
	[STYLE_FAILED] = "failed",
	[STYLE_SLOW] = "slow",
	[STYLE_JOINING] = "joining",
	[STYLE_PLANNED] = "planned",
	[STYLE_TRAVEL] = "travel",
	[STYLE_GOOD] = "good",
	[STYLE_WARNING] = "warning",
	[STYLE_ALERT] = "alert",
	[STYLE_TRAIN] = "train",
	[STYLE_VALIDATION] = "validation",
	[STYLE_MARK] = "mark",
	[STYLE_LIVE] = "live",
	[STYLE_LOST] = "lost",
	[STYLE_BAR_FORWARD] = "bar-forward",
	[STYLE_BAR_BACKWARD] = "bar-backward",
	[STYLE_BAR_LOSS] = "bar-loss",
	[STYLE_BAR_EVALUATE] = "bar-evaluate",
	[STYLE_BAR_CONTENDED] = "bar-contended",
	[STYLE_HEAT_0] = "heat-0",
	[STYLE_HEAT_1] = "heat-1",
	[STYLE_HEAT_2] = "heat-2",
	[STYLE_HEAT_3] = "heat-3",
	[STYLE_HEAT_4] = "heat-4",
	[STYLE_STALE] = "stale",
	[STYLE_MICROBATCH_0] = "microbatch-0",
	[STYLE_MICROBATCH_0 + 1] = "microbatch-1",
	[STYLE_MICROBATCH_0 + 2] = "microbatch-2",
	[STYLE_MICROBATCH_0 + 3] = "microbatch-3",
	[STYLE_MICROBATCH_0 + 4] = "microbatch-4",
	[STYLE_MICROBATCH_0 + 5] = "microbatch-5",
	[STYLE_MICROBATCH_0 + 6] = "microbatch-6",
	[STYLE_MICROBATCH_0 + 7] = "microbatch-7",
	[STYLE_MICROBATCH_0 + 8] = "microbatch-8",
	[STYLE_MICROBATCH_0 + 9] = "microbatch-9",
	[STYLE_MICROBATCH_0 + 10] = "microbatch-10",
	[STYLE_MICROBATCH_0 + 11] = "microbatch-11",
};

int style_parse(const char *name, enum style *out)
{
	for (int i = 0; i < STYLES; i++) {
		if (strcmp(names[i], name) == 0) {
			*out = (enum style)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* ---- glyphs ---- */

/* Returns true if every terminal shows the glyph one column wide. Other glyphs would shift the rest
 * of the row. */
static bool is_narrow(uint32_t g)
{
	return (g >= 0x20 && g < 0x7f) || (g >= 0xa1 && g <= 0x2ff && g != 0xad) ||
	       (g >= 0x370 && g <= 0x482) || (g >= 0x48a && g <= 0x52f) ||
	       (g >= 0x2010 && g <= 0x2027) || (g >= 0x2190 && g <= 0x21ff) ||
	       (g >= 0x2200 && g <= 0x22ff) || (g >= 0x2500 && g <= 0x25fc) ||
	       (g >= 0x2800 && g <= 0x28ff);
}

/* Returns an ASCII character that replaces a glyph of the console. */
static uint32_t plain_glyph(uint32_t g)
{
	if (g < 0x80)
		return g;
	if (g == 0x2502 || g == 0x2503)
		return '|';
	if (g == 0x2500 || g == 0x2501 || g == 0x2013 || g == 0x2014)
		return '-';
	if (g >= 0x250c && g <= 0x254b)
		return '+';
	if (g == 0x2192)
		return '>';
	if (g == 0x2190)
		return '<';
	if (g == 0xb7 || g == 0x2026)
		return '.';
	return '?';
}

uint32_t utf8_next(const char **at)
{
	const unsigned char *p = (const unsigned char *)*at;
	uint32_t g = *p;
	int more = 0;

	if (g == 0)
		return 0;
	if (g >= 0xc2 && g < 0xe0) {
		more = 1;
		g &= 0x1f;
	} else if (g >= 0xe0 && g < 0xf0) {
		more = 2;
		g &= 0x0f;
	} else if (g >= 0xf0 && g < 0xf5) {
		more = 3;
		g &= 0x07;
	} else if (g >= 0x80) {
		g = 0; /* not the first byte of a UTF-8 character */
	}
	for (int i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			*at += i;
			return '?';
		}
		g = g << 6 | (p[i] & 0x3f);
	}
	*at += 1 + more;
	return is_narrow(g) ? g : '?';
}

int utf8_put(char *to, uint32_t g)
{
	if (g < 0x80) {
		to[0] = (char)g;
		return 1;
	}
	if (g < 0x800) {
		to[0] = (char)(0xc0 | g >> 6);
		to[1] = (char)(0x80 | (g & 0x3f));
		return 2;
	}
	if (g < 0x10000) {
		to[0] = (char)(0xe0 | g >> 12);
		to[1] = (char)(0x80 | (g >> 6 & 0x3f));
		to[2] = (char)(0x80 | (g & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | (g >> 18 & 7));
	to[1] = (char)(0x80 | (g >> 12 & 0x3f));
	to[2] = (char)(0x80 | (g >> 6 & 0x3f));
	to[3] = (char)(0x80 | (g & 0x3f));
	return 4;
}

int screen_columns(const char *utf8)
{
	int n = 0;

	while (utf8_next(&utf8))
		n++;
	return n;
}

/* ---- the buffer ---- */

static int clamp_size(int v)
{
	return v < 1 ? 1 : v > SCREEN_MOST ? SCREEN_MOST : v;
}

struct screen *screen_new(int w, int h, bool ascii)
{
	struct screen *s = alloc_new(sizeof(*s));

	s->ascii = ascii;
	screen_resize(s, w, h);
	return s;
}

void screen_resize(struct screen *s, int w, int h)
{
	s->w = clamp_size(w);
	s->h = clamp_size(h);
	s->cells = alloc_resize(s->cells, (size_t)s->w * (size_t)s->h, sizeof(*s->cells));
	screen_clear(s);
}

void screen_free(struct screen *s)
{
	if (s)
		free(s->cells);
	free(s);
}

int screen_width(const struct screen *s)
{
	return s->w;
}

int screen_height(const struct screen *s)
{
	return s->h;
}

const struct cell *screen_cells(const struct screen *s)
{
	return s->cells;
}

struct rect screen_whole(const struct screen *s)
{
	return (struct rect){ 0, 0, s->w, s->h };
}

void screen_clear(struct screen *s)
{
	screen_fill(s, screen_whole(s), ' ', STYLE_TEXT);
}

void screen_put(struct screen *s, int x, int y, uint32_t glyph, unsigned style)
{
	if (x < 0 || y < 0 || x >= s->w || y >= s->h)
		return;
	if (s->ascii)
		glyph = plain_glyph(glyph);
	s->cells[y * s->w + x] = (struct cell){ glyph, (uint16_t)style };
}

void screen_fill(struct screen *s, struct rect r, uint32_t glyph, unsigned style)
{
	for (int y = r.y < 0 ? 0 : r.y; y < r.y + r.h && y < s->h; y++)
		for (int x = r.x < 0 ? 0 : r.x; x < r.x + r.w && x < s->w; x++)
			screen_put(s, x, y, glyph, style);
}

int screen_text(struct screen *s, int x, int y, int w, unsigned style, const char *utf8)
{
	int taken = 0;
	uint32_t g;

	while (taken < w && (g = utf8_next(&utf8)) != 0)
		screen_put(s, x + taken++, y, g, style);
	return taken;
}

/* Returns the end of the first line of a text if lines have w columns: after the last word that
 * fits, or inside a word that is too long. */
static const char *line_end(const char *utf8, int w)
{
	const char *at = utf8, *word_end = NULL;

	for (int i = 0; i < w && *at; i++) {
		if (*at == ' ')
			word_end = at;
		utf8_next(&at);
	}
	return *at && *at != ' ' && word_end ? word_end : at;
}

int screen_paragraph(struct screen *s, struct rect at, unsigned style, const char *utf8)
{
	int lines = 0;

	do {
		const char *end = line_end(utf8, at.w > 0 ? at.w : 1);

		if (lines == at.h - 1)
			end = utf8 + strlen(utf8);
		for (int i = 0; i < at.w && utf8 < end && lines < at.h; i++)
			screen_put(s, at.x + i, at.y + lines, utf8_next(&utf8), style);
		utf8 = end + strspn(end, " ");
		lines++;
	} while (*utf8);
	return lines;
}

int screen_print(struct screen *s, int x, int y, int w, unsigned style, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return screen_text(s, x, y, w, style, text);
}

void screen_restyle(struct screen *s, struct rect r, unsigned and, unsigned or)
{
	for (int y = r.y < 0 ? 0 : r.y; y < r.y + r.h && y < s->h; y++) {
		for (int x = r.x < 0 ? 0 : r.x; x < r.x + r.w && x < s->w; x++) {
			struct cell *c = &s->cells[y * s->w + x];

			c->style = (uint16_t)((c->style & and) | or);
		}
	}
}

/* ---- lines ---- */

/* Draws "[title]" over an existing line. Returns the column after the title. */
static int rule_title(struct screen *s, int x, int y, int w, const char *title)
{
	int n;

	if (w < 3)
		return x;
	screen_put(s, x, y, s->ascii ? '[' : 0x2524, STYLE_RULE);
	n = screen_text(s, x + 1, y, w - 2, STYLE_TITLE, title);
	screen_put(s, x + 1 + n, y, s->ascii ? ']' : 0x251c, STYLE_RULE);
	return x + n + 2;
}

void screen_rule(struct screen *s, struct rect r, const char *title, const char *right)
{
	int behind = r.x + 1, n;

	screen_fill(s, (struct rect){ r.x, r.y, r.w, 1 }, 0x2500, STYLE_RULE);
	if (title && *title)
		behind = rule_title(s, r.x + 1, r.y, r.w - 2, title);
	if (!right || !*right)
		return;
	n = screen_columns(right);
	if (behind + n + 3 < r.x + r.w)
		rule_title(s, r.x + r.w - n - 3, r.y, n + 2, right);
}

void screen_vertical(struct screen *s, int x, int y, int h)
{
	for (int i = 0; i < h; i++)
		screen_put(s, x, y + i, 0x2502, STYLE_RULE);
}

void screen_box(struct screen *s, struct rect r, const char *title)
{
	int right = r.x + r.w - 1, bottom = r.y + r.h - 1;

	screen_fill(s, r, ' ', STYLE_TEXT);
	screen_rule(s, r, title, NULL);
	screen_fill(s, (struct rect){ r.x, bottom, r.w, 1 }, 0x2500, STYLE_RULE);
	screen_vertical(s, r.x, r.y, r.h);
	screen_vertical(s, right, r.y, r.h);
	screen_put(s, r.x, r.y, 0x250c, STYLE_RULE);
	screen_put(s, right, r.y, 0x2510, STYLE_RULE);
	screen_put(s, r.x, bottom, 0x2514, STYLE_RULE);
	screen_put(s, right, bottom, 0x2518, STYLE_RULE);
}

/* ---- screen as text ---- */

char *screen_dump(const struct screen *s)
{
	char *text = alloc_new((size_t)s->w * (size_t)s->h * 4 + (size_t)s->h + 1), *at = text;

	for (int y = 0; y < s->h; y++) {
		char *end = at;

		for (int x = 0; x < s->w; x++) {
			uint32_t g = s->cells[y * s->w + x].glyph;

			at += utf8_put(at, g);
			if (g != ' ')
				end = at;
		}
		at = end;
		*at++ = '\n';
	}
	*at = '\0';
	return text;
}

static char style_letter(unsigned style)
{
	static const char letters[] = ".abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (style & STYLE_REVERSE && (style & STYLE_MEANING) < STYLE_MICROBATCH_0)
		return '@';
	return letters[(style & STYLE_MEANING) % (sizeof(letters) - 1)];
}

char *screen_dump_styles(const struct screen *s)
{
	char *text = alloc_new((size_t)(s->w + 1) * (size_t)s->h + 1), *at = text;

	for (int y = 0; y < s->h; y++) {
		for (int x = 0; x < s->w; x++)
			*at++ = style_letter(s->cells[y * s->w + x].style);
		*at++ = '\n';
	}
	*at = '\0';
	return text;
}
