/* map_traffic.h - the microbatches on the map, the selected path, slow and cut links.
 */
#ifndef TUI_MAP_TRAFFIC_H
#define TUI_MAP_TRAFFIC_H

#include "tui/panels/map_chart.h"

/* Draws the tails of travelling microbatches, slow and cut links and, for `path`, the selected
 * microbatch's path. */
void traffic_lines(struct chart *c, bool path);
/* Write the numbers of microbatches and links, and the times of the selected path's transfers. */
void traffic_numbers(struct chart *c);
void traffic_times(struct chart *c);

#endif
