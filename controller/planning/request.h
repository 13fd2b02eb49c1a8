/* request.h - what a planner is asked: for whom, with which times, and whether a plan is still of use. */
#ifndef CONTROLLER_PLANNING_REQUEST_H
#define CONTROLLER_PLANNING_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

struct members;
struct run;
struct member;
struct plan;
struct planned;
struct planner_request;

/* Whether it has everybody in the stage that is its place now: else it is no place to start from. */
bool replan_as_pinned(const struct run *run, const struct plan *p);
/* Of those that take part, as measured, without emulation */
void replan_set_times(struct members *members);
bool replan_usable(const struct members *members, const struct planned *p);
bool planned_uses(const struct planned *p, uint16_t node);
uint32_t plan_peak_slots(const struct planned *p);
/* Seconds to ask the planner for: a baseline's own, else these. */
double replan_budget_s(const struct run *run, double best_s);
/* For a plan like today's: who is out into excluded (MSG_NODES), which q borrows. Kind, budget, reason and where to
 * start are the caller's. */
void replan_request(const struct members *members, struct planner_request *q, bool *excluded);
/* What tasks take on a node, into the cluster: as timed, times its pace. */
void drift_set_times(struct run *run, const struct member *m);

#endif
