/* contingency.h - plans made ahead. */
#ifndef CONTROLLER_PLANNING_CONTINGENCY_H
#define CONTROLLER_PLANNING_CONTINGENCY_H

#include <stdbool.h>

struct planning;
struct error;
struct member;
struct plan;
struct planner_request;

/* Where to start: what was made ahead for just this, or the plan in force; NULL: from nothing. Borrowed. */
const struct plan *replan_from(const struct planning *planning, const struct planner_request *q);
int contingency_start(struct planning *planning, struct error *err);
void contingency_stop(struct planning *planning);
void contingency_turn(struct planning *planning); /* takes an answer, asks for the next */
/* Plan seconds of an iteration if this replica were lost now; < 0: there is no plan without it; 0:
 * not known, or the plan in force, to compare with, is not usable any more. */
double contingency_lost_s(const struct planning *planning, const struct member *m);

#endif
