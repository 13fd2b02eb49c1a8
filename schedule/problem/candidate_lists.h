/* candidate_lists.h - of each stage, the nodes nearest to a node by round trip: candidates for its next
 * hop. Internal to schedule/.
 */
#ifndef SCHEDULE_NEAR_H
#define SCHEDULE_NEAR_H

#include "schedule/problem/problem.h"

struct near {
	int n_stages, most; /* most: nodes listed of each stage */
	int *list;          /* (n_nodes, n_stages, most) nearest first; -1 after the last */
	double *round_s;    /* the same shape: there and back */
};

/* most is cut to the largest stage. The lists are empty until near_fill. -ENOMEM. */
int near_init(struct near *n, const struct problem *p, int most);
void near_fini(struct near *n);
/* Lists anew for the assignment of s: linked nodes with memory, of stages 1 and up. */
void near_fill(struct near *n, const struct problem *p, const struct solution *s);
/* One of them. */
void near_fill_one(struct near *n, const struct problem *p, const struct solution *s, int node,
		   int stage);

static inline size_t near_at(const struct near *n, int node, int stage)
{
	return ((size_t)node * (size_t)n->n_stages + (size_t)stage) * (size_t)n->most;
}

static inline const int *near_list(const struct near *n, int node, int stage)
{
	return n->list + near_at(n, node, stage);
}

static inline const double *near_round_s(const struct near *n, int node, int stage)
{
	return n->round_s + near_at(n, node, stage);
}

#endif
