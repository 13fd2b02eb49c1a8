/* replan.h - when the planner is asked. */
#ifndef CONTROLLER_PLANNING_REPLAN_H
#define CONTROLLER_PLANNING_REPLAN_H

#include <stdbool.h>

struct planning;
struct plan;

#define REPLAN_QUICK_S 0.06 /* for the first answer to a change, */
#define REPLAN_REFINE_S 1.0 /* and for what refines it */
/* Asks for the first plan, with the assignment free unless it is given, for all that are here. */
void replan_first(struct planning *planning);
/* Asks for a plan for today's replicas, marks and path length; the newest answer wins. */
void replan(struct planning *planning, const char *reason);
/* As replan, but what is in force stays unless the answer is better by a few percent. */
void replan_if_better(struct planning *planning, const char *reason);
/* An answer will come that the next iteration should have */
bool replan_awaited(const struct planning *planning);
/* Once more, with more time, from that plan on; what is found is welcome, not waited for. */
void replan_refine(struct planning *planning, const struct plan *from);
/* Asks what the plain pipeline would take, for consoles to compare with. */
void replan_baseline(struct planning *planning);

#endif
