/* colouring.h - the colours of microbatches in every view. The eye follows a microbatch over nodes,
 * links and time by its colour, and tells it from the others of its colour by its number.
 *
 * There are twelve colours. Each theme has twelve colours that people with any colour vision
 * deficiency can tell apart, especially those of neighbouring numbers. The operator chooses what
 * they tell apart: kinds of tasks, microbatches, or the data nodes of microbatches. */
#ifndef TUI_COLOURING_H
#define TUI_COLOURING_H

#include "tui/run/state.h"
#include "tui/screen/screen.h"

/* The property that the colours of tasks tell apart. */
enum colouring { COLOUR_TASK, COLOUR_MICROBATCH, COLOUR_DATA_NODE, COLOURINGS };

/* Return the style of a microbatch's text and of its bar, which has the colour as background.
 * by_task: the style while colours tell kinds of tasks apart. */
unsigned colouring_text(enum colouring by, const struct state *s, uint32_t microbatch,
			unsigned by_task);
unsigned colouring_bar(enum colouring by, const struct state *s, uint32_t microbatch,
		       unsigned by_task);

/* Returns what the colours tell apart, for a title: ", colours: microbatch"; "" for tasks. */
const char *colouring_title(enum colouring by);

#endif
