/* choose.h - chooses how a fleet trains a model: the number of stages, the layers of each, the
 * nodes that hold it, the nodes that are left out, the microbatches, and the formats of tensors.
 *
 * Candidates come from a rough estimate (division.h). Those that look best are planned with the
 * search that runs use, with more evaluations the longer they stay among the best (successive
 * halving), and then changed move by move. Every time that is reported is that of a plan which
 * plan_search has found and checked, sums included.
 *
 * The choice is determined by the seed and the work; a budget in seconds only ends it early. The
 * number of threads does not change it.
 */
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
	int n_stages;       /* 0: any number */
	bool has_baselines; /* equal cuts and DT-FM are planned too */
	int64_t work;       /* limit; 0: the default for the size of the fleet */
	int threads;
	double budget_s; /* 0: none */
	/* Clock in microseconds that never goes back; NULL: no clock, and budget_s must be 0. */
	int64_t (*clock_us)(void *);
	void *clock_arg;
	/* Called on the caller's thread now and then, with the share of the work that is done and
	 * the best candidate so far (NULL: none). NULL: the caller wants no reports. */
	void (*on_progress)(void *arg, double done, const struct candidate *best);
	void *on_progress_arg;
};

enum { CHOICE_MOST = 12 };

/* A node that the best candidate leaves out, and why */
struct choice_left_out {
	int node;
	double missing_bytes; /* for the smallest stage of one layer; 0: the node could hold it */
	/* The best candidate's cost with this node, relative to the cost without it: 1.03 is 3%
	 * more. INFINITY: no stage of the candidate has room for it, or the price has a limit. */
	double cost_with;
	int stage; /* stage in which the node would cost the least */
};

struct choice {
	int n;
	struct candidate list[CHOICE_MOST]; /* (n) best first */
	/* With has_baselines: equal cuts with the best search and with DT-FM, each with the best
	 * number of stages. The plan is NULL if no such cut has one. */
	struct candidate equal, dtfm;
	int n_left_out;
	struct choice_left_out *left_out; /* (n_left_out) owned; one for each kind of node */
	int64_t evaluated;                /* number of candidates that were planned */
};

/* PLAN_INFEASIBLE: the fleet cannot hold the model; the message says what is missing, and where.
 * PLAN_NOT_FOUND: no candidate has a plan within the limits. -EINVAL: a price is missing. On
 * success the caller frees *out (choice_fini). */
int choose(const struct choose_request *q, struct choice *out, struct error *err);
void choice_fini(struct choice *c);
/* Explains the nodes that another candidate than the best one leaves out, in out->left_out. */
void choose_explain(const struct choose_request *q, struct choice *out, int rank);

/* Returns the cost by which candidates are compared: seconds, or the price of an iteration.
 * INFINITY: no plan, or over the limit of the price an hour. */
double choose_cost(const struct candidate *c, const struct aim *aim);

#endif
