/* turn_plans.h - finds plans that can take turns with a plan: nodes keep their stages, an iteration
 * takes hardly longer, and microbatches visit other sets of stages.
 *
 * The set of stages that a microbatch visits is a sub-network of the model. A run that follows one
 * plan trains the same sub-networks in every iteration. Plans that take turns train more of them.
 */
#ifndef SCHEDULE_TURN_PLANS_H
#define SCHEDULE_TURN_PLANS_H

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/format/request.h"

enum { TURN_PLANS_MOST = 16 };
/* An iteration of each plan, sums included, takes at most this many times as long as the first. */
#define TURN_PLANS_WITHIN 1.02
/* At least this share of the microbatches that skip stages visit sets of stages that another plan
 * visits less often. */
#define TURN_PLANS_DIFFER 0.25

/* Returns the predicted seconds of an iteration and its sums. */
double turn_plans_seconds(const struct plan *p);
/* Returns the number of microbatches whose sets of stages the other plan lacks. If the other plan
 * has a set less often, the difference counts. Both plans have the same stages for each node. */
int turn_plans_differ(const struct plan *p, const struct plan *other);

/* Replaces *plan by a plan whose microbatches are spread more evenly over the possible
 * sub-networks, and frees the old one. Keeps *plan if no such plan is found within the limits of
 * the request and TURN_PLANS_WITHIN, or if the search fails. plan_search calls this for requests
 * with a skip_share: such plans are to train a model that works without some stages, and the
 * quickest plans often train two of six sub-networks (docs/convergence.md). */
void turn_plans_spread(const struct cluster *c, const struct plan_request *q, struct plan **plan);

/* Finds up to n - 1 plans that can take turns with plans[0], which plan_search returned for the
 * same cluster and request. Each search has the limits of the request. Writes them to plans[1] and
 * on (n), and returns how many there are with plans[0]. They are fewer than n if no others were
 * found, or if the search was cancelled. Errors are those of plan_search; the caller then frees
 * plans[0] only. The request needs PLAN_BEST. */
int turn_plans_search(const struct cluster *c, const struct plan_request *q, int n,
		      struct plan **plans, struct error *err);

#endif
