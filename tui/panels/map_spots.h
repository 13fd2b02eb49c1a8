/* map_spots.h - finds free cells for the markers and labels of a map.
 *
 * Many nodes are at the same place in the network, but their markers must not cover each other.
 * A marker is therefore at the free cells nearest to its point. The same points give the same
 * cells, so that markers stand still.
 */
#ifndef TUI_MAP_SPOTS_H
#define TUI_MAP_SPOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tui/run/embedding.h"
#include "tui/screen/screen.h"

/* The cells of a rectangle of the screen that are taken. */
struct map_spots {
	struct rect at;
	/* array of (h, w): 0 for a free cell, else 1 + the group of the marker there, at most
	 * 255 */
	uint8_t *taken;
};

/* map_spots_fini frees it. */
void map_spots_init(struct map_spots *m, struct rect at);
void map_spots_fini(struct map_spots *m);

/* Chooses x and y of n markers, whose w and h are given. Markers of different groups stay a row
 * apart if there is room. A marker without room has w = 0. */
void map_spots_place(struct map_spots *m, struct rect *markers, const struct point *points,
		     const uint8_t *groups, uint32_t n);
/* Takes the cells and returns true, if they are inside the rectangle and free, and so are the
 * columns left and right of them. */
bool map_spots_take(struct map_spots *m, struct rect r);

#endif
