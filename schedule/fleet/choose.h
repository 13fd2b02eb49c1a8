/* choose.h - chooses how a fleet trains a model: the number of stages, the layers and nodes of
 * each stage, the nodes that are left out, the size of microbatches, and the formats of tensors.
 *
 * Candidates come from a rough estimate (division.h). The most promising candidates are planned
 * with the search that runs use (plan_search). In successive halving, candidates that stay among
 * the best get more and more evaluations. The best ones are then improved by single changes.
 * Every reported time belongs to a plan that plan_search has found and checked, and includes the
 * sums of gradients.
 *
 * The seed and the work determine the choice; a budget in seconds only ends it early. The number
 * of threads does not change the choice. */
#ifndef SCHEDULE_CHOOSE_H
#define SCHEDULE_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/fleet/candidate.h"
#include "schedule/fleet/division.h"

struct choose_request {
	struct candidate_frame frame;
	struct aim aim;
	int n_stages;       /* wanted number of stages; 0: any number */
	bool has_baselines; /* equal cuts, also with DT-FM, are planned for comparison */
	int64_t work;       /* limit of the work; 0: the default for the size of the fleet */
	int threads;
	double budget_s; /* time limit in seconds; 0: none */
	/* Clock in microseconds that never goes back; NULL: no clock, and budget_s must be 0. */
	int64_t (*clock_us)(void *);
	void *clock_arg;
	/* Called on the caller's thread from time to time, with the share of the work that is done
	 * and the best candidate so far (NULL: none yet). NULL: no reports are wanted. */
	void (*on_progress)(void *arg, double done, const struct candidate *best);
	void *on_progress_arg;
};

enum { CHOICE_MOST = 12 };

/* A node that the best candidate leaves out, and the reason */
struct choice_left_out {
	int node;
	/* Bytes of memory that the node lacks to hold one layer of a stage other than 0; 0: it has
	 * enough. */
	double missing_bytes;
	/* The best candidate's cost with this node, relative to the cost without it: 1.03 is 3%
	 * more. INFINITY: no stage of the candidate fits into the node's memory, or the limit of
	 * the price does not allow the node. */
	double cost_with;
	int stage; /* stage in which the node would increase the cost the least */
};

struct choice {
	int n;
	struct candidate list[CHOICE_MOST]; /* array of n, the best first */
	/* With has_baselines: the best equal cut that PLAN_BEST found, and the best equal cut that
	 * PLAN_DTFM found. A candidate's plan is NULL if its algorithm found no plan. */
	struct candidate equal, dtfm;
	int n_left_out;
	/* Array of n_left_out, owned: one entry for each group of similar nodes (groups.h). */
	struct choice_left_out *left_out;
	int64_t evaluated;                /* number of candidates that were planned */
};

/* PLAN_INFEASIBLE: the fleet cannot hold the model; the message says what is missing, and where.
 * PLAN_NOT_FOUND: no candidate has a plan within the limits. -EINVAL: a price is missing. On
 * success the caller frees *out with choice_fini. */
int choose(const struct choose_request *q, struct choice *out, struct error *err);
void choice_fini(struct choice *c);
/* Replaces out->left_out by the nodes that out->list[rank] leaves out, with the reasons. */
void choose_explain(const struct choose_request *q, struct choice *out, int rank);

/* Returns the cost by which candidates are compared: seconds, or the price of an iteration.
 * INFINITY: there is no plan, or the price for an hour exceeds the limit. */
double choose_cost(const struct candidate *c, const struct aim *aim);

#endif
