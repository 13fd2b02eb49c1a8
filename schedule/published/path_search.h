/* path_search.h - A* in time: the way of one microbatch through the stages that is back first,
 * when nodes are taken at known times. Internal to schedule/.
 *
 * A state is the path so far and the time at which its last F ends; the way back (L and the Bs)
 * follows from a whole path. What remains is estimated by the least time for so many more visits,
 * the loss and the way back with nobody in the way, from a table filled for each question: exact
 * where no node is taken, but for paths that exchange stages twice in a row, and never too much,
 * so the first path back is the best.
 *
 * Source: SkipPipe, arXiv:2502.19913, the low level of its conflict-based search.
 */
#ifndef SCHEDULE_PATH_SEARCH_H
#define SCHEDULE_PATH_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "schedule/problem/problem.h"

/* A node that may not be busy with the microbatch from one time to another. */
struct taken {
	int node;
	double from_s, to_s;
};

struct path_query {
	int data_node;
	double start_s;          /* of the first F, at the earliest */
	uint64_t barred_stages;  /* one bit each */
	const bool *barred;      /* (n_nodes) borrowed; NULL: none */
	const struct taken *taken; /* (n_taken) borrowed, in any order */
	int n_taken;
	const int *visits;       /* (n_nodes) borrowed: others' visits of each node; of paths that
				  * are back as early, that with fewer on it is taken. NULL: any */
};

/* One task of a path walked. */
struct stay {
	int node;
	double from_s, to_s;
};

struct path_search; /* opaque */

/* All borrowed; only the assignment of s counts. In large clusters only the nearest nodes of each
 * stage are looked at. It lives as long as the arena. NULL: out of memory. */
struct path_search *path_search_new(struct arena *a, const struct problem *p, const struct solution *s);

/* The best path into path (length), and when it is back. False: there is none, or it takes more
 * than a bounded search to find. */
bool path_search_run(struct path_search *f, const struct path_query *q, int *path,
		     double *home_s);

/* When a path is back under the query; its tasks in order into stays (2 * length + 1), unless
 * that is NULL. */
double path_walk(const struct problem *p, const struct path_query *q, const int *path,
		 struct stay *stays);

#endif
