/* request.h - what a planner is asked: for whom, with which times, and whether a plan is still of use. */
#ifndef CONTROLLER_PLANNING_REQUEST_H
#define CONTROLLER_PLANNING_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

struct controller;
struct member;
struct plan;
struct planned;
struct planner_request;

/* Whether it has everybody in the stage that is its place now: else it is no place to start from. */
bool replan_as_pinned(const struct controller *c, const struct plan *p);
void replan_set_times(struct controller *c); /* of those that take part, as measured, without emulation */
bool replan_usable(const struct controller *c, const struct planned *p);
bool planned_uses(const struct planned *p, uint16_t node);
uint32_t plan_peak_slots(const struct planned *p);
/* Seconds to ask the planner for: a baseline's own, else these. */
double replan_budget_s(const struct controller *c, double best_s);
/* For a plan like today's: who is out into excluded (MSG_NODES), which q borrows. Kind, budget, reason and where to
 * start are the caller's. */
void replan_request(const struct controller *c, struct planner_request *q, bool *excluded);
/* What tasks take on a node, into the cluster: as timed, times its pace. */
void drift_set_times(struct controller *c, const struct member *m);

#endif
