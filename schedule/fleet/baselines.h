/* baselines.h - the division that a person would choose without a planner: the same number of
 * layers in each stage, and as equally many nodes. Internal to schedule/fleet/. */
#ifndef SCHEDULE_BASELINES_H
#define SCHEDULE_BASELINES_H

#include "schedule/fleet/evaluate.h"

/* For each number of stages, plans an equal cut with a free assignment, once with the best search
 * and once with DT-FM. Nodes that cannot hold a stage of the cut are left out. Fills in out->equal
 * and out->dtfm. */
void baselines_plan(struct effort *e, struct choice *out);

#endif
