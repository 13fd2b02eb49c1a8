/* map_spots.h - finds free cells for the markers and labels of a map.
 *
 * Many nodes are at the same place, but their markers must not cover each other. Each marker takes
 * the free cells nearest to its point. The same points always give the same cells, so that markers
 * do not jump.
 */
#ifndef TUI_MAP_SPOTS_H
#define TUI_MAP_SPOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tui/run/embedding.h"
#include "tui/screen/screen.h"

/* The map's rectangle on the screen, and which of its cells are taken. */
struct map_spots {
	struct rect at;
	/* Array of (h, w). 0: the cell is free. Otherwise, the group of the marker there, plus 1;
	 * the sum is at most 255. */
	uint8_t *taken;
};

/* Marks all cells as free. map_spots_fini frees the memory. */
void map_spots_init(struct map_spots *m, struct rect at);
void map_spots_fini(struct map_spots *m);

/* Sets x and y of n markers, whose w and h are given. If there is room, markers of different groups
 * are at least a row apart. A marker for which there is no room gets w = 0. */
void map_spots_place(struct map_spots *m, struct rect *markers, const struct point *points,
		     const uint8_t *groups, uint32_t n);
/* If the cells of r are inside the rectangle and free, and the columns left and right of r are free
 * too, takes the cells of r and returns true. Otherwise returns false. */
bool map_spots_take(struct map_spots *m, struct rect r);

#endif
