/* simulate.h - the execution model: what a plan does on a cluster.
 *
 * The rules in short (docs/formats.md has them in full): A microbatch is the chain F(p0) .. F(pk)
 * L(p0) B(pk) .. B(p0). A node runs one task at a time, to its end, and is never idle while a task
 * that may start is waiting. Waiting tasks run in the plan's order, then by arrival, then by id. F
 * needs a memory slot, which is held until the end of its B. After a task the node stays busy for
 * the dispatch overhead, while the output already travels. If the cluster knows the bytes of
 * transfers, a directed link carries the bytes of one after the other. All events of an instant are
 * taken in before any node chooses.
 *
 * Times are double seconds, formed in the order start + duration, end + delay, end + overhead.
 * Another implementation that does the same agrees bit for bit.
 *
 * This is the reference: plain and complete. fast_simulate.h does the same for the search, faster
 * and without a trace; tests compare the two.
 */
#ifndef SCHEDULE_SIMULATE_H
#define SCHEDULE_SIMULATE_H

#include <stdbool.h>

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"

struct sim_task {
	int microbatch; /* index of the microbatch in plan->microbatches */
	int hop;        /* index of the hop in the microbatch's path */
	enum task_kind kind;
	int node;
	double arrival_s, start_s, end_s;
	bool collided; /* the task waited after its arrival, and is not a microbatch's first F */
	/* Index of the task that delayed this one: the task that the node was busy with or chose
	 * first; if no slot was free, the F of the microbatch that has held a slot longest. -1:
	 * this task did not wait. */
	int waited_for;
};

struct simulation {
	double iteration_s, sync_s;
	double total_s; /* end of the last sum, if each stage sums after its own last task */
	int collisions;
	double collision_wait_s;
	double idle_fraction; /* 1 - task seconds / (nodes assigned * iteration_s) */
	int n_stages, n_nodes, n_tasks;
	struct sim_task *tasks; /* (n_tasks) tasks in order of start */
	int *exposure;          /* (n_stages) number of microbatches that visit each stage */
	int *peak_slots;        /* (n_nodes) most microbatches that each node held at once */
	double *busy_s;         /* (n_nodes) seconds that each node spent in tasks */
};

/* Runs the plan. It may break rules of check.h. -EINVAL: it cannot be run (unknown node, missing
 * link, wrong number of stages). -EDEADLK: standstill; the message names who waits for whom. */
int simulate(const struct cluster *c, const struct plan *p, struct simulation **out,
	     struct error *err);
void simulation_free(struct simulation *s); /* NULL is allowed */

/* Returns the seconds in which the replicas of a stage sum their gradients. */
double simulate_stage_sync_s(const struct cluster *c, const struct plan *p, int stage);

/* Returns the trace as trace-event JSON for chrome://tracing or Perfetto, to be freed. NULL: out of
 * memory.
 */
char *simulation_trace(const struct cluster *c, const struct plan *p,
		       const struct simulation *s);

#endif
