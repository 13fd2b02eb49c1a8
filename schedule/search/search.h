/* search.h - the one way to a plan: which node in which stage, which path for each microbatch,
 * which order at the nodes, so that the iteration is short.
 *
 * Deterministic for a seed and a number of evaluations; a time budget only cuts the search.
 * Every plan given out has passed check.h and carries its prediction. Thread-safe: no globals;
 * one call may run on a worker thread while others go on elsewhere.
 */
#ifndef SCHEDULE_SEARCH_H
#define SCHEDULE_SEARCH_H

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/format/request.h"

/* 0 and a plan (plan_free); PLAN_INFEASIBLE, PLAN_NOT_FOUND; -EINVAL: the request does not fit
 * the cluster; -ECANCELED: cancelled before there was a plan; -ENOMEM.
 * Where a published method finds no paths, or none in time, its plan has any legal ones; then
 * no evaluations are counted in it. */
int plan_search(const struct cluster *c, const struct plan_request *q, struct plan **out,
		struct error *err);

#endif
