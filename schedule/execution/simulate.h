/* simulate.h - the execution model: simulates a plan on a cluster.
 *
 * The rules in short (docs/formats.md has them in full): A microbatch is the chain F(p0) .. F(pk)
 * L(p0) B(pk) .. B(p0). A node runs one task at a time, to its end, and is never idle while a
 * task that may start is waiting. Waiting tasks run in the plan's order, then by arrival, then by
 * id. F needs a memory slot, which is held until the end of its B. After a task the node stays
 * busy for the dispatch overhead, while the output already travels. If the cluster knows how long
 * the bytes of transfers take, a directed link carries the bytes of one transfer after the other.
 * All events of an instant are handled before any node chooses.
 *
 * Times are double seconds, formed in the order start + duration, end + delay, end + overhead.
 * Another implementation that adds in the same order agrees bit for bit.
 *
 * This is the reference: plain and complete. fast_simulate.h computes the same times for the
 * search, faster and without a trace; tests compare the two.
 */
#ifndef SCHEDULE_SIMULATE_H
#define SCHEDULE_SIMULATE_H

#include <stdbool.h>

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"

struct sim_task {
	int microbatch; /* index in plan->microbatches */
	int hop;        /* index of the hop in the path */
	enum task_kind kind;
	int node;
	double arrival_s, start_s, end_s;
	/* The task waited after its arrival, and is not the first forward task of its microbatch */
	bool collided;
	/* Index of the task that delayed this one; -1: this task did not wait. The delaying task
	 * is the task that the node was running when this task arrived, or the task that the node
	 * started then instead of this task. If the node was idle because all slots were taken,
	 * the delaying task is the F of the microbatch that had held a slot longest. */
	int waited_for;
};

struct simulation {
	double iteration_s, sync_s;
	/* Time at which the last sum of gradients ends, if each stage begins its sum after its
	 * own last task. */
	double total_s;
	int collisions;
	double collision_wait_s;
	double idle_fraction; /* 1 - task seconds / (nodes assigned * iteration_s) */
	int n_stages, n_nodes, n_tasks;
	struct sim_task *tasks; /* array of n_tasks, in the order of their start */
	/* Array of n_stages: number of microbatches that visit each stage */
	int *exposure;
	/* Array of n_nodes: largest number of microbatches that each node held at once */
	int *peak_slots;
	double *busy_s; /* array of n_nodes: seconds that each node spent in tasks */
};

/* Simulates the plan, which may break rules of check.h. -EINVAL: the plan cannot be run (unknown
 * node, missing link, wrong number of stages). -EDEADLK: the plan comes to a standstill; the
 * message names the microbatches that wait for one another. */
int simulate(const struct cluster *c, const struct plan *p, struct simulation **out,
	     struct error *err);
void simulation_free(struct simulation *s); /* s may be NULL */

/* Returns the seconds in which the replicas of a stage sum their gradients. */
double simulate_stage_sync_s(const struct cluster *c, const struct plan *p, int stage);

/* Returns the trace as trace-event JSON for chrome://tracing or Perfetto, which the caller frees.
 * NULL: out of memory. */
char *simulation_trace(const struct cluster *c, const struct plan *p,
		       const struct simulation *s);

#endif
