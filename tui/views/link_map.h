/* link_map.h - the heat map of the Links view. It shows which links are slow, between nodes,
 * regions or stages. */
#ifndef TUI_LINK_MAP_H
#define TUI_LINK_MAP_H

#include "tui/input/ui.h"
#include "tui/run/link_groups.h"
#include "tui/screen/screen.h"

/* Returns the measure that the map shows. Before the first iteration no transfer is measured, so
 * the map shows latencies instead of transfer times. */
enum link_measure link_map_measure(const struct state *s, const struct ui *u);

/* Returns true if the link is cut: nothing arrives over it. */
bool link_map_is_cut(const struct msg_link *l);
/* Returns the ratio of the measured to the planned transfer time; 0: at least one of them is
 * unknown. */
float link_map_ratio(const struct msg_link *l);
/* Returns a number that is larger for a slower link. 0: the link was not measured. INFINITY: the
 * link is cut. For LINK_BY_PLAN the number is a ratio, for LINK_BY_LATENCY it is in seconds, and
 * for LINK_BY_BANDWIDTH in seconds per MB. */
float link_map_badness(const struct state *s, const struct msg_link *l, enum link_measure by);
/* Returns the character for a badness, '-' for 0 and 'X' for INFINITY, and sets *style. */
char link_map_heat(enum link_measure by, float badness, enum style *style);

/* Size of the map; the first row of `at` is the heading. */
struct link_map {
	struct rect at;
	int lead, cell;   /* width of a row's name; width of a cell */
	bool has_numbers; /* the cells are wide enough for numbers */
};

/* Chooses the map's size. list_least: width that the map should leave for the list on its right. */
void link_map_layout(struct link_map *m, struct rect at, const struct link_groups *g,
		     const struct roster *r, const struct state *s, int list_least);
void link_map_draw(const struct link_map *m, struct screen *out, const struct link_groups *g,
		   const struct roster *r, const struct state *s, const struct ui *u);

#endif
