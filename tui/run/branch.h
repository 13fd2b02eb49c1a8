/* branch.h - what if: the iteration that is shown, as it would have been planned with another
 * skip ratio or without a node. The controller plans it; nothing in the run changes.
 *
 * Over a past moment of a live run the nodes that were away then, and only those, are left out;
 * costs and stages are today's. In a replay all of it is as it was at the cursor.
 */
#ifndef TUI_BRANCH_H
#define TUI_BRANCH_H

#include "tui/input/ui.h"

/* skip: stages; without: a node, -1 none. Shows the timeline, where the answer will stand. */
void branch_ask(struct ui *u, const struct state *s, uint32_t skip, int32_t without);
/* Takes the answer; true when the message was one. */
bool branch_heard(struct ui *u, const struct state *s, const struct msg *m);
/* Back to the view before the question. */
void branch_leave(struct ui *u);
/* The plan, once it is there. */
const struct state_plan *branch_plan(const struct ui *u);
/* "skip 3/6 without n09: 28.9s instead of 33.3 (-13%)", or how it stands. */
void branch_title(const struct ui *u, const struct state *s, char text[128]);
/* What else would change, in a line. */
void branch_effects(const struct ui *u, const struct state *s, char text[192]);

#endif
