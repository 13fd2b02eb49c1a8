/* shortest_paths.h - the fastest legal ways from a data node through as many stages as a path visits, and
 * home. In large clusters nodes of a stage that are alike (place, speed) are taken as one, with
 * the least delay between any two: what comes out is then a lower bound, exact where places
 * mean equal delays. Internal to schedule/.
 */
#ifndef SCHEDULE_WAYS_H
#define SCHEDULE_WAYS_H

#include "schedule/problem/problem.h"

enum way_kind {
	WAY_OUT,   /* the activations': forward work and delays */
	WAY_BACK,  /* the gradients', the other way round */
	WAY_ROUND, /* both along the same path */
};

struct ways; /* opaque */

/* Both borrowed; s gives the assignment. NULL: out of memory. */
struct ways *ways_new(const struct problem *p, const struct solution *s);
void ways_free(struct ways *w); /* NULL is allowed */
/* Data nodes with the same number have the same ways, speeds and memory. */
int ways_like(const struct ways *w, int data_node);
/* INFINITY: there is none. */
double ways_fastest_s(struct ways *w, int data_node, enum way_kind kind);
/* Sets of stages that a path may visit, data nodes' stage aside; INT_MAX: too many to count. */
int ways_sets(const struct ways *w);
/* For each of them, in ascending order by its first stage, then its second, and so on: the fastest
 * way out and back through just these stages, INFINITY where there is none, and which they are (bit
 * by stage; NULL: not asked). Both (ways_sets). False: out of memory. */
bool ways_of_sets(struct ways *w, int data_node, double *least_s, uint64_t *stages);
/* Hops looked at so far. */
long ways_work(const struct ways *w);

#endif
