/* colouring.h - the colours of microbatches in every view. By its colour, an operator's eye follows
 * a microbatch over nodes, links and time. Microbatches of the same colour differ by their numbers.
 *
 * Each theme has twelve colours for microbatches. People with any colour vision deficiency can tell
 * these colours apart, above all the colours of microbatches with neighbouring numbers. The
 * operator chooses what the colours tell apart: kinds of tasks, microbatches, or the data nodes of
 * microbatches.
 */
#ifndef TUI_COLOURING_H
#define TUI_COLOURING_H

#include "tui/run/state.h"
#include "tui/screen/screen.h"

/* The property that colours tell apart. */
enum colouring { COLOUR_TASK, COLOUR_MICROBATCH, COLOUR_DATA_NODE, COLOURINGS };

/* Return the style of text about a microbatch, and the style of its bar, which has the colour as
 * background. by_task: the style to use if colours tell kinds of tasks apart. */
unsigned colouring_text(enum colouring by, const struct state *s, uint32_t microbatch,
			unsigned by_task);
unsigned colouring_bar(enum colouring by, const struct state *s, uint32_t microbatch,
		       unsigned by_task);

/* Returns a text for a title that says what colours tell apart: ", colours: microbatch"; "" for
 * kinds of tasks. */
const char *colouring_title(enum colouring by);

#endif
