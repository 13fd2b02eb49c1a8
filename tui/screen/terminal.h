/* terminal.h - the real screen, keyboard and mouse: the only file that knows ncurses, which draws
 * only. decoder.h takes the input apart.
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
#include "tui/screen/decoder.h"
#include "tui/screen/screen.h"
#include "tui/screen/theme.h"

struct terminal; /* opaque */

/* Return true if locale and TERM can show UTF-8, and braille. Call them after setlocale(LC_ALL,
 * ""). */
bool terminal_speaks_utf8(void);
bool terminal_shows_braille(void);

/* If TERM is unknown on this machine, the terminal is used as xterm-256color. What was typed before
 * is discarded. colour false: attributes only (NO_COLOR). -ENOTTY: standard input or output is not
 * a terminal; -ENOTSUP: TERM is not set or cannot place the cursor (use plain lines); -EINVAL: TERM
 * and xterm-256color are unknown. */
int terminal_open(struct terminal **out, const struct theme *theme, bool colour,
		  struct error *err);
void terminal_close(struct terminal *t); /* t may be NULL */
/* Checks TERM only, as terminal_open does. */
int terminal_check(struct error *err);
/* Returns the type that is used in place of TERM; NULL: TERM itself is used. The text is static. */
const char *terminal_substitute(const struct terminal *t);
void terminal_theme(struct terminal *t, const struct theme *theme);
/* Returns false if this terminal reports no mouse. */
bool terminal_mouse(struct terminal *t, bool on);

/* Sends the text to the terminal's clipboard (OSC 52). Returns false if this terminal has no
 * clipboard or the text is too long. The terminal does not report whether it has copied. */
bool terminal_copy(struct terminal *t, const char *text);

/* Gives the terminal's present size, which follows every change of the window. */
void terminal_size(struct terminal *t, int *w, int *h);
/* Shows the picture; only changed cells are written. */
void terminal_show(struct terminal *t, const struct screen *s);
/* Redraws everything at the next terminal_show, for example after other output. */
void terminal_redraw(struct terminal *t);

/* Gives the next pending input; INPUT_NONE if there is none. Never waits. now_us: a time before
 * the call, on any clock. */
void terminal_next(struct terminal *t, int64_t now_us, struct terminal_event *out);
/* Returns when terminal_next must be called although no byte arrives; INT64_MAX: never. */
int64_t terminal_deadline_us(const struct terminal *t);

#endif
