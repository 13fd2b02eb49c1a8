/* view.h - draws what the console shows: one function a view, and the panels they share.
 *
 * Pure functions of state and ui (its clocks included): the same two give the same picture.
 */
#ifndef TUI_VIEW_H
#define TUI_VIEW_H

#include "tui/screen/layout.h"
#include "tui/screen/glyphs.h"
#include "tui/run/roster.h"
#include "tui/screen/screen.h"
#include "tui/run/state.h"
#include "tui/input/ui.h"

/* The whole screen: the view, header, key line, and what lies above them (dialog, help,
 * palette). */
void view_draw(struct screen *out, const struct state *s, const struct ui *u);

/* View 1: panels placed by the layout. */
void view_overview(struct screen *out, const struct state *s, const struct ui *u,
		   const struct roster *r, const struct layout *l);

/* View 2: a row a node, in the roster's order; the selected one in words below. */
void view_nodes(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r);
/* View 3: a heat map of links, and those of the selected node in rows. */
void view_links(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r);
/* View 5: every microbatch's chain; the followed one in full below. */
void view_microbatches(struct screen *out, struct rect at, const struct state *s,
		       const struct ui *u);
/* View 6: training and validation loss over iterations. */
void view_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* View 7: the live plan beside candidates, in figures and as two Gantt charts. */
void view_compare(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		  const struct roster *r);
/* View 8: every note, the chosen one marked. */
void view_journal(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);

/* How much of [from, to) the node's tasks fill, in percent. */
int view_busy_percent(const struct state_node *n, int64_t from_us, int64_t to_us);
/* One microbatch's chain on one row. Returns the columns taken. */
int view_lane(struct screen *out, int x, int y, int w, const struct state *s,
	      const struct state_flight *f, int64_t now_us, int digits);

/* Each fills the rectangle; the first row is its title. h < 2: nothing is drawn. */
void panel_header(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* The nodes by stage, each with what it does now. */
void panel_pipeline(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u, const struct roster *r);
/* The steps before the first iteration, and how far each node is. */
void panel_start(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		 const struct roster *r);
/* A row a node, time to the right: tasks that ran, and ahead of now those planned. */
void panel_timeline(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u, const struct roster *r);
/* Microbatches under way, a row each. */
void panel_motion(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* The followed microbatch's path there and back, and why it waits. */
void panel_follow(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* Who waited for whom, the newest first. */
void panel_collisions(struct screen *out, struct rect at, const struct state *s,
		      const struct ui *u);
/* The loss as a curve. */
void panel_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* The newest commands and what became of them. */
void panel_receipts(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u);
/* Injected failures and notes that are not acknowledged. */
void panel_alerts(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* Notes, the newest first, as many as fit. */
void panel_journal(struct screen *out, struct rect at, const struct state *s,
		   const struct ui *u);
/* One line: what is typed, the message, or the newest note. */
void panel_prompt(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* One line: the keys that do something here. */
void panel_keys(struct screen *out, struct rect at, const struct state *s, const struct ui *u);

/* The node whose cell of the pipeline panel is at (x, y), -1 none. */
int panel_pipeline_hit(struct rect at, const struct roster *r, const struct ui *u, int x,
		       int y);

/* Above everything. */
void overlay_dialog(struct screen *out, const struct state *s, const struct ui *u);
/* A page of the keys (u->display.help_page). */
void overlay_help(struct screen *out, const struct ui *u);
/* The commands that match what is typed. */
void overlay_palette(struct screen *out, const struct ui *u);

#endif
