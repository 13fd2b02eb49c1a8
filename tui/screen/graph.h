/* graph.h - curves in cells: braille (2 x 4 dots in a cell), blocks (1 x 2) or ASCII (1 x 3).
 *
 * A canvas collects the dots of several series. In a cell with dots of several, the style of
 * the last one wins.
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
	uint8_t *dots;  /* array of (h, w): 0 for an empty dot, else 1 + the series */
	/* Dots of series 0 are hidden in cells that have dots of other series */
	bool has_background;
};

/* Opens a canvas. -EINVAL: the rectangle is empty. */
int canvas_open(struct canvas *c, enum graph graph, struct rect at);
/* Sets a dot. y counts upward from the bottom. */
void canvas_dot(struct canvas *c, int x, int y, int series);
void canvas_line(struct canvas *c, int x0, int y0, int x1, int y1, int series);
/* Draws the dots on the screen and frees the canvas. styles: the style of each series. */
void canvas_close(struct canvas *c, struct screen *s, const enum style *styles);

#endif
