/* panels.h - draws the panels of which views consist. Equal states and uis, with equal clocks, give
 * equal pictures. */
#ifndef TUI_PANELS_H
#define TUI_PANELS_H

#include "tui/input/ui.h"
#include "tui/run/roster.h"
#include "tui/run/state.h"
#include "tui/screen/glyphs.h"
#include "tui/screen/screen.h"

/* Draw one panel each. A panel fills the rectangle `at`; its first row is the title. If at.h < 2,
 * nothing is drawn. */
void panel_header(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* Draws the nodes by stage, each with its current task. */
void panel_pipeline(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u, const struct roster *r);
/* Draws a row for each node over time: past tasks, then planned tasks right of the present time. */
void panel_timeline(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u, const struct roster *r);
/* Draws the moving microbatches, each in a row. */
void panel_motion(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* Draws the path of the followed microbatch, forward and back, and the reason if the microbatch
 * waits. */
void panel_follow(struct screen *out, struct rect at, const struct state *s,
		  const struct ui *u);
/* Draws the collisions, the newest first. */
void panel_collisions(struct screen *out, struct rect at, const struct state *s,
		      const struct ui *u);
/* Draws the loss as a curve. */
void panel_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* Draws the nodes where latencies place them, and microbatches that travel between them. */
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
/* Returns false if the action changes the run and the screen shows a recorded run. Such a run
 * cannot be changed, so no panel may show the key of the action. */
bool panel_offers(const struct state *s, const struct ui *u, enum action a);
/* Draws one line with the most important keys. */
void panel_keys(struct screen *out, struct rect at, const struct state *s, const struct ui *u);

/* Returns the node whose cell in the pipeline panel is at (x, y); -1 if there is none. */
int panel_pipeline_hit(struct rect at, const struct roster *r, const struct ui *u, int x,
		       int y);

/* Returns the node whose marker on the map is at (x, y). If the marker is a region's, returns its
 * first node. -1: no marker is there. */
int panel_map_hit(struct rect at, const struct state *s, const struct ui *u, int x, int y);

/* Draws view 6: training and validation loss over iterations, as the whole view. */
void panel_losses(struct screen *out, struct rect at, const struct state *s, const struct ui *u);
/* Draws all tasks of one microbatch in a row. Returns the number of columns used. */
int panel_chain(struct screen *out, int x, int y, int w, const struct state *s,
	       const struct state_flight *f, const struct ui *u, int digits);
/* Writes the state of a microbatch, such as "B n12 0.4s", and returns the style for it. */
unsigned panel_phase(const struct state *s, const struct state_flight *f, int64_t now_us,
		     char text[64]);

#endif
