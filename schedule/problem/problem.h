/* problem.h - what the search works on: a cluster and a request, boiled down to flat arrays, and
 * a solution to it. Internal to schedule/.
 */
#ifndef SCHEDULE_PROBLEM_H
#define SCHEDULE_PROBLEM_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/format/request.h"
#include "schedule/search/strategy.h"

struct problem {
	const struct cluster *c; /* borrowed. With the backward pass split it is the chain's:
				  * backward_s is the input gradients' part, which paths,
				  * round trips and bounds are made of */
	const struct cluster *whole;  /* borrowed: as given */
	struct cluster chain;         /* what c then points to; its nodes are ours, the rest is
				       * borrowed */
	const struct plan_request *q; /* borrowed */
	int n_nodes, n_stages, length; /* length: stages a path visits */
	int n_mb;
	uint32_t regimes; /* that hold for such a size (strategy.h), bit by bit */
	struct arena arena; /* of all below */
	int *sizes;      /* (n_stages) nodes of each stage that are in */
	bool *out;       /* (n_nodes) excluded */
	bool *movable;   /* (n_nodes) may be placed in any stage */
	int n_movable;
	double *delay;   /* (n_nodes, n_nodes) absent: INFINITY; diagonal 0 */
	double *sync;    /* (n_nodes, n_nodes) unknown: 0 */
	double *round;   /* (n_nodes, n_nodes) delay there and back */
	int *low, *high; /* (n_stages) CC3: visits of each stage */
	int *mb_slot;    /* (n_mb) which of stage 0's members sends it */
	bool weigh_sync; /* the objective is iteration_s + sync_s, or total_s */
	double sync_limit_s; /* sync_s of every solution is at most this; INFINITY: no limit */
};

/* Every node could stand in every other's place: no placement is better than another. */
bool problem_all_alike(const struct cluster *c);

/* PLAN_INFEASIBLE when no plan can exist for reasons seen at once: a stage left without nodes or
 * memory. -EINVAL, -ENOMEM. */
int problem_init(struct problem *p, const struct cluster *c, const struct plan_request *q,
		 struct error *err);
void problem_fini(struct problem *p);

static inline bool problem_is(const struct problem *p, enum regime r)
{
	return p->regimes >> r & 1;
}

/* From node u to node v, and there and back; INFINITY: no link. */
static inline double problem_delay_s(const struct problem *p, int u, int v)
{
	return p->delay[(size_t)u * (size_t)p->n_nodes + (size_t)v];
}

static inline double problem_round_s(const struct problem *p, int u, int v)
{
	return p->round[(size_t)u * (size_t)p->n_nodes + (size_t)v];
}

/* What one visit keeps the node busy for. */
static inline double problem_work_s(const struct problem *p, int node)
{
	const struct cluster_node *n = &p->c->nodes[node];

	return n->forward_s + n->backward_s + 2 * p->c->dispatch_overhead_s;
}

/* An assignment and a path per microbatch. */
struct solution {
	struct arena arena; /* of all below */
	int *stage_of; /* (n_nodes) -1: out */
	int *members;  /* (n_nodes) by stage, stage s from start[s] */
	int *start;    /* (n_stages + 1) */
	int *path;     /* (n_mb, length) node ids; the first is the data node */
};

/* Room for one, not filled in. -ENOMEM. */
int solution_init(struct solution *s, const struct problem *p);
void solution_fini(struct solution *s);
/* Between two of the same problem. */
void solution_copy(struct solution *to, const struct solution *from, const struct problem *p);
/* members and start from stage_of, nodes ascending within a stage. */
void solution_index(struct solution *s, const struct problem *p);
/* Seconds to sum the gradients of a stage; the pair of nodes (2) that makes it so long, -1 where none does,
 * into pair, unless that is NULL. */
double solution_stage_sync_s(const struct solution *s, const struct problem *p, int stage, int *pair);
/* The slowest stage's sum: seconds; where sums take no time pair stays as it is. */
double solution_sync_s(const struct solution *s, const struct problem *p, int *pair);
/* Two nodes exchange stages; paths are not looked at. */
void solution_exchange(struct solution *s, int a, int b);
/* The path of microbatch i, by place. */
static inline int *solution_path(const struct solution *s, const struct problem *p, int i)
{
	return s->path + (size_t)i * (size_t)p->length;
}

/* A plan with this solution's assignment and paths; NULL: out of memory. */
struct plan *solution_to_plan(const struct solution *s, const struct problem *p);

#endif
