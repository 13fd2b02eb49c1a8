/* graph.h - a canvas for curves. A cell has several dots: 2 x 4 in braille, 1 x 2 in blocks, 1 x
 * 3 in ASCII.
 *
 * The canvas collects the dots of several series. A cell has only one style: the style of the
 * last series that has a dot in the cell.
 */
#ifndef TUI_GRAPH_H
#define TUI_GRAPH_H

#include <stdint.h>

#include "tui/screen/screen.h"

enum graph { GRAPH_BRAILLE, GRAPH_BLOCK, GRAPH_ASCII };

struct canvas {
	enum graph graph;
	struct rect at; /* rectangle of the canvas in cells */
	int w, h;       /* size of the canvas in dots */
	uint8_t *dots;  /* array of (h, w): 0: no dot; otherwise 1 + the series of the dot */
	/* True: series 0 is a background, hidden in cells with dots of other series. */
	bool has_background;
};

/* Opens a canvas over a rectangle of the screen. -EINVAL: the rectangle is empty. */
int canvas_open(struct canvas *c, enum graph graph, struct rect at);
/* Sets a dot of a series. x counts from the left, y from the bottom. */
void canvas_dot(struct canvas *c, int x, int y, int series);
void canvas_line(struct canvas *c, int x0, int y0, int x1, int y1, int series);
/* Draws the canvas on the screen and frees it. styles: one style for each series. */
void canvas_close(struct canvas *c, struct screen *s, const enum style *styles);

#endif
