/* panels.h - draws the panels of which views are made. The same state and ui, whose clocks are
 * included, give the same picture.
 */
#ifndef TUI_PANELS_H
#define TUI_PANELS_H

#include "tui/input/ui.h"
#include "tui/run/roster.h"
#include "tui/run/state.h"
#include "tui/screen/glyphs.h"
#include "tui/screen/screen.h"

/* Draw the panels. Each fills its rectangle, whose first row is the title. If h < 2, nothing is
 * drawn. */
void panel_header(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* Draws the nodes by stage, each with its current task. */
void panel_pipeline(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u, const struct roster *r);
/* Draws a row for each node, with time to the right: past tasks, and planned tasks after the
 * present time. */
void panel_timeline(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u, const struct roster *r);
/* Draws the moving microbatches, each in a row. */
void panel_motion(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* Draws the path of the followed microbatch, there and back, and the reason if it waits. */
void panel_follow(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* Draws the collisions, the newest first. */
void panel_collisions(struct screen *out, struct rect at, const struct state *s,
		      const struct ui *u);
/* Draws the loss as a curve. */
void panel_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* Draws the nodes at their places in the network, and the microbatches on their way. */
void panel_map(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* Draws the predicted and measured times of the newest iterations. */
void panel_receipts(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u);
/* Draws injected failures, warnings and alerts. */
void panel_alerts(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* Draws the newest journal entries. */
void panel_journal(struct screen *out, struct rect at, const struct state *s,
		   const struct ui *u);
/* Draws one line: the prompt, the message, or the newest journal entry. */
void panel_prompt(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* Draws one line with the most important keys. */
void panel_keys(struct screen *out, struct rect at, const struct state *s, const struct ui *u);

/* Returns the node whose cell in the pipeline panel is at (x, y); -1: none. */
int panel_pipeline_hit(struct rect at, const struct roster *r, const struct ui *u, int x,
		       int y);

/* Returns the node whose marker on the map is at (x, y), or the first node of a region's marker;
 * -1: none. */
int panel_map_hit(struct rect at, const struct state *s, const struct ui *u, int x, int y);

/* Draws the whole view 6: training and validation loss over iterations. */
void panel_losses(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* Draws one microbatch's chain in a row. Returns the columns used. */
int panel_chain(struct screen *out, int x, int y, int w, const struct state *s,
	       const struct state_flight *f, const struct ui *u, int digits);
/* Writes the state of a microbatch, "B n12 0.4s", and returns its style. */
unsigned panel_phase(const struct state *s, const struct state_flight *f, int64_t now_us,
		     char text[64]);

#endif
