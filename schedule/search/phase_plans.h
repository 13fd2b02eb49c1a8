/* phase_plans.h - plans a run in which the number of skipped stages changes. Each phase of the skip
 * schedule gets two plans: one in which all nodes keep their stages, and one in which nodes may
 * change their stage between phases.
 *
 * While microbatches skip stages, the nodes of these stages have little to do. A separate
 * allocation for each phase gives these nodes to the visited stages. A node that changes its stage
 * fetches the weights and AdamW moments of its new stage while the previous phase is computed.
 */
#ifndef SCHEDULE_PHASE_PLANS_H
#define SCHEDULE_PHASE_PLANS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/skip_schedule.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/format/request.h"

struct phase_plans_request {
	/* The request of each search; path_length and skip_share are not read. free_assignment: the
	 * allocation that all phases share is free too. */
	struct plan_request search;
	const struct skip_schedule *schedule; /* borrowed; has phases */
	uint64_t iterations;                  /* of the run, at least 1 */
	/* The stages that may be skipped start from trained stages when microbatches
	 * begin to visit them. false: from the seed. */
	bool stack;
	/* Time to transfer a stage's weights and moments, in multiples of sync_pair_s. */
	double state_ratio;
};

/* Returns the state_ratio of a cluster whose sums send sum_share times the bytes of an fp32
 * gradient. A stage's weights and two moments have three times the bytes of its fp32 gradient. */
static inline double phase_plans_state_ratio(double sum_share)
{
	return 3 / sum_share;
}

struct phase_plan {
	uint64_t from, iterations; /* first iteration, and their number */
	uint32_t skip;             /* number of stages that a skipping microbatch skips */
	uint32_t share;            /* percent of the microbatches that skip stages; 0: all */
	int microbatches_per_data_node;
	const struct plan *plan;   /* borrowed from the pool; check it on a cluster with these
				    * stages and microbatches */
	double seconds;            /* seconds of an iteration and its sums */
	int moves;                 /* nodes with another stage than in the phase before */
	double fetch_s;            /* the longest transfer of weights and moments */
	double delay_s;            /* part of fetch_s that exceeds the phase before */
};

struct phase_plan_list {
	int n;                                       /* number of phases that the run reaches */
	struct phase_plan phases[SKIP_SCHEDULE_MOST]; /* (n) */
	double total_s;                              /* the whole run, delays included */
};

struct phase_plans {
	struct phase_plan_list without_moves; /* stages as large as the cluster says */
	struct phase_plan_list with_moves;
	struct allocation_pool *pool; /* owned: owns the plans; opaque */
};

/* Chooses the allocations with the least predicted seconds of the whole run, among those that the
 * searches found. On success the caller frees *out (phase_plans_fini). Errors are those of
 * plan_search; the message names the phase. */
int phase_plans_choose(const struct cluster *c, const struct phase_plans_request *q,
		       struct phase_plans *out, struct error *err);
void phase_plans_fini(struct phase_plans *p);

/* Returns the JSON text `skippipe.phases/1`, to be freed. NULL: out of memory. */
char *phase_plans_format(const struct phase_plans *p);
/* Returns a table for people, to be freed. */
char *phase_plans_table(const struct phase_plans *p);

#endif
