/* planner.h - searches for plans on a worker thread, so that the controller's loop never waits.
 *
 * Requests for the run are served first. All other requests are served in the order in which they
 * were made. planner_fd becomes readable when there are answers. A newer request replaces older
 * requests of its kind. The planner drops the older requests that wait. If the search for an older
 * request has begun, the planner cancels this search. PLANNER_COMPARE is the exception: every
 * comparison gets its answer.
 *
 * Baseline algorithms (all but PLAN_BEST) are planned as published: nodes run their tasks first
 * come, first served. */
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

/* The plan that a request accepts if its baseline finds no paths of its own within its budget */
enum substitute {
	SUBSTITUTE_ANY, /* a plan with arbitrary legal paths, under the baseline's name */
	/* A plan with random paths (the algorithm dtfm-skip), for the conflict-based searches */
	SUBSTITUTE_RANDOM,
	/* as SUBSTITUTE_RANDOM; if that gives no plan either, a plan by PLAN_BEST */
	SUBSTITUTE_BEST
};

/* The answer to a request: a plan that passed the checker, with its trace */
struct planned {
	struct plan *plan; /* NULL: no plan was found; `infeasible` says why */
	struct simulation *trace;
	char infeasible[256];
	/* How the plan differs from the request, and why; "" if it does not */
	char instead[192];
	uint64_t request;
	enum planner_kind kind;
	char reason[96];
	double elapsed_s;
	struct tensor_formats formats; /* tensor formats for which the plan was made */
	uint64_t epoch;                /* epoch in which the plan takes effect; 0 until then */
	uint64_t iteration;        /* first iteration that runs by the plan */
	/* Number of the exchange after which the plan can be used (struct exchange); 0: the plan
	 * can be used now */
	uint32_t exchange;
	/* Answer to PLANNER_PHASES: the stage of each node in each phase, n_phases x n_nodes; below
	 * 0: the node has no stage. Owned. NULL: no plan was found, and `infeasible` has the
	 * reason. */
	int *phase_stages;
	struct plan **phase_plans; /* array of n_phases: the plan of each phase; owned */
	int n_phases;
};
void planned_free(struct planned *p); /* p may be NULL */

struct planner_request {
	enum planner_kind kind;
	int path_length;
	/* Percent of the microbatches that skip stages, so that their paths have the requested
	 * length; 0: all */
	int skip_share;
	struct tensor_formats formats; /* tensor formats for which the cluster's times are valid */
	enum plan_algorithm algorithm;
	enum substitute substitute;
	bool free_assignment, overlap_sync;
	bool no_swaps; /* all paths visit stages in ascending order, also paths that skip stages */
	/* array of n_nodes: nodes that the plan must not use; copied. NULL: none */
	const bool *excluded;
	const struct plan *from; /* plan from which the search starts; copied. NULL: none */
	/* array of n_nodes: stages of the nodes after an exchange; NULL: the cluster's stages */
	const int *stages;
	/* Number of the exchange after which the nodes have the stages in `stages`; 0: none */
	uint32_t exchange;
	/* The following fields are only for PLANNER_PHASES. That request needs many searches, and
	 * budget_s is the time of each search. */
	const struct skip_schedule *schedule; /* copied; NULL for other kinds */
	uint64_t iterations;                  /* length of the run in iterations */
	bool stack;                           /* as in struct phase_plans_request */
	double budget_s;
	int threads;
	uint64_t seed;
	const char *reason;
};

int planner_start(struct planner **out, struct error *err);
/* Starts a planner whose thread gives way to other threads. While other threads want its
 * processor, the planner's thread works for at most a twentieth of the time. The budgets of its
 * searches are seconds of processor time. */
int planner_start_idle(struct planner **out, struct error *err);
/* Cancels all requests and frees the planner. Waits at most 0.3 s for a running search. A search
 * that takes longer frees the planner when it ends. p may be NULL. */
void planner_stop(struct planner *p);
/* Returns a descriptor that becomes readable when there is an answer */
int planner_fd(const struct planner *p);

/* Queues a request, with a copy of the cluster. Returns the request's number (> 0). */
uint64_t planner_ask(struct planner *p, const struct cluster *c, const struct planner_request *q);
/* Returns the next answer, which the caller frees. NULL: no answer is ready, or the thread holds
 * the lock at the moment. In the second case planner_fd stays readable, so the caller tries
 * again. */
struct planned *planner_take(struct planner *p);

#endif
