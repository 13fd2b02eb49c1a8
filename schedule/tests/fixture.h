/* fixture.h - clusters and plans for schedule's tests. */
#ifndef SCHEDULE_TESTS_FIXTURE_H
#define SCHEDULE_TESTS_FIXTURE_H

#include "base/rng.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/problem/problem.h"

/* schedule/tests/data/NAME; the tests run in the repository's root. Fails the test. */
struct cluster *fixture_cluster(const char *name);
struct plan *fixture_plan(const char *name);

struct fixture_shape {
	int most_stages, most_replicas, most_microbatches, most_memory;
	double absent; /* share of links that are not there */
	bool grid;     /* times on a grid, so that events coincide */
	bool unpinned; /* some nodes without a stage */
};

/* A random cluster of at least two stages. */
struct cluster *fixture_random_cluster(struct rng *r, const struct fixture_shape *shape);
/* A random plan on it that respects everything but CC3 and absent links, half of the time with
 * priorities. All nodes must be pinned. */
struct plan *fixture_random_plan(struct rng *r, const struct cluster *c, int path_length);

/* How many visits each stage gets: visits (n_stages). */
void fixture_visits(const struct problem *p, const struct solution *s, int *visits);
/* Whether a path's stages ascend, but for neighbours in number that are exchanged. */
bool fixture_is_legal(const struct problem *p, const struct solution *s, const int *path);

#endif
