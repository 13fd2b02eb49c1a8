/* fixture.h - clusters and plans for the tests of schedule/. */
#ifndef SCHEDULE_TESTS_FIXTURE_H
#define SCHEDULE_TESTS_FIXTURE_H

#include "base/rng.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/problem/problem.h"

/* Reads schedule/tests/data/NAME below the root of the repository, where tests run. If the file
 * cannot be read, the test fails. */
struct cluster *fixture_cluster(const char *name);
struct plan *fixture_plan(const char *name);

struct fixture_shape {
	int most_stages, most_replicas, most_microbatches, most_memory;
	double absent; /* share of the links that are missing */
	bool grid;     /* times are multiples of one step, so that events coincide */
	bool unpinned; /* some nodes are not pinned to a stage */
};

/* Returns a random cluster of at least two stages. */
struct cluster *fixture_random_cluster(struct rng *r, const struct fixture_shape *shape);
/* Returns a random plan that keeps every rule except CC3, and that may use missing links. Half of
 * the plans have priorities. All nodes must be pinned. */
struct plan *fixture_random_plan(struct rng *r, const struct cluster *c, int path_length);

/* A problem in which each node has its stage in the cluster */
struct fixture_pinned {
	struct plan_request q;
	struct problem p;
	struct solution s; /* a solution without paths */
};

/* Returns the error of problem_init. After an error nothing has to be freed. */
int fixture_pinned_init(struct fixture_pinned *t, const struct cluster *c, int length,
			bool ascending);
void fixture_pinned_fini(struct fixture_pinned *t);

/* Counts the visits of each stage in visits (n_stages entries). */
void fixture_visits(const struct problem *p, const struct solution *s, int *visits);
/* Returns true if the stages of the path ascend, except for exchanged neighbours (CC2). */
bool fixture_is_legal(const struct problem *p, const struct solution *s, const int *path);

#endif
