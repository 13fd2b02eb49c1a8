/* search.h - finds a plan with a short iteration: a stage for every node and a path for every
 * microbatch.
 *
 * The result is determined by the seed and the number of evaluations; a time budget only ends the
 * search early. Every plan returned has passed check.h and carries its prediction. Thread-safe:
 * calls on different threads do not share state.
 */
#ifndef SCHEDULE_SEARCH_H
#define SCHEDULE_SEARCH_H

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/format/request.h"

/* On success *out is a plan, to be freed with plan_free. PLAN_INFEASIBLE, PLAN_NOT_FOUND: see
 * request.h. -EINVAL: the request does not fit the cluster. -ECANCELED: cancelled before there was
 * a plan. If a published method finds no paths, or none in time, the plan has arbitrary legal paths
 * instead, and 0 as its number of evaluations. */
int plan_search(const struct cluster *c, const struct plan_request *q, struct plan **out,
		struct error *err);

#endif
