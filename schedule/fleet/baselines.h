/* baselines.h - the division that a person would write down: the same number of layers in each
 * stage, and as equally many nodes. Internal to schedule/fleet/.
 */
#ifndef SCHEDULE_BASELINES_H
#define SCHEDULE_BASELINES_H

#include "schedule/fleet/evaluate.h"

/* Plans equal cuts with a free assignment, by the best search and by DT-FM, for each number of
 * stages. Nodes that cannot hold a stage of the cut are left out. Fills in out->equal and
 * out->dtfm. */
void baselines_plan(struct effort *e, struct choice *out);

#endif
