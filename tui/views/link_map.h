/* link_map.h - the heat map of the Links view: which links are slow, by node, region or stage.
 */
#ifndef TUI_LINK_MAP_H
#define TUI_LINK_MAP_H

#include "tui/input/ui.h"
#include "tui/run/link_groups.h"
#include "tui/screen/screen.h"

/* Returns the measure to draw. No transfer is measured before the first iteration, so that the
 * latency takes the place of transfer times until then. */
enum link_measure link_map_measure(const struct state *s, const struct ui *u);

/* Returns true if nothing can be sent over the link. */
bool link_map_is_cut(const struct msg_link *l);
/* Returns the ratio of the measured to the planned transfer time; 0: one of them is unknown. */
float link_map_ratio(const struct msg_link *l);
/* Returns the badness of a link, a number that is larger for a slower link: 0 if it was not
 * measured, INFINITY if the link is cut. By bandwidth the number is in seconds per MB. */
float link_map_badness(const struct state *s, const struct msg_link *l, enum link_measure by);
/* Returns the glyph for a badness ('-' if it is 0, 'X' if it is INFINITY), and its style in
 * *style. */
char link_map_heat(enum link_measure by, float badness, enum style *style);

/* Where the map is drawn: its first row is the heading. */
struct link_map {
	struct rect at;
	int lead, cell;   /* columns that the name of a row takes, and columns that a cell takes */
	bool has_numbers; /* the cells are wide enough for numbers */
};

/* Chooses the map's size. list_least: columns to leave on the right, if possible. */
void link_map_layout(struct link_map *m, struct rect at, const struct link_groups *g,
		     const struct roster *r, const struct state *s, int list_least);
void link_map_draw(const struct link_map *m, struct screen *out, const struct link_groups *g,
		   const struct roster *r, const struct state *s, const struct ui *u);

#endif
