/* replan.h - sends the run's requests to the planner. */
#ifndef CONTROLLER_PLANNING_REPLAN_H
#define CONTROLLER_PLANNING_REPLAN_H

#include <stdbool.h>

struct member;
struct planning;
struct plan;

#define REPLAN_QUICK_S 0.06 /* seconds for the search for the first answer to a change */
#define REPLAN_REFINE_S 1.0 /* seconds for the search for the improved plan */

/* Requests the run's first plan, for the nodes that have joined and are neither marked nor
 * isolated. In an emulated cluster the agents have not joined yet. The plan is then for all nodes,
 * or for the first MIN nodes of an embedded run (--agents MIN..MAX). The planner also assigns the
 * nodes to stages, unless the operator gave the assignment. */
void replan_first(struct planning *planning);
/* Requests a plan for the current replicas, marks of failed nodes and path length. A newer request
 * replaces this request. */
void replan(struct planning *planning, const char *reason);
/* Requests a plan that may use m, which has become a replica. If m is a spare, the plan uses m
 * only if iterations become shorter. If m failed often, they must become much shorter. */
void replan_joined(struct planning *planning, const struct member *m);
/* Requests a plan as replan does, but keeps the plan in force unless the answer is better by a few
 * percent. soon: the first answer is needed at once, because the plan in force may have become much
 * worse. */
void replan_if_better(struct planning *planning, const char *reason, bool soon);
/* Requests a plan that may use late nodes that wait as spares, in case iterations become shorter.
 * Does nothing if the newest request already permitted spares. */
void replan_try_spares(struct planning *planning);
/* Returns true if the next iteration should wait for the first answer to a change. The run waits
 * only if the answer is expected soon, compared with the length of an iteration. The run never
 * waits for improved plans. */
bool replan_awaited(const struct planning *planning);
/* Requests a better plan, with more time. The search starts from `from`. The run does not wait for
 * the answer. */
void replan_refine(struct planning *planning, const struct plan *from);
/* Requests a plan of the plain pipeline, so that consoles can compare its iteration time with the
 * run's own. */
void replan_baseline(struct planning *planning);

#endif
