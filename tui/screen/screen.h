/* screen.h - a picture made of cells. Views draw into it, and terminal.c shows it.
 *
 * A cell has one glyph, one column wide, and a style. A style is a meaning (forward, alert, ...),
 * not a colour. The theme gives colours to styles when the terminal shows the picture, so views can
 * be tested without a terminal.
 *
 * Drawing outside the picture has no effect. Text from other machines is safe to draw: control
 * characters, and glyphs that are not one column wide, become '?'.
 */
#ifndef TUI_SCREEN_H
#define TUI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum style {
	STYLE_TEXT,
	STYLE_FAINT, /* labels, units, less important text */
	STYLE_STRONG,
	STYLE_TITLE,
	STYLE_RULE, /* the lines between panels */
	STYLE_KEY,  /* the name of a key */
	STYLE_FORWARD,
	STYLE_BACKWARD,
	STYLE_LOSS, /* the loss task */
	STYLE_EVALUATE,
	STYLE_IDLE,
	STYLE_BLOCKED, /* a microbatch waits */
	STYLE_FAILED,
	STYLE_SLOW,
	STYLE_JOINING,
	STYLE_PLANNED, /* planned tasks */
	STYLE_TRAVEL,  /* a microbatch on a link between two nodes */
	STYLE_GOOD,
	STYLE_WARNING,
	STYLE_ALERT,
	STYLE_TRAIN, /* the training loss */
	STYLE_VALIDATION,
	STYLE_MARK,        /* the marks S F R under a curve */
	STYLE_LIVE,        /* the word LIVE */
	STYLE_LOST,        /* the words for a connection that is not LIVE */
	STYLE_BAR_FORWARD, /* timeline bars: a background colour */
	STYLE_BAR_BACKWARD,
	STYLE_BAR_LOSS,
	STYLE_BAR_EVALUATE,
	STYLE_BAR_CONTENDED,
	STYLE_HEAT_0,
	STYLE_HEAT_1,
	STYLE_HEAT_2,
	STYLE_HEAT_3,
	STYLE_HEAT_4, /* heat from cold to hot */
	/* The whole screen, when the controller has been silent for some time. */
	STYLE_STALE,
	STYLE_MICROBATCH_0, /* twelve colours that tell microbatches apart (colouring.h) */
	STYLE_MICROBATCH_11 = STYLE_MICROBATCH_0 + 11,
	STYLES
};

/* Flags that are added to a style with |. */
enum {
	STYLE_REVERSE = 1 << 8,
	STYLE_BOLD = 1 << 9,
	STYLE_UNDERLINE = 1 << 10,
	STYLE_MEANING = 0xff
};

/* Parses the name of a style in a theme. -EINVAL: there is no such style. */
int style_parse(const char *name, enum style *out);

struct rect {
	int x, y, w, h;
};

struct cell {
	uint32_t glyph; /* Unicode code point, one column wide */
	uint16_t style;
};

struct screen; /* opaque */

enum { SCREEN_MOST = 1024 }; /* largest number of columns and of rows */

/* Makes a screen; sizes are limited to 1..SCREEN_MOST. ascii: glyphs that are not ASCII are
 * replaced. */
struct screen *screen_new(int w, int h, bool ascii);
/* Changes the size and clears the screen. */
void screen_resize(struct screen *s, int w, int h);
/* Frees the screen; s may be NULL. */
void screen_free(struct screen *s);
/* Return the width and the height in cells. */
int screen_width(const struct screen *s);
int screen_height(const struct screen *s);
/* Returns the cells, an array of (h, w), borrowed until the next resize. */
const struct cell *screen_cells(const struct screen *s);
struct rect screen_whole(const struct screen *s);

/* Fills the screen with blanks of STYLE_TEXT. */
void screen_clear(struct screen *s);
/* Sets one cell. */
void screen_put(struct screen *s, int x, int y, uint32_t glyph, unsigned style);
void screen_fill(struct screen *s, struct rect r, uint32_t glyph, unsigned style);
/* Draws UTF-8 text from (x, y) on, in at most w columns. Returns the number of columns used. */
int screen_text(struct screen *s, int x, int y, int w, unsigned style, const char *utf8);
/* Draws UTF-8 text in lines that end between words. Draws at most at.h lines; if the text needs
 * more, the last line drawn is cut off. Returns the number of lines drawn. If at.h is 0, draws
 * nothing and returns the number of lines that the text needs. */
int screen_paragraph(struct screen *s, struct rect at, unsigned style, const char *utf8);
/* Draws formatted text like screen_text. */
int screen_print(struct screen *s, int x, int y, int w, unsigned style, const char *format, ...)
	__attribute__((format(printf, 6, 7)));
/* Changes the style of each cell in r to (style & and) | or. Glyphs stay. */
void screen_restyle(struct screen *s, struct rect r, unsigned and, unsigned or);

/* Draws a line with a title across the top of r: -[title]-----. `right` is a second title at the
 * right end; it is omitted if there is no room. */
void screen_rule(struct screen *s, struct rect r, const char *title, const char *right);
/* Draws a vertical line. */
void screen_vertical(struct screen *s, int x, int y, int h);
/* Draws a frame with a title around r and clears its inside. */
void screen_box(struct screen *s, struct rect r, const char *title);

/* Return the screen as lines of UTF-8 without trailing blanks, and the styles as one letter for
 * each cell, for tests. The caller frees the text. */
char *screen_dump(const struct screen *s);
char *screen_dump_styles(const struct screen *s);

/* Returns the width of a text in columns. */
int screen_columns(const char *utf8);

/* Decodes the next glyph and moves *at behind it. Returns 0 at the end of the text, and '?' for a
 * glyph that cannot be shown. */
uint32_t utf8_next(const char **at);
/* Writes a glyph as UTF-8, 4 bytes at most, and returns the number of bytes. */
int utf8_put(char *to, uint32_t glyph);

#endif
