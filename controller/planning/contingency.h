/* contingency.h - plans made ahead of a loss or a change of the skip ratio. */
#ifndef CONTROLLER_PLANNING_CONTINGENCY_H
#define CONTROLLER_PLANNING_CONTINGENCY_H

#include <stdbool.h>

struct planning;
struct error;
struct member;
struct plan;
struct planner_request;

/* Returns the plan from which a search should start: the plan made ahead for exactly this case, or
 * else the plan in force. NULL: neither plan fits, and the search starts from nothing. Borrowed. */
const struct plan *replan_from(const struct planning *planning, const struct planner_request *q);
int contingency_start(struct planning *planning, struct error *err);
void contingency_stop(struct planning *planning);
/* Takes the planner's answers, and requests the next plan ahead */
void contingency_turn(struct planning *planning);
/* Returns the planned seconds of an iteration if this replica were lost now. < 0: no plan exists
 * without the replica. 0: unknown. While the plan in force is not usable, the result is always 0,
 * because the time could not be compared with that plan's time. */
double contingency_lost_s(const struct planning *planning, const struct member *m);

#endif
