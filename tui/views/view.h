/* view.h - draws the views of the console. Equal states and uis, with equal clocks, give equal
 * pictures. */
#ifndef TUI_VIEW_H
#define TUI_VIEW_H

#include "tui/panels/panels.h"
#include "tui/screen/layout.h"
#include "tui/screen/glyphs.h"
#include "tui/run/roster.h"
#include "tui/screen/screen.h"
#include "tui/run/state.h"
#include "tui/input/ui.h"

/* Draws the whole screen. */
void view_draw(struct screen *out, const struct state *s, const struct ui *u);

/* Returns the node at (x, y) on a screen of w x h cells, for a click on the pipeline panel or the
 * map; -1: none. */
int view_hit(int w, int h, const struct state *s, const struct ui *u, int x, int y);

/* Draws view 1: the panels of the layout. */
void view_overview(struct screen *out, const struct state *s, const struct ui *u,
		   const struct roster *r, const struct layout *l);

/* Draws view 1 before the first iteration: the steps of the start and their progress. */
void view_start(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r);
/* Draws view 2: a row for each node, and details of the selected node below. */
void view_nodes(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r);
/* Draws view 3: a heat map and a list of the links. */
void view_links(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r);
/* Draws view 5: each microbatch over time, or as a chain of tasks, and details of the selected one
 * below. */
void view_microbatches(struct screen *out, struct rect at, const struct state *s,
		       const struct ui *u);
/* Draws view 7: the plan in force and the candidates, as a table and as two Gantt charts. */
void view_compare(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		  const struct roster *r);
/* Draws view 8: the journal, with the selected entry marked. */
void view_journal(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);

/* Draws view 9: the map, the path of the selected microbatch, the slowest link and the last
 * collision. */
void view_map(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* Returns the part of view 9 in which the map is drawn. */
struct rect view_map_chart(struct rect at);

/* Draws each microbatch over time, below the first row of `at`. Returns false without drawing if
 * `at` is too small or no task has run. */
bool view_microbatches_wide(struct screen *out, struct rect at, const struct state *s,
			    const struct ui *u);

/* Draws the open dialog over the view. */
void overlay_dialog(struct screen *out, const struct state *s, const struct ui *u);
/* Draws page u->display.help_page of the help. */
void overlay_help(struct screen *out, const struct ui *u);
/* Draws the list of commands that match the typed text. */
void overlay_palette(struct screen *out, const struct ui *u);

#endif
