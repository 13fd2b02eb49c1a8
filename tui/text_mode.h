/* text_mode.h - the run as lines, appended and never redrawn: for screen readers, dumb
 * terminals, pipes.
 */
#ifndef TUI_TEXT_MODE_H
#define TUI_TEXT_MODE_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/run/state.h"

/* What was said last of the steps before the first iteration. */
struct text_mode {
	uint8_t step;
	int64_t at_us; /* controller's clock; 0: nothing */
};

/* What a message just applied has to say, without a newline; false: nothing. Control characters
 * in what the controller says become '?'. */
bool text_mode_line(struct text_mode *p, const struct state *s, const struct msg *m, char *out,
		    size_t room);

#endif
