/* Chooses one of twelve colours for a microbatch. If colours tell data nodes apart, a microbatch
 * without a route has no colour, because its data node is unknown. */
#include "tui/screen/colouring.h"

enum { COLOURS = STYLE_MICROBATCH_11 - STYLE_MICROBATCH_0 + 1 };

unsigned colouring_text(enum colouring by, const struct state *s, uint32_t microbatch,
			unsigned by_task)
{
	const struct state_flight *f;

	if (by == COLOUR_TASK)
		return by_task;
	if (by == COLOUR_MICROBATCH)
		return STYLE_MICROBATCH_0 + microbatch % COLOURS;
	f = state_flight(s, microbatch);
	return f ? STYLE_MICROBATCH_0 + f->route.nodes[0] % (unsigned)COLOURS : STYLE_TEXT;
}

unsigned colouring_bar(enum colouring by, const struct state *s, uint32_t microbatch,
		       unsigned by_task)
{
	unsigned style = colouring_text(by, s, microbatch, by_task);

	return by == COLOUR_TASK ? by_task : style | STYLE_REVERSE;
}

const char *colouring_title(enum colouring by)
{
	return by == COLOUR_MICROBATCH  ? ", colours: microbatch"
	       : by == COLOUR_DATA_NODE ? ", colours: data node"
					: "";
}
