/* feasible.h - can legal paths exist at all, for an assignment? Where links are missing the
 * greedy construction may fail although paths exist; here they are found, or shown not to
 * exist.
 *
 * All ways of each data node are walked, stage by stage; of the ways through one set of stages
 * the cheapest is kept, ascending ones before others. Then every microbatch is given a set so
 * that exposure (CC3) comes out, depth first, sets with the greatest need first. What has
 * failed once is remembered, so the search is complete; it gives up beyond a fixed number of
 * steps. Internal to schedule/.
 */
#ifndef SCHEDULE_FEASIBLE_H
#define SCHEDULE_FEASIBLE_H

#include "schedule/problem/problem.h"

/* 0: legal paths are in s->path. PLAN_INFEASIBLE: there are none, err says why. PLAN_NOT_FOUND:
 * too large to tell. -ENOMEM. s gives the assignment. Paths with exchanged stages may stand
 * still: that is not looked at. */
int feasible_paths(struct solution *s, const struct problem *p, struct error *err);

#endif
