/* screen.h - a picture made of cells: what a view draws into, and what terminal.h shows.
 *
 * A cell is one glyph of one column and a style: a meaning (forward, alert, ...), never a
 * colour; a theme gives it colours at the very end. So views are tested without a terminal.
 *
 * Everything is clipped: drawing outside the picture does nothing. Text from elsewhere is safe
 * to draw: control characters and glyphs that are not one column wide become '?'.
 */
#ifndef TUI_SCREEN_H
#define TUI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum style {
	STYLE_TEXT,
	STYLE_FAINT, /* labels, units, what matters less */
	STYLE_STRONG,
	STYLE_TITLE,
	STYLE_RULE, /* lines between panels */
	STYLE_KEY,  /* the name of a key */
	STYLE_FORWARD,
	STYLE_BACKWARD,
	STYLE_LOSS, /* the loss task */
	STYLE_EVALUATE,
	STYLE_IDLE,
	STYLE_BLOCKED, /* somebody waits */
	STYLE_FAILED,
	STYLE_SLOW,
	STYLE_JOINING,
	STYLE_PLANNED, /* what the plan says will be */
	STYLE_TRAVEL,  /* on a link between two nodes */
	STYLE_GOOD,
	STYLE_WARNING,
	STYLE_ALERT,
	STYLE_TRAIN, /* the training loss */
	STYLE_VALIDATION,
	STYLE_MARK,        /* S F R under a curve */
	STYLE_LIVE,        /* the word LIVE */
	STYLE_LOST,        /* the words that say it is not */
	STYLE_BAR_FORWARD, /* timeline bars: a background where there are colours */
	STYLE_BAR_BACKWARD,
	STYLE_BAR_LOSS,
	STYLE_BAR_EVALUATE,
	STYLE_BAR_CONTENDED,
	STYLE_HEAT_0,
	STYLE_HEAT_1,
	STYLE_HEAT_2,
	STYLE_HEAT_3,
	STYLE_HEAT_4, /* cold to hot */
	STYLE_STALE,  /* all of it, when the controller is silent */
	STYLES
};

/* Added to a style. */
enum {
	STYLE_REVERSE = 1 << 8,
	STYLE_BOLD = 1 << 9,
	STYLE_UNDERLINE = 1 << 10,
	STYLE_MEANING = 0xff
};

int style_parse(const char *name, enum style *out); /* -EINVAL */

struct rect {
	int x, y, w, h;
};

struct cell {
	uint32_t glyph; /* Unicode code point, one column wide */
	uint16_t style;
};

struct screen; /* opaque */

enum { SCREEN_MOST = 1024 }; /* columns, rows */

/* Sizes are clamped to 1..SCREEN_MOST. ascii: no glyph beyond 7 bits is ever put. */
struct screen *screen_new(int w, int h, bool ascii);
/* Changes the size and clears the screen. */
void screen_resize(struct screen *s, int w, int h);
/* NULL is allowed. */
void screen_free(struct screen *s);
/* In cells. */
int screen_width(const struct screen *s);
int screen_height(const struct screen *s);
const struct cell *screen_cells(const struct screen *s); /* (h, w), borrowed until a resize */
struct rect screen_whole(const struct screen *s);

/* Blanks of STYLE_TEXT everywhere. */
void screen_clear(struct screen *s);
/* One glyph; outside of the screen nothing happens. */
void screen_put(struct screen *s, int x, int y, uint32_t glyph, unsigned style);
void screen_fill(struct screen *s, struct rect r, uint32_t glyph, unsigned style);
/* UTF-8 from (x, y), at most w columns. Returns the columns taken. */
int screen_text(struct screen *s, int x, int y, int w, unsigned style, const char *utf8);
/* As screen_text, formatted. */
int screen_print(struct screen *s, int x, int y, int w, unsigned style, const char *format, ...)
	__attribute__((format(printf, 6, 7)));
/* Changes styles, leaves glyphs: 'and' is kept of the old style, 'or' added. */
void screen_restyle(struct screen *s, struct rect r, unsigned and, unsigned or);

/* A line across the top of r with a title in it: -[title]-----. An optional second, at the
 * right. */
void screen_rule(struct screen *s, struct rect r, const char *title, const char *right);
void screen_vertical(struct screen *s, int x, int y, int h); /* the line between two panels */
void screen_box(struct screen *s, struct rect r, const char *title); /* cleared inside */

/* The glyphs as UTF-8 lines, trailing blanks cut; and the styles, a letter a cell. Free it.
 * NULL: no memory. The styles are for tests. */
char *screen_dump(const struct screen *s);
char *screen_dump_styles(const struct screen *s);

/* Columns that the text would take. */
int screen_columns(const char *utf8);

/* Decodes one glyph, moves *at behind it. 0 at the end; '?' for what cannot be shown. */
uint32_t utf8_next(const char **at);
/* Writes up to 4 bytes, returns how many. */
int utf8_put(char *to, uint32_t glyph);

#endif
