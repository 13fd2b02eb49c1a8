/* request.h - fills in requests to the planner, and checks whether a plan still fits the run. */
#ifndef CONTROLLER_PLANNING_REQUEST_H
#define CONTROLLER_PLANNING_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

struct planner;
struct members;
struct run;
struct member;
struct plan;
struct planned;
struct planner_request;

/* Returns true if the plan gives every node the stage in `stages`, which has n_nodes entries.
 * NULL: the present stages. If the function returns false, a search must not start from the
 * plan. */
bool replan_as_pinned(const struct run *run, const struct plan *p, const int *stages);
/* Without emulation, sets the replicas' compute times in the cluster to those measured on their
 * devices. */
void replan_set_times(struct members *members);
/* Returns true if the plan can run now: each node is an unmarked replica of its planned stage, and
 * no path uses a failed link. */
bool replan_usable(const struct members *members, const struct planned *p);
/* Returns true if replan_usable would be true with these stages of the nodes. stages: array of
 * n_nodes; NULL: the present stages. */
bool replan_usable_at(const struct members *members, const struct planned *p, const int *stages);
/* Returns true if the plan assigns the node to a stage. p may be NULL. */
bool planned_uses(const struct planned *p, uint16_t node);
/* Returns the most activation slots that any node needs at one time in the plan. */
uint32_t plan_peak_slots(const struct planned *p);
/* Asks the planner for a plan. Adapts the transfer times to the formats in the request. Returns the
 * request's number. */
uint64_t replan_send(const struct members *members, struct planner *planner,
		     const struct planner_request *q);
/* Returns the seconds for a search: best_s for PLAN_BEST, --budget for a baseline. */
double replan_budget_s(const struct run *run, double best_s);
/* Fills in a request for the run's current replicas, marks of failed nodes and path length. Sets
 * `excluded`, an array of MSG_NODES that q borrows, to true for the nodes to exclude. The caller
 * sets the fields from, budget_s and reason. */
void replan_request(const struct members *members, struct planner_request *q, bool *excluded);
/* Sets m's compute times in the cluster to the times measured while m computed alone on its
 * machine, multiplied by m's pace. */
void drift_set_times(struct run *run, const struct member *m);

#endif
