/* terminal.h - the real screen, keyboard and mouse. Only terminal.c uses ncurses, and only for
 * drawing; decoder.h splits the input.
 *
 * However the program ends, the terminal is restored. Normally terminal_close restores it. On SEGV,
 * FPE, ABRT, BUS, ILL or QUIT, or when memory runs out (base/alloc.h), a handler restores it: the
 * handler writes a fixed string and resets the line discipline. A process has one terminal.
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

/* Chooses the character set by LC_ALL, LC_CTYPE or LANG. Their locale may be missing on this
 * machine, because ssh brings the names of the operator's own machine. */
void terminal_set_locale(void);
/* terminal_speaks_utf8 returns true if the locale allows UTF-8. terminal_shows_braille returns true
 * if TERM allows braille characters, too. Call terminal_set_locale first. */
bool terminal_speaks_utf8(void);
bool terminal_shows_braille(void);

/* Opens the terminal. If TERM is unknown on this machine, uses xterm-256color. Discards input that
 * was typed before. colour false: shows attributes but no colours (NO_COLOR). -ENOTTY: standard
 * input or output is not a terminal. -ENOTSUP: TERM is not set, or the terminal cannot place the
 * cursor; the caller may print plain lines. -EINVAL: neither TERM nor xterm-256color is known. */
int terminal_open(struct terminal **out, const struct theme *theme, bool colour,
		  struct error *err);
void terminal_close(struct terminal *t); /* t may be NULL */
/* Makes terminal_open's checks of TERM, and nothing else. */
int terminal_check(struct error *err);
/* Returns the type that is used because TERM is unknown; NULL: TERM itself is used. The text is
 * static. */
const char *terminal_substitute(const struct terminal *t);
void terminal_theme(struct terminal *t, const struct theme *theme);
/* Switches mouse reports on or off. Returns false if the terminal has no mouse reports. */
bool terminal_mouse(struct terminal *t, bool on);

/* Sends a text to the terminal's clipboard (OSC 52). Returns false if the terminal has no clipboard
 * or the text is too long. If it returns true, the terminal may still have ignored the text,
 * because terminals do not report whether they copy. */
bool terminal_copy(struct terminal *t, const char *text);

/* Sets *w and *h to the present size of the window. */
void terminal_size(struct terminal *t, int *w, int *h);
/* Shows the picture; only changed cells are written. */
void terminal_show(struct terminal *t, const struct screen *s);
/* Makes the next terminal_show write all cells, for example after other output. */
void terminal_redraw(struct terminal *t);

/* Sets *out to the next input, or to INPUT_NONE if there is none. Does not wait. now_us: the
 * present time on any clock, read before the call. */
void terminal_next(struct terminal *t, int64_t now_us, struct terminal_event *out);
/* Returns the time at which terminal_next must be called even if no byte arrives; INT64_MAX:
 * never. */
int64_t terminal_deadline_us(const struct terminal *t);

#endif
