/* branch.h - the what-if: the iteration shown, planned with another skip ratio or without a node.
 * The controller computes the plan; nothing in the run changes.
 *
 * In the past of a live run, exactly the nodes that were absent then are excluded; costs and stages
 * are today's. In a replay everything is as it was at the cursor.
 */
#ifndef TUI_BRANCH_H
#define TUI_BRANCH_H

#include "tui/input/ui.h"

/* Requests a what-if and shows the timeline, in which it will be drawn. skip: ratio of skipped
 * stages; without: the node to exclude; -1: none. */
void branch_ask(struct ui *u, const struct state *s, uint32_t skip, int32_t without);
/* Takes an answer. Returns true if the message was an answer to the request. */
bool branch_take_answer(struct ui *u, const struct state *s, const struct msg *m);
/* Returns to the previous view. */
void branch_leave(struct ui *u);
/* Returns the plan of the what-if; NULL: it has not arrived yet. */
const struct state_plan *branch_plan(const struct ui *u);
/* Writes "WHAT IF skip 3/6 without n09: 28.9s instead of 33.3 (-13%)", or the state of the
 * request. */
void branch_title(const struct ui *u, const struct state *s, char text[128]);
/* Writes the effects of the what-if other than the time, in one line. */
void branch_effects(const struct ui *u, const struct state *s, char text[192]);

#endif
