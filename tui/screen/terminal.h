/* terminal.h - the real screen, keyboard and mouse: the only file that knows ncurses.
 *
 * Whatever ends the program gives the terminal back: terminal_close on the ordinary ways out,
 * and on SEGV, FPE, ABRT, BUS, ILL and QUIT a handler that only writes a fixed string, resets
 * the line discipline and raises the signal again. One terminal a process.
 */
#ifndef TUI_TERMINAL_H
#define TUI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tui/screen/screen.h"
#include "tui/screen/theme.h"

struct terminal; /* opaque */

/* What this process's locale and TERM can show; call after setlocale(LC_ALL, ""). */
bool terminal_speaks_utf8(void);
bool terminal_shows_braille(void);

/* colour false: attributes only (NO_COLOR). -ENOTTY: standard input or output is no terminal;
 * -ENOTSUP: TERM cannot place the cursor (use plain lines); -EINVAL: TERM is unknown. */
int terminal_open(struct terminal **out, const struct theme *theme, bool colour,
		  struct error *err);
void terminal_close(struct terminal *t); /* NULL is allowed */
void terminal_theme(struct terminal *t, const struct theme *theme);
void terminal_mouse(struct terminal *t, bool on);

/* Gives the text to the terminal's clipboard (OSC 52). False: this TERM has none, or the text
 * is longer than terminals take. Whether it did is not known. */
bool terminal_copy(struct terminal *t, const char *text);

void terminal_size(const struct terminal *t, int *w, int *h);
/* Sends what differs from the picture shown before. */
void terminal_show(struct terminal *t, const struct screen *s);
/* Everything anew, e.g. after something else wrote here. */
void terminal_redraw(struct terminal *t);

enum terminal_input { INPUT_NONE, INPUT_KEY, INPUT_RESIZE, INPUT_CLICK, INPUT_PASTE };

struct terminal_event {
	enum terminal_input input;
	uint32_t key;      /* INPUT_KEY: a character or enum press */
	int x, y;          /* INPUT_CLICK */
	const char *paste; /* INPUT_PASTE: borrowed until the next call */
};

/* The next one that is there already; INPUT_NONE when there is none. Never waits. */
void terminal_next(struct terminal *t, struct terminal_event *out);

#endif
