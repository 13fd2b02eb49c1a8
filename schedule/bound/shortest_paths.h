/* shortest_paths.h - finds the fastest legal round trips of a data node without contention. In
 * large clusters similar nodes of a stage (same location and speed) are treated as one, with the
 * least delay between any two of them. The result is then a lower bound; it is exact if nodes in
 * one location have equal delays. Internal to schedule/.
 */
#ifndef SCHEDULE_SHORTEST_PATHS_H
#define SCHEDULE_SHORTEST_PATHS_H

#include "base/arena.h"
#include "schedule/problem/problem.h"

enum shortest_paths_kind {
	SHORTEST_PATHS_OUT,   /* activations: forward work and delays */
	SHORTEST_PATHS_BACK,  /* gradients: backward work and delays in the reverse direction */
	SHORTEST_PATHS_ROUND, /* activations and gradients along the same path */
};

struct shortest_paths; /* opaque */

/* All pointers are borrowed; s gives the assignment. The result lives as long as the arena. */
struct shortest_paths *shortest_paths_new(struct arena *a, const struct problem *p,
					  const struct solution *s);
/* Returns a number that is the same for data nodes with equal routes, speeds and memory. */
int shortest_paths_like(const struct shortest_paths *w, int data_node);
/* Returns the seconds of the data node's fastest path, of any length that the problem allows.
 * INFINITY: there is no path. */
double shortest_paths_fastest_s(struct shortest_paths *w, int data_node,
				enum shortest_paths_kind kind);
/* Returns how many different sets of stages, without stage 0, a path can visit. INT_MAX: more than
 * INT_MAX sets. */
int shortest_paths_sets(const struct shortest_paths *w);
/* Finds, for each set of stages that a path can visit, the fastest round trip through exactly these
 * stages. Sets are in ascending order by first stage, then second, and so on. Both arrays have
 * shortest_paths_sets entries. least_s gets the seconds; INFINITY: there is no such trip. stages
 * gets one bit for each stage of the set; NULL: not wanted. */
void shortest_paths_of_sets(struct shortest_paths *w, int data_node, double *least_s,
			    uint64_t *stages);
/* Returns the number of hops examined so far. */
long shortest_paths_work(const struct shortest_paths *w);

#endif
