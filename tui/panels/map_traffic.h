/* map_traffic.h - the microbatches on the map, the selected path, slow and cut links.
 */
#ifndef TUI_MAP_TRAFFIC_H
#define TUI_MAP_TRAFFIC_H

#include "tui/panels/map_chart.h"

/* Draws lines: the tails of travelling microbatches, the selected path, slow and cut links. */
void traffic_lines(struct chart *c);
/* Write the numbers of microbatches and links, and the times of the selected path's transfers. */
void traffic_numbers(struct chart *c);
void traffic_times(struct chart *c);

#endif
