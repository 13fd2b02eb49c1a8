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
	/* The request for each search; path_length and skip_share are ignored. With
	 * free_assignment, the search also chooses the one allocation that all phases share in the
	 * plan without moves. */
	struct plan_request search;
	/* The skip schedule, which must have phases; borrowed */
	const struct skip_schedule *schedule;
	uint64_t iterations; /* length of the run, at least 1 */
	/* true: stages that may be skipped start from copies of trained stages when microbatches
	 * begin to visit them. false: they start from the seed. */
	bool stack;
	/* Time to transfer a stage's weights and moments, as a multiple of sync_pair_s. */
	double state_ratio;
};

/* Returns the state_ratio of a cluster in which a gradient is sent with sum_share times the bytes
 * that it has in fp32. A stage's weights and two moments have three times the bytes of its fp32
 * gradient. */
static inline double phase_plans_state_ratio(double sum_share)
{
	return 3 / sum_share;
}

struct phase_plan {
	uint64_t from, iterations; /* first iteration of the phase, and number of iterations */
	uint32_t skip;             /* number of stages that a microbatch skips if it skips any */
	uint32_t share;            /* percent of the microbatches that skip stages; 0: all */
	int microbatches_per_data_node;
	/* The plan, borrowed from the pool. check_plan accepts the plan for a cluster with the
	 * plan's stage sizes and with the microbatches_per_data_node of this struct. */
	const struct plan *plan;
	double seconds; /* seconds of an iteration with its sums */
	/* Number of nodes with another stage than in the previous phase */
	int moves;
	double fetch_s; /* the longest transfer of weights and moments for these nodes */
	/* Time for which the phase waits for the transfer: the part of fetch_s that is left when
	 * the previous phase ends. */
	double delay_s;
};

struct phase_plan_list {
	int n;                                       /* number of phases that the run reaches */
	struct phase_plan phases[SKIP_SCHEDULE_MOST]; /* array of n */
	double total_s;                               /* time of the whole run, including delays */
};

struct phase_plans {
	/* The plans without moves; stages have the sizes of the cluster */
	struct phase_plan_list without_moves;
	struct phase_plan_list with_moves;
	struct allocation_pool *pool; /* opaque, owned: has the plans */
};

/* Chooses the allocations with the least predicted seconds of the whole run, among the allocations
 * that the searches found. On success the caller frees *out with phase_plans_fini. Errors are those
 * of plan_search; the message names the phase. */
int phase_plans_choose(const struct cluster *c, const struct phase_plans_request *q,
		       struct phase_plans *out, struct error *err);
void phase_plans_fini(struct phase_plans *p);

/* Returns the JSON text `skippipe.phases/1`, which the caller frees. NULL: out of memory. */
char *phase_plans_format(const struct phase_plans *p);
/* Returns a table for people, which the caller frees. */
char *phase_plans_table(const struct phase_plans *p);

#endif
