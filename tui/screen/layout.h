/* layout.h - the rectangles of the panels.
 *
 * Panels never overlap and never leave the screen, at any size from 1x1. A panel without room has
 * h = 0. The first row of a panel is its title.
 */
#ifndef TUI_LAYOUT_H
#define TUI_LAYOUT_H

#include "tui/screen/screen.h"

struct layout {
	/* The screen is below 80x24: it shows header, alerts and the selected node only. */
	bool tiny;
	bool wide;          /* the screen is wide enough for two columns of panels */
	struct rect header; /* rectangle of the header, 1 or 2 rows */
	struct rect pipeline, timeline, motion, collisions, loss, map, receipts, alerts, journal;
	struct rect body;   /* the area between header and prompt, for the other views */
	int divider;        /* column of the line between the two columns; -1: none */
	struct rect prompt; /* the message and command line */
	struct rect keys;
};

/* nodes: number of listed nodes; largest: nodes of the largest stage; follow: a microbatch is
 * followed. */
void layout_make(struct layout *out, int w, int h, uint32_t nodes, uint32_t largest,
		 bool follow);

#endif
