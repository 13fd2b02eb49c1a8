/* replan.h - sends the run's requests to the planner. */
#ifndef CONTROLLER_PLANNING_REPLAN_H
#define CONTROLLER_PLANNING_REPLAN_H

#include <stdbool.h>

struct member;
struct planning;
struct plan;

#define REPLAN_QUICK_S 0.06 /* seconds for the search for the first answer to a change */
#define REPLAN_REFINE_S 1.0 /* seconds for the search for the improved plan */

/* Asks for the run's first plan, for the nodes that have joined, without marked and isolated ones.
 * In an emulated cluster, whose agents have not joined yet, the plan is for all nodes, or for the
 * MIN that an embedded run starts first (--agents MIN..MAX). The planner also assigns the nodes to
 * stages, unless the operator gave the assignment. */
void replan_first(struct planning *planning);
/* Asks for a plan for the current replicas, marks of failed nodes and path length. A newer request
 * replaces this one. */
void replan(struct planning *planning, const char *reason);
/* Asks for a plan with m, which has become a replica. A spare is taken into the plan only if an
 * iteration becomes shorter, and much shorter if the node failed often. */
void replan_joined(struct planning *planning, const struct member *m);
/* Asks as replan does, but keeps the plan in force unless an answer is better by a few percent.
 * soon: the first answer is needed at once, because the plan in force may have become much
 * worse. */
void replan_if_better(struct planning *planning, const char *reason, bool soon);
/* Asks whether an iteration is shorter with late nodes that wait as spares, unless the newest
 * answer was about this. */
void replan_try_spares(struct planning *planning);
/* Returns true if the next iteration should wait for the first answer to a change, because the
 * answer is expected soon, compared with the length of an iteration. The run never waits for
 * improved plans. */
bool replan_awaited(const struct planning *planning);
/* Asks for a better plan, with more time, and lets the search start from `from`. The run does not
 * wait for the answer. */
void replan_refine(struct planning *planning, const struct plan *from);
/* Asks for a plan of the plain pipeline, so that consoles can show its time beside the run's. */
void replan_baseline(struct planning *planning);

#endif
