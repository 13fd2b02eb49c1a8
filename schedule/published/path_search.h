/* path_search.h - finds the path on which one microbatch finishes earliest, if other work
 * occupies nodes at known times. Internal to schedule/.
 *
 * This is A* in time. A state is a partial path and the end of its last forward task. The time of
 * the rest is estimated with a table that is filled for each query: the least time for the
 * remaining visits, the loss and the return, without waits. The exact times of the loss and the
 * backward tasks are known once the path is complete. The estimate is never too high, so the
 * first complete path that leaves the heap is the best. The estimate is exact if no node is taken
 * and the path does not exchange stages twice in a row.
 *
 * Source: SkipPipe, arXiv:2502.19913, the low level of its conflict-based search.
 */
#ifndef SCHEDULE_PATH_SEARCH_H
#define SCHEDULE_PATH_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "schedule/problem/problem.h"

/* An interval in which a node is occupied by other work. */
struct taken {
	int node;
	double from_s, to_s;
};

struct path_query {
	int data_node;
	double start_s;         /* earliest start of the first forward task */
	uint64_t barred_stages; /* stages that must not be visited, as bits */
	/* array of n_nodes, borrowed: nodes that must not be visited; NULL: none */
	const bool *barred;
	/* array of n_taken, borrowed: intervals in which nodes are occupied, in any order */
	const struct taken *taken;
	int n_taken;
	/* array of n_nodes, borrowed: number of visits of each node by other microbatches. Of
	 * several paths that finish equally early, the search takes the one with fewer such visits.
	 * NULL: it takes any of them. */
	const int *visits;
};

/* One task of a path, with its times. */
struct stay {
	int node;
	double from_s, to_s;
};

struct path_search; /* opaque */

/* All pointers are borrowed; only the assignment of s is used. In large clusters only the nearest
 * nodes of each stage are considered. The result lives as long as the arena. */
struct path_search *path_search_new(struct arena *a, const struct problem *p,
				    const struct solution *s);

/* Writes the best path to `path` (length entries), and the time at which the trip ends at the data
 * node to *home_s. Returns false if there is no path or the search reaches its limit. */
bool path_search_run(struct path_search *f, const struct path_query *q, int *path,
		     double *home_s);

/* Returns the time at which a microbatch finishes if it takes the path, under the constraints of
 * the query. stays: NULL, or an array of 2 * length + 1 that gets the path's tasks in order. */
double path_walk(const struct problem *p, const double *work, const struct path_query *q,
		 const int *path,
		 struct stay *stays);

#endif
