/* candidate_lists.h - candidates for the next hop. For each node and each stage, a list has the
 * nearest nodes of the stage, by the time of the round trip. Internal to schedule/.
 */
#ifndef SCHEDULE_CANDIDATE_LISTS_H
#define SCHEDULE_CANDIDATE_LISTS_H

#include "base/arena.h"
#include "schedule/problem/problem.h"

struct candidate_lists {
	int n_stages, most; /* number of stages; number of nodes listed for each stage */
	/* Array of (n_nodes, n_stages, most): nodes, nearest first; -1 after the last */
	int *list;
	/* array of (n_nodes, n_stages, most): seconds of the round trip to each listed node */
	double *round_s;
};

/* Allocates the lists. `most` is reduced to the size of the largest stage. The lists are empty
 * until candidate_lists_fill, and live as long as the arena. */
void candidate_lists_init(struct candidate_lists *n, struct arena *a, const struct problem *p,
			  int most);
/* Fills the lists for the assignment of s with nodes that have a link and memory. Stage 0 gets no
 * lists. */
void candidate_lists_fill(struct candidate_lists *n, const struct problem *p,
			  const struct solution *s);

static inline size_t candidate_lists_at(const struct candidate_lists *n, int node, int stage)
{
	return ((size_t)node * (size_t)n->n_stages + (size_t)stage) * (size_t)n->most;
}

static inline const int *candidate_lists_of(const struct candidate_lists *n, int node, int stage)
{
	return n->list + candidate_lists_at(n, node, stage);
}

static inline const double *candidate_lists_round_s(const struct candidate_lists *n, int node,
						    int stage)
{
	return n->round_s + candidate_lists_at(n, node, stage);
}

#endif
