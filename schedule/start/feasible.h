/* feasible.h - finds legal paths for an assignment, or proves that none exist. If links are
 * missing, the greedy construction (construct.h) can fail although paths exist.
 *
 * The search enumerates the routes of each data node, stage by stage. Of the routes through the
 * same set of stages it keeps the cheapest, and prefers ascending routes. Then it gives every
 * microbatch a set of stages such that exposure (CC3) is equal: depth first, the most urgent set
 * first. States that failed are remembered, so that no state is tried twice. The search gives up
 * after a fixed number of steps. Internal to schedule/. */
#ifndef SCHEDULE_FEASIBLE_H
#define SCHEDULE_FEASIBLE_H

#include "schedule/problem/problem.h"

/* s gives the assignment and gets the paths. PLAN_INFEASIBLE: there are none, and err says why.
 * PLAN_NOT_FOUND: the cluster is too large to decide. Paths with exchanged stages can come to a
 * standstill; this function does not check for that. */
int feasible_paths(struct solution *s, const struct problem *p, struct error *err);

#endif
