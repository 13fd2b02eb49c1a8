/* spread.h - spreads the microbatches of a plan over the sub-networks of the model.
 *
 * The set of stages that a microbatch visits is a sub-network of the model. A plan with a
 * skip_share should train a model that also works without some stages, but the quickest plans often
 * train only two of six sub-networks (docs/convergence.md). */
#ifndef SCHEDULE_SPREAD_H
#define SCHEDULE_SPREAD_H

#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/format/request.h"

/* Replaces *plan by a plan that spreads its microbatches more evenly over the possible
 * sub-networks, and frees the old plan. plan_search must have found *plan for this cluster and
 * request. Nodes keep their stages, and an iteration takes at most 2% longer. Keeps *plan if no
 * such plan is found within the limits of the request. */
void spread_plan(const struct cluster *c, const struct plan_request *q, struct plan **plan);

#endif
