/* view.h - draws the views of the console, and the panels that they share.
 *
 * All functions are pure functions of state and ui, whose clocks are included: the same state and
 * ui give the same picture.
 */
#ifndef TUI_VIEW_H
#define TUI_VIEW_H

#include "tui/screen/layout.h"
#include "tui/screen/glyphs.h"
#include "tui/run/roster.h"
#include "tui/screen/screen.h"
#include "tui/run/state.h"
#include "tui/input/ui.h"

/* Draws the whole screen. */
void view_draw(struct screen *out, const struct state *s, const struct ui *u);

/* Returns the node that a click at (x, y) of a screen of w x h cells selects: in the pipeline panel
 * or on the map; -1: none. */
int view_hit(int w, int h, const struct state *s, const struct ui *u, int x, int y);

/* View 1: the panels of the layout. */
void view_overview(struct screen *out, const struct state *s, const struct ui *u,
		   const struct roster *r, const struct layout *l);

/* View 2: a row for each node; details of the selected node below. */
void view_nodes(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r);
/* View 3: a heat map of the links, and a list of them. */
void view_links(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r);
/* View 5: every microbatch over time, or its chain; details of the selected one below. */
void view_microbatches(struct screen *out, struct rect at, const struct state *s,
		       const struct ui *u);
/* View 6: training and validation loss over iterations. */
void view_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* View 7: the plan in force and candidates, as figures and as two Gantt charts. */
void view_compare(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		  const struct roster *r);
/* View 8: every journal entry; the selected one is marked. */
void view_journal(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);

/* View 9: the map, the path of the selected microbatch, the slowest link and the last collision. */
void view_map(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* Returns the part of view 9 that has the map. */
struct rect view_map_chart(struct rect at);

/* Returns the percentage of [from_us, to_us) that the node's tasks fill. */
int view_busy_percent(const struct state_node *n, int64_t from_us, int64_t to_us);
/* Draws one microbatch's chain in a row. Returns the columns used. */
int view_lane(struct screen *out, int x, int y, int w, const struct state *s,
	      const struct state_flight *f, const struct ui *u, int digits);
/* Draws every microbatch over time below the first row of `at`. Returns false, and draws nothing,
 * if `at` is too small or no task has run. */
bool view_lanes(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* Writes the state of a microbatch, "B n12 0.4s", and returns its style. */
unsigned view_phase(const struct state *s, const struct state_flight *f, int64_t now_us,
		    char text[64]);

/* Each panel fills its rectangle, and its first row is the title. If h < 2 nothing is drawn. */
void panel_header(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* The nodes by stage, each with its current task. */
void panel_pipeline(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u, const struct roster *r);
/* The steps before the first iteration and their progress. */
void panel_start(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		 const struct roster *r);
/* A row for each node, time to the right: past tasks, and planned tasks after now. */
void panel_timeline(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u, const struct roster *r);
/* The moving microbatches, a row for each. */
void panel_motion(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* The followed microbatch's path there and back, and the reason if it waits. */
void panel_follow(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* Collisions, newest first. */
void panel_collisions(struct screen *out, struct rect at, const struct state *s,
		      const struct ui *u);
/* The loss as a curve. */
void panel_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* The nodes at their places in the network, and the microbatches on their way. */
void panel_map(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* The newest iterations: predicted and measured times. */
void panel_receipts(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u);
/* Injected failures, warnings and alerts. */
void panel_alerts(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* The newest journal entries. */
void panel_journal(struct screen *out, struct rect at, const struct state *s,
		   const struct ui *u);
/* One line: the prompt, the message, or the newest journal entry. */
void panel_prompt(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* One line: the most important keys. */
void panel_keys(struct screen *out, struct rect at, const struct state *s, const struct ui *u);

/* Returns the node whose cell in the pipeline panel is at (x, y); -1: none. */
int panel_pipeline_hit(struct rect at, const struct roster *r, const struct ui *u, int x,
		       int y);

/* Returns the node whose marker on the map is at (x, y), or the first node of a region's marker;
 * -1: none. */
int panel_map_hit(struct rect at, const struct state *s, const struct ui *u, int x, int y);

/* Windows above the view. */
void overlay_dialog(struct screen *out, const struct state *s, const struct ui *u);
/* A page of the keys (u->display.help_page). */
void overlay_help(struct screen *out, const struct ui *u);
/* The commands that match the typed text. */
void overlay_palette(struct screen *out, const struct ui *u);

#endif
