/* layout.h - the rectangles of the panels.
 *
 * At any screen size from 1x1, panels do not overlap and stay inside the screen. A panel for which
 * there is no room has h = 0. The first row of a panel is its title.
 */
#ifndef TUI_LAYOUT_H
#define TUI_LAYOUT_H

#include "tui/screen/screen.h"

struct layout {
	/* The screen is smaller than 80x24 and shows only the header, alerts and the selected
	 * node. */
	bool tiny;
	bool wide;          /* there are two columns of panels */
	struct rect header; /* one row or two */
	struct rect pipeline, timeline, motion, collisions, loss, map, receipts, alerts, journal;
	struct rect body; /* area between header and prompt, in which other views are drawn */
	/* Column of the line between the two columns of panels; -1: there is one column. */
	int divider;
	struct rect prompt; /* the line for messages and typed commands */
	struct rect keys;
};

/* Divides a screen of w x h cells. nodes: number of listed nodes; largest: number of nodes in the
 * largest stage; follow: true if the screen has the panel of a followed microbatch. */
void layout_make(struct layout *out, int w, int h, uint32_t nodes, uint32_t largest,
		 bool follow);

#endif
