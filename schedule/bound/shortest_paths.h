/* shortest_paths.h - the fastest legal ways from a data node through as many stages as a path visits, and
 * home. In large clusters nodes of a stage that are alike (place, speed) are taken as one, with
 * the least delay between any two: what comes out is then a lower bound, exact where places
 * mean equal delays. Internal to schedule/.
 */
#ifndef SCHEDULE_SHORTEST_PATHS_H
#define SCHEDULE_SHORTEST_PATHS_H

#include "base/arena.h"
#include "schedule/problem/problem.h"

enum shortest_paths_kind {
	SHORTEST_PATHS_OUT,   /* the activations': forward work and delays */
	SHORTEST_PATHS_BACK,  /* the gradients', the other way round */
	SHORTEST_PATHS_ROUND, /* both along the same path */
};

struct shortest_paths; /* opaque */

/* All borrowed; s gives the assignment. It lives as long as the arena. NULL: out of memory. */
struct shortest_paths *shortest_paths_new(struct arena *a, const struct problem *p, const struct solution *s);
/* Data nodes with the same number have the same ways, speeds and memory. */
int shortest_paths_like(const struct shortest_paths *w, int data_node);
/* INFINITY: there is none. */
double shortest_paths_fastest_s(struct shortest_paths *w, int data_node, enum shortest_paths_kind kind);
/* Sets of stages that a path may visit, data nodes' stage aside; INT_MAX: too many to count. */
int shortest_paths_sets(const struct shortest_paths *w);
/* For each of them, in ascending order by its first stage, then its second, and so on: the fastest
 * way out and back through just these stages, INFINITY where there is none, and which they are (bit
 * by stage; NULL: not asked). Both (shortest_paths_sets). False: out of memory. */
bool shortest_paths_of_sets(struct shortest_paths *w, int data_node, double *least_s, uint64_t *stages);
/* Hops looked at so far. */
long shortest_paths_work(const struct shortest_paths *w);

#endif
