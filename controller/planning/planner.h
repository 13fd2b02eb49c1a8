/* planner.h - plans made on a worker thread, so that the controller's loop never waits for one.
 *
 * Requests are served in order, those of the run first; answers are announced on planner_fd. A newer
 * request for the run, or a newer preview, makes older ones pointless: they are dropped, or cancelled
 * when worked on. Comparisons all get their answers.
 *
 * Baselines (every algorithm but PLAN_BEST) are planned as published: first come, first served.
 */
#ifndef CONTROLLER_PLANNER_H
#define CONTROLLER_PLANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/search/search.h"
#include "schedule/execution/simulate.h"

struct planner; /* opaque */

enum planner_kind { PLANNER_RUN, PLANNER_PREVIEW, PLANNER_COMPARE, PLANNER_BASELINE };

/* Where a baseline finds no plan, or no paths of its own in time, whose is an answer, too: any legal paths under its
 * name; for the conflict-based searches paths at random (dtfm-skip); beside these, for whatever is left, the best. */
enum stand_in { STAND_IN_ANY, STAND_IN_RANDOM, STAND_IN_BEST };

/* A plan that passed the checker, with its trace. */
struct planned {
	struct plan *plan;         /* NULL: none; then infeasible says why */
	struct simulation *trace;
	char infeasible[256];
	char instead[192];         /* not what was asked for: what stands in for it, and why */
	uint64_t request;
	enum planner_kind kind;
	char reason[96];
	double elapsed_s;
	uint64_t epoch;            /* given when it takes effect; 0 before */
	uint64_t iteration;
};
void planned_free(struct planned *p); /* NULL is allowed */

struct planner_request {
	enum planner_kind kind;
	int path_length;
	enum plan_algorithm algorithm;
	enum stand_in stand_in;
	bool free_assignment, overlap_sync;
	const bool *excluded;      /* (n_nodes) copied */
	const struct plan *from;   /* copied; NULL */
	double budget_s;
	int threads;
	uint64_t seed;
	const char *reason;
};

int planner_start(struct planner **out, struct error *err);
/* As planner_start, on a thread that gets only the time that nothing else wants; budgets are seconds on the processor. */
int planner_start_idle(struct planner **out, struct error *err);
void planner_stop(struct planner *p); /* cancels; NULL is allowed */
int planner_fd(const struct planner *p); /* poll for POLLIN */

/* The cluster is copied. Gives the request's number (> 0), or 0 when memory is out. */
uint64_t planner_ask(struct planner *p, const struct cluster *c, const struct planner_request *q);
/* The next answer, for the caller to free; NULL when there is none, or not at this very moment (planner_fd says so
 * then). */
struct planned *planner_take(struct planner *p);

#endif
