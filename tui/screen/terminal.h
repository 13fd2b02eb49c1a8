/* terminal.h - the real screen, keyboard and mouse: the only file that knows ncurses.
 *
 * The terminal is restored whatever ends the program: by terminal_close normally, and by a
 * handler on SEGV, FPE, ABRT, BUS, ILL, QUIT and when memory runs out (base/alloc.h). The handler
 * writes a fixed string and resets the line discipline. A process has one terminal.
 */
#ifndef TUI_TERMINAL_H
#define TUI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tui/screen/screen.h"
#include "tui/screen/theme.h"

struct terminal; /* opaque */

/* Return true if locale and TERM can show UTF-8, and braille. Call them after setlocale(LC_ALL,
 * ""). */
bool terminal_speaks_utf8(void);
bool terminal_shows_braille(void);

/* colour false: attributes only (NO_COLOR). -ENOTTY: standard input or output is not a terminal;
 * -ENOTSUP: TERM cannot place the cursor (use plain lines); -EINVAL: TERM is unknown. */
int terminal_open(struct terminal **out, const struct theme *theme, bool colour,
		  struct error *err);
void terminal_close(struct terminal *t); /* NULL is allowed */
void terminal_theme(struct terminal *t, const struct theme *theme);
void terminal_mouse(struct terminal *t, bool on);

/* Sends the text to the terminal's clipboard (OSC 52). Returns false if this TERM has none or the
 * text is too long. The terminal does not report whether it has copied. */
bool terminal_copy(struct terminal *t, const char *text);

void terminal_size(const struct terminal *t, int *w, int *h);
/* Shows the picture; only changed cells are written. */
void terminal_show(struct terminal *t, const struct screen *s);
/* Redraws everything at the next terminal_show, for example after other output. */
void terminal_redraw(struct terminal *t);

enum terminal_input { INPUT_NONE, INPUT_KEY, INPUT_RESIZE, INPUT_CLICK, INPUT_PASTE };

struct terminal_event {
	enum terminal_input input;
	uint32_t key;      /* INPUT_KEY: a character or enum press */
	int x, y;          /* INPUT_CLICK */
	const char *paste; /* INPUT_PASTE: borrowed until the next call */
};

/* Gives the next pending input; INPUT_NONE if there is none. Never waits. */
void terminal_next(struct terminal *t, struct terminal_event *out);

#endif
