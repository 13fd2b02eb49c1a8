/* map_chart.h - the map while it is drawn: markers, lines and labels. */
#ifndef TUI_MAP_CHART_H
#define TUI_MAP_CHART_H

#include "tui/input/ui.h"
#include "tui/panels/map_spots.h"
#include "tui/run/map.h"
#include "tui/run/state.h"
#include "tui/screen/graph.h"
#include "tui/screen/screen.h"

enum { CHART_COLOURS = STYLE_MICROBATCH_11 - STYLE_MICROBATCH_0 + 1 };

/* Kinds of lines; later kinds are drawn over earlier ones. */
enum line {
	LINE_HULL,
	LINE_TRAVEL,
	LINE_MICROBATCH, /* path of a microbatch, in one of twelve colours */
	LINE_PATH = LINE_MICROBATCH + CHART_COLOURS,
	LINE_SLOW,
	LINE_CUT,
	LINES
};

struct chart {
	struct screen *out;
	struct rect at;
	const struct state *s;
	const struct ui *u;
	const struct map *m;
	struct canvas canvas;
	struct map_spots spots;
	/* Markers of the nodes, by map_index; with by_region, markers of the regions */
	struct rect marker[MAP_NODES];
	uint32_t n;
	bool by_region;
	bool full;     /* markers are wide enough for the node's task */
	bool has_path; /* the path of the selected microbatch is drawn */
	bool numbered; /* travelling microbatches are shown with their numbers */
	int digits;
	enum style styles[LINES];
};

/* A position on the chart, in cells. */
struct spot {
	float x, y;
};

/* Returns the marker of a node or of its region; NULL: the map does not show it. */
const struct rect *chart_marker(const struct chart *c, uint16_t node);
/* Returns the position of the marker to which lines are drawn. */
struct spot chart_middle(const struct chart *c, const struct rect *r);
/* Draws a line of which every `gap`th dot is visible. */
void chart_stroke(struct chart *c, struct spot a, struct spot b, enum line line, int gap);
/* Writes a text in free cells near `at`. Draws nothing and returns false if there is no room. */
bool chart_label(struct chart *c, struct spot at, unsigned style, const char *text);
/* Draws a line between two nodes (chart_connect), and writes a text at the middle of their link
 * (chart_label_link). */
void chart_connect(struct chart *c, uint16_t from, uint16_t to, enum line line, int gap);
void chart_label_link(struct chart *c, uint16_t from, uint16_t to, enum style style,
		      const char *text);
/* Draws a dotted line around the nodes of a region (chart_hull), and writes its name near them
 * (chart_name). */
void chart_hull(struct chart *c, uint32_t region);
void chart_name(struct chart *c, uint32_t region);
/* Returns the selected microbatch; NULL: the plan has no microbatch with this number. */
const struct state_flight *chart_chosen(const struct chart *c);

#endif
