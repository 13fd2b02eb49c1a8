/* baselines.h - plans the division that a person would choose without a planner: all stages have
 * the same number of layers and, as nearly as possible, the same number of nodes. Internal to
 * schedule/fleet/. */
#ifndef SCHEDULE_BASELINES_H
#define SCHEDULE_BASELINES_H

#include "schedule/fleet/evaluate.h"

/* For each number of stages, plans an equal cut with a free assignment, once with PLAN_BEST and
 * once with PLAN_DTFM (DT-FM). Leaves out nodes that cannot hold the stages of the cut. Stores the
 * best candidate of each algorithm in out->equal and out->dtfm. */
void baselines_plan(struct effort *e, struct choice *out);

#endif
