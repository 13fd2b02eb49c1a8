/* planner.h - searches for plans on a worker thread, so that the controller's loop never waits.
 *
 * Requests for the run are served first, all others in order. planner_fd announces the answers. A
 * newer request replaces older ones of its kind: waiting ones are dropped, and a running search is
 * cancelled. PLANNER_COMPARE is the exception: every comparison gets its answer.
 *
 * Baseline algorithms (all but PLAN_BEST) are planned as published: nodes run their tasks first
 * come, first served.
 */
#ifndef CONTROLLER_PLANNER_H
#define CONTROLLER_PLANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/skip_schedule.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/search/search.h"
#include "schedule/execution/simulate.h"

struct planner; /* opaque */

enum planner_kind {
	PLANNER_RUN,
	PLANNER_PREVIEW,
	PLANNER_COMPARE,
	PLANNER_BASELINE,
	PLANNER_PHASES /* an allocation of the nodes for each phase of the skip schedule */
};

/* Substitutes that a request allows if a baseline finds no paths of its own within its budget */
enum substitute {
	SUBSTITUTE_ANY, /* a plan of any legal paths under the baseline's name */
	/* A plan with random paths (dtfm-skip), for the conflict-based searches */
	SUBSTITUTE_RANDOM,
	SUBSTITUTE_BEST /* as SUBSTITUTE_RANDOM; and PLAN_BEST if there is no plan even then */
};

/* The answer to a request: a plan that passed the checker, with its trace */
struct planned {
	struct plan *plan;         /* NULL: no plan; infeasible says why */
	struct simulation *trace;
	char infeasible[256];
	/* Differences between the plan and the request, and their reason; or empty */
	char instead[192];
	uint64_t request;
	enum planner_kind kind;
	char reason[96];
	double elapsed_s;
	struct tensor_formats formats; /* formats for which the plan is made */
	uint64_t epoch;            /* epoch in which the plan takes effect; 0 before */
	uint64_t iteration;        /* first iteration that runs by the plan */
	/* Number of the exchange after which the plan can be used (struct exchange); 0: now */
	uint32_t exchange;
	/* Answer to PLANNER_PHASES: (n_phases, n_nodes) stage of each node in each phase; below 0:
	 * none. Owned. NULL: no plan was found, and `infeasible` has the reason. */
	int *phase_stages;
	struct plan **phase_plans; /* (n_phases) the plans of these phases; owned */
	int n_phases;
};
void planned_free(struct planned *p); /* p may be NULL */

struct planner_request {
	enum planner_kind kind;
	int path_length;
	int skip_share; /* percent of the microbatches whose paths have this length; 0: all */
	struct tensor_formats formats; /* formats for which the cluster has its times */
	enum plan_algorithm algorithm;
	enum substitute substitute;
	bool free_assignment, overlap_sync;
	bool no_swaps; /* stages ascend in all paths, even if stages are skipped */
	/* (n_nodes) nodes that the plan must not use; copied; NULL: none */
	const bool *excluded;
	const struct plan *from; /* plan from which the search starts; copied; may be NULL */
	/* (n_nodes) stages of the nodes after an exchange; NULL: those of the cluster */
	const int *stages;
	uint32_t exchange; /* number of this exchange; 0: none */
	/* For PLANNER_PHASES. It needs many searches, and budget_s is the time of each. */
	const struct skip_schedule *schedule; /* copied; NULL for other kinds */
	uint64_t iterations;                  /* of the run */
	bool stack;                           /* as in struct phase_plans_request */
	double budget_s;
	int threads;
	uint64_t seed;
	const char *reason;
};

int planner_start(struct planner **out, struct error *err);
/* Starts a planner whose thread gives way to other threads: while they want its processor, it works
 * for a twentieth of the time at most. Its budgets are seconds of processor time. */
int planner_start_idle(struct planner **out, struct error *err);
/* Cancels all requests and frees the planner. Waits at most 0.3 s for a search that is under way;
 * a slower search frees its memory when it ends. p may be NULL. */
void planner_stop(struct planner *p);
int planner_fd(const struct planner *p); /* returns a descriptor to poll for POLLIN */

/* Queues a request and copies the cluster. Returns the request's number (> 0). */
uint64_t planner_ask(struct planner *p, const struct cluster *c, const struct planner_request *q);
/* Returns the next answer, for the caller to free. NULL: no answer is ready, or the thread holds
 * the lock right now. In the second case planner_fd stays readable. */
struct planned *planner_take(struct planner *p);

#endif
