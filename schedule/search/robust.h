/* robust.h - plans that stay short when tasks and transfers do not keep to their times.
 *
 * robust_search makes the best plan for the planned times first, then anneals its paths over the
 * mean iteration of samples of jitter.h, the same ones for every candidate; the assignment stays
 * as the first plan has it, and nodes go first come, first served, since an order made for exact
 * times is the first thing that noise spoils. What is predicted comes from samples that the search
 * has not seen.
 */
#ifndef SCHEDULE_ROBUST_H
#define SCHEDULE_ROBUST_H

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/search/search.h"

/* plan_search for a request with jitter > 0 and a limit. */
int robust_search(const struct cluster *c, const struct plan_request *q, struct plan **out,
		  struct error *err);

/* Of the samples that come to an end: iteration_s on average, and what 95 of 100 stay below. */
struct robust_outcome {
	double mean_s, p95_s;
	int standstills; /* samples that do not end */
};

/* Tries the plan on so many samples. -EINVAL, -ENOMEM as simulate(). */
int robust_expect(const struct cluster *c, const struct plan *p, double jitter, uint64_t seed,
		  int samples, struct robust_outcome *out, struct error *err);

#endif
