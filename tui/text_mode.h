/* text_mode.h - the run as lines of text that are appended and never redrawn: for screen readers,
 * dumb terminals and pipes.
 */
#ifndef TUI_TEXT_MODE_H
#define TUI_TEXT_MODE_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/run/state.h"

/* The last line that was printed about the steps before the first iteration. */
struct text_mode {
	uint8_t step;
	int64_t at_us; /* time of the last line on the controller's clock; 0: no line yet */
};

/* Writes the line for a message that has just been applied to the state, without a newline. Returns
 * false if there is no line for the message. Control characters in the controller's texts become
 * '?'. */
bool text_mode_line(struct text_mode *p, const struct state *s, const struct msg *m, char *out,
		    size_t room);
/* Returns the time of a message that text_mode_line prints, in microseconds since 1970. The times
 * of commits and of the journal's entries are the controller's; otherwise the newest entry tells
 * the difference between the controller's two clocks. unknown_us: returned while there is no
 * entry. */
int64_t text_mode_wall_us(const struct state *s, const struct msg *m, int64_t unknown_us);

#endif
