/* text_mode.h - the run as lines of text, which are never redrawn: for screen readers, dumb
 * terminals and pipes. */
#ifndef TUI_TEXT_MODE_H
#define TUI_TEXT_MODE_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/run/state.h"

/* The last line that was printed about a step before the first iteration. */
struct text_mode {
	uint8_t step;
	/* time at which the line was printed, on the controller's clock; 0: no line yet */
	int64_t at_us;
};

/* Writes the line for a message that was just applied to the state, without a newline. Returns
 * false if no line is printed for it. Control characters in the controller's texts become '?'. */
bool text_mode_line(struct text_mode *p, const struct state *s, const struct msg *m, char *out,
		    size_t room);
/* Returns the time at which the event of a printed message happened, in microseconds since 1970.
 * Commits and journal entries contain this time. For other messages it is the time of the newest
 * status, converted from the controller's monotonic clock by means of the newest journal entry.
 * Returns unknown_us while there is no entry. */
int64_t text_mode_wall_us(const struct state *s, const struct msg *m, int64_t unknown_us);

#endif
