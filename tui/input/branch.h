/* branch.h - the what-if: the iteration on the screen, planned with another skip ratio or without
 * a node.
 *
 * The controller computes the plan, and changes nothing in the run. If the screen shows the past
 * of a live run, the plan excludes the nodes that were absent at that time, but uses the present
 * costs and stages. In a replay, the costs and stages are those of that time, too.
 */
#ifndef TUI_BRANCH_H
#define TUI_BRANCH_H

#include "tui/input/ui.h"

/* Requests a what-if, and shows the view Timeline, where it will be drawn. skip: the skip ratio
 * (skip_share_pack); without: the node to exclude; -1: none. */
void branch_ask(struct ui *u, const struct state *s, uint32_t skip, int32_t without);
/* Handles a message. Returns true if it was the answer to the requested what-if. */
bool branch_take_answer(struct ui *u, const struct state *s, const struct msg *m);
/* Ends the what-if and returns to the view before it. */
void branch_leave(struct ui *u);
/* Returns the plan of the what-if; NULL: the answer has not arrived yet. */
const struct state_plan *branch_plan(const struct ui *u);
/* Writes a title such as "WHAT IF skip 3/6 without n09: 28.9s instead of 33.3 (-13%)". Without an
 * answer, writes the state of the request. */
void branch_title(const struct ui *u, const struct state *s, char text[128]);
/* Writes a line about the effects of the plan of the what-if, other than the change of the
 * iteration's time. If the controller has refused the what-if, writes the controller's reason. */
void branch_effects(const struct ui *u, const struct state *s, char text[192]);

#endif
