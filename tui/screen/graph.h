/* graph.h - curves in cells: braille (2 x 4 dots a cell), blocks (1 x 2) or ASCII (1 x 3).
 *
 * A canvas collects dots of two series; where both fall in one cell, the second one's style
 * wins.
 */
#ifndef TUI_GRAPH_H
#define TUI_GRAPH_H

#include "tui/screen/screen.h"
#include "tui/input/ui.h"

struct canvas {
	enum graph graph;
	struct rect at; /* cells */
	int w, h;       /* dots */
	uint8_t *dots;  /* (h, w): 0, or 1 + the series */
};

/* -EINVAL: the rectangle is empty. */
int canvas_open(struct canvas *c, enum graph graph, struct rect at);
void canvas_dot(struct canvas *c, int x, int y, int series); /* y upward from the bottom */
void canvas_line(struct canvas *c, int x0, int y0, int x1, int y1, int series);
/* Puts it on the screen and frees it. styles: of series 0 and 1. */
void canvas_close(struct canvas *c, struct screen *s, const enum style styles[2]);

#endif
