/* simulate.h - what a plan does on a cluster: the execution model, exactly.
 *
 * Rules (docs/scheduling.md has them in full): a microbatch is the chain F(p0) .. F(pk) L(p0) B(pk)
 * .. B(p0); a node runs one task at a time, to its end, and never idles while a task it may start
 * is waiting; waiting tasks go by the plan's order, then (arrival, id); an F needs a memory slot,
 * held until the end of its B; after a task the node stays busy for the dispatch overhead while the
 * output already travels; what happens at one instant is all taken in before any node chooses.
 *
 * Times are double seconds, formed in the order start + duration, end + delay, end + overhead, so
 * another implementation that does the same agrees bit for bit.
 *
 * This is the reference: plain and complete. fast_simulate.h does the same for the search, faster
 * and without a trace, and tests hold the two together.
 */
#ifndef SCHEDULE_SIMULATE_H
#define SCHEDULE_SIMULATE_H

#include <stdbool.h>

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"

struct sim_task {
	int microbatch; /* index into plan->microbatches */
	int hop;        /* index into its path */
	enum task_kind kind;
	int node;
	double arrival_s, start_s, end_s;
	bool collided;  /* it waited after arriving, and is not a microbatch's first F */
	int waited_for; /* index of the task in its way: the one the node was busy with or chose
			 * first; with the node free but full, the F of the microbatch that holds a
			 * slot longest. -1: did not wait */
};

struct simulation {
	double iteration_s, sync_s;
	double total_s; /* with each stage's sum from its own last task on: the end of the last */
	int collisions;
	double collision_wait_s;
	double idle_fraction; /* 1 - task seconds / (nodes assigned * iteration_s) */
	int n_stages, n_nodes, n_tasks;
	struct sim_task *tasks; /* (n_tasks) in order of start */
	int *exposure;          /* (n_stages) microbatches that visit each stage */
	int *peak_slots;        /* (n_nodes) most microbatches held at once */
	double *busy_s;         /* (n_nodes) seconds spent in tasks */
};

/* The plan may break the rules of check.h, except that it must be possible to run at all.
 * -EINVAL: it is not (unknown node, no such link, another number of stages);
 * -EDEADLK: standstill, the message tells who waits for whom; -ENOMEM. */
int simulate(const struct cluster *c, const struct plan *p, struct simulation **out,
	     struct error *err);
void simulation_free(struct simulation *s); /* NULL is allowed */

/* The trace as Chrome's trace-event JSON (chrome://tracing, Perfetto); free it. NULL: out of
 * memory. */
char *simulation_trace(const struct cluster *c, const struct plan *p,
		       const struct simulation *s);

#endif
