/* problem.h - a cluster and a request as flat arrays, which are the input of the search, and a
 * solution. Internal to schedule/.
 */
#ifndef SCHEDULE_PROBLEM_H
#define SCHEDULE_PROBLEM_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/format/request.h"
#include "schedule/problem/strategy.h"

struct problem {
	const struct cluster *c;      /* the cluster, borrowed */
	const struct plan_request *q; /* the request, borrowed */
	int n_nodes, n_stages;
	/* Number of stages of the longest and of the shortest path. The two differ only if some
	 * microbatches skip stages and n_whole microbatches visit all stages. */
	int length, short_length;
	int n_mb, n_whole;
	long visits;      /* sum of the lengths of all paths */
	uint32_t regimes; /* one bit for each regime (strategy.h) that holds for this size */
	struct arena arena; /* owns the arrays below */
	/* Array of n_stages: number of nodes in each stage, without excluded nodes */
	int *sizes;
	bool *out;     /* array of n_nodes; true: the node is excluded */
	bool *movable; /* array of n_nodes; true: the node may be placed in any stage */
	int n_movable;
	/* array of (n_nodes, n_nodes): seconds of a transfer; no link: INFINITY; diagonal: 0 */
	double *delay;
	/* array of (n_nodes, n_nodes): seconds for which a transfer occupies the link; NULL:
	 * transfers do not wait for one another */
	double *occupied;
	/* Array of (n_nodes, n_nodes): seconds to transfer a gradient; unknown: 0 */
	double *sync;
	double *round;   /* array of (n_nodes, n_nodes): seconds of the round trip */
	/* arrays of n_stages: smallest and largest number of visits of each stage (CC3) */
	int *low, *high;
	/* array of n_mb: index of each microbatch's data node among the members of stage 0 */
	int *mb_slot;
	/* array of n_mb: true: the microbatch's first path skips stages. During the search, a
	 * data node's microbatches may exchange their paths. */
	bool *skips;
	/* True: the objective includes the sums of gradients (iteration_s + sync_s, or total_s). */
	bool weigh_sync;
	double sync_limit_s; /* largest sync_s that a solution may have; INFINITY: no limit */
};

/* Returns true if all nodes and all links are equal, so that no placement is better than another.
 */
bool problem_all_alike(const struct cluster *c);

/* Makes the problem. PLAN_INFEASIBLE: some stage has no nodes or no memory left. -EINVAL: the
 * request does not fit the cluster. */
int problem_init(struct problem *p, const struct cluster *c, const struct plan_request *q,
		 struct error *err);
void problem_fini(struct problem *p);

static inline bool problem_is(const struct problem *p, enum regime r)
{
	return p->regimes >> r & 1;
}

/* Return the delay from node u to node v, and the delay of the round trip. INFINITY: there is no
 * link. */
static inline double problem_delay_s(const struct problem *p, int u, int v)
{
	return p->delay[(size_t)u * (size_t)p->n_nodes + (size_t)v];
}

static inline double problem_round_s(const struct problem *p, int u, int v)
{
	return p->round[(size_t)u * (size_t)p->n_nodes + (size_t)v];
}

/* An assignment of nodes to stages, and a path for each microbatch. */
struct solution {
	struct arena arena; /* owns the arrays below */
	int *stage_of;      /* array of n_nodes: stage of each node; -1: excluded */
	/* Array of n_nodes: nodes ordered by stage; stage s begins at start[s] */
	int *members;
	int *start; /* array of n_stages + 1 */
	/* Array of n_nodes: work of each node's stage (cluster.work); excluded nodes: 1 */
	double *work;
	/* array of (n_mb, length): node ids, the data node first. -1 after the end of a short
	 * path */
	int *path;
};

/* Return the seconds of a node's forward and backward task. work: the work of each node's stage,
 * from the solution. */
static inline double problem_forward_s(const struct problem *p, const double *work, int node)
{
	return p->c->nodes[node].forward_s * work[node];
}

static inline double problem_backward_s(const struct problem *p, const double *work, int node)
{
	return p->c->nodes[node].backward_s * work[node];
}

/* Returns the seconds for which one visit keeps the node busy. */
static inline double problem_visit_s(const struct problem *p, const double *work, int node)
{
	return problem_forward_s(p, work, node) + problem_backward_s(p, work, node) +
	       2 * p->c->dispatch_overhead_s;
}

/* Returns the number of visits of a path in a solution. */
static inline int problem_path_length(const struct problem *p, const int *path)
{
	return p->short_length < p->length && path[p->short_length] < 0 ? p->short_length
									: p->length;
}

/* Returns the step after this one in the chain of a microbatch, or 2 * length + 1 after the last
 * step. Steps number the tasks: 0 to length - 1 are the forward tasks, `length` is the loss, and
 * the backward tasks follow in reverse order. A microbatch with fewer than `length` visits has no
 * tasks at the steps of the missing visits. */
static inline int problem_next_step(const struct problem *p, int visits, int step)
{
	bool at_gap = step == visits - 1 || step == p->length;

	return step + 1 + (at_gap ? p->length - visits : 0);
}

/* Allocates a solution in which everything is zero except the lengths of paths. */
void solution_init(struct solution *s, const struct problem *p);
void solution_fini(struct solution *s);
/* Copies between two solutions of the same problem. */
void solution_copy(struct solution *to, const struct solution *from, const struct problem *p);
/* Computes members, start and work from stage_of. Within a stage, members are in ascending
 * order. */
void solution_index(struct solution *s, const struct problem *p);
/* Returns the seconds to sum the gradients of a stage. pair: NULL, or an array of 2 that gets the
 * slowest pair of nodes, or -1 if the sum takes no time. */
double solution_stage_sync_s(const struct solution *s, const struct problem *p, int stage,
			     int *pair);
/* Returns the seconds of the slowest stage's sum. pair: NULL, or an array of 2 that gets the
 * slowest pair of that stage; the array stays unchanged if sums take no time. */
double solution_sync_s(const struct solution *s, const struct problem *p, int *pair);
/* Exchanges the stages of two nodes; paths are not changed. */
void solution_exchange(struct solution *s, int a, int b);
/* Returns the path of microbatch i. */
static inline int *solution_path(const struct solution *s, const struct problem *p, int i)
{
	return s->path + (size_t)i * (size_t)p->length;
}

/* Makes a plan with the assignment and the paths of s. */
struct plan *solution_to_plan(const struct solution *s, const struct problem *p);

#endif
