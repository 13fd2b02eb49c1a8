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

void view_overview(struct screen *out, const struct state *s, const struct ui *u,
		   const struct roster *r, const struct layout *l);

void view_nodes(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r);
void view_links(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r);
void view_microbatches(struct screen *out, struct rect at, const struct state *s,
		       const struct ui *u);
void view_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
void view_compare(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		  const struct roster *r);
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
void panel_pipeline(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u, const struct roster *r);
void panel_start(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		 const struct roster *r);
void panel_timeline(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u, const struct roster *r);
void panel_motion(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
void panel_follow(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
void panel_collisions(struct screen *out, struct rect at, const struct state *s,
		      const struct ui *u);
void panel_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
void panel_receipts(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u);
void panel_alerts(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
void panel_journal(struct screen *out, struct rect at, const struct state *s,
		   const struct ui *u);
void panel_prompt(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
void panel_keys(struct screen *out, struct rect at, const struct state *s, const struct ui *u);

/* The node whose cell of the pipeline panel is at (x, y), -1 none. */
int panel_pipeline_hit(struct rect at, const struct roster *r, const struct ui *u, int x,
		       int y);

/* Above everything. */
void overlay_dialog(struct screen *out, const struct state *s, const struct ui *u);
void overlay_help(struct screen *out, const struct ui *u);
void overlay_palette(struct screen *out, const struct ui *u);

#endif
