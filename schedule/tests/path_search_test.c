/* Compares the low level of conflict-based search with a plain enumeration of all paths. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "schedule/start/construct.h"
#include "schedule/published/path_search.h"
#include "schedule/tests/fixture.h"

#define MOST_LENGTH 6

/* A query, with everything to which it refers. */
struct question {
	struct cluster *c;
	struct plan_request request;
	struct problem p;
	struct solution s;
	struct path_query q;
	bool barred[64];
	struct taken taken[8];
};

/* Returns true if CC2 holds, tested literally: exchanges of neighbouring pairs can make the stages
 * ascend. */
static bool ascends_after(const struct question *a, const int *path, int n, int from, int last)
{
	int one, two;

	if (from == n)
		return true;
	one = a->s.stage_of[path[from]];
	if (one > last && ascends_after(a, path, n, from + 1, one))
		return true;
	if (from + 1 == n || from == 0 || a->request.ascending)
		return false;
	two = a->s.stage_of[path[from + 1]];
	return one == two + 1 && two > last && ascends_after(a, path, n, from + 2, one);
}

static bool linked(const struct question *a, const int *path, int n)
{
	for (int i = 0; i < n; i++) {
		int v = path[i], w = path[(i + 1) % n];

		if (isinf(a->p.delay[v * a->p.n_nodes + w]) ||
		    isinf(a->p.delay[w * a->p.n_nodes + v]))
			return false;
	}
	return true;
}

/* Finds the earliest return by trying all sequences of nodes. */
static double brute_force(const struct question *a, int *path, int n)
{
	double best = INFINITY;

	if (n == a->p.length) {
		if (!ascends_after(a, path, n, 0, -1) || !linked(a, path, n))
			return INFINITY;
		return path_walk(&a->p, a->s.work, &a->q, path, NULL);
	}
	for (int v = 0; v < a->p.n_nodes; v++) {
		int stage = a->s.stage_of[v];

		if (stage <= 0 || a->barred[v] || (a->q.barred_stages >> stage & 1) ||
		    a->c->nodes[v].memory < 1)
			continue;
		path[n] = v;
		best = fmin(best, brute_force(a, path, n + 1));
	}
	return best;
}

static bool ask(struct question *a, struct rng *r)
{
	struct fixture_shape shape = { .most_stages = MOST_LENGTH, .most_replicas = 3,
				       .most_microbatches = 2, .most_memory = 2,
				       .grid = rng_below(r, 2), .absent = 0.1 };

	a->c = fixture_random_cluster(r, &shape);
	plan_request_init(&a->request);
	a->request.path_length = 1 + (int)rng_below(r, (uint32_t)a->c->n_stages);
	a->request.ascending = rng_below(r, 4) == 0;
	if (problem_init(&a->p, a->c, &a->request, NULL) != 0) {
		cluster_free(a->c);
		return false;
	}
	solution_init(&a->s, &a->p);
	assert_int_equal(construct_assignment(&a->s, &a->p, NULL), 0);
	a->q = (struct path_query){ .data_node = a->s.members[0], .start_s = rng_uniform(r),
				    .barred = a->barred, .taken = a->taken,
				    .n_taken = (int)rng_below(r, 8) };
	for (int v = 0; v < a->p.n_nodes; v++)
		a->barred[v] = a->s.stage_of[v] > 0 && rng_below(r, 6) == 0;
	if (rng_below(r, 3) == 0 && a->p.n_stages > 2)
		a->q.barred_stages = (uint64_t)1 << (1 + rng_below(r, (uint32_t)a->p.n_stages - 1));
	for (int i = 0; i < a->q.n_taken; i++) {
		double from = 10 * rng_uniform(r);

		a->taken[i] = (struct taken){ (int)rng_below(r, (uint32_t)a->p.n_nodes), from,
					      from + 3 * rng_uniform(r) };
	}
	return true;
}

static void put_away(struct question *a)
{
	solution_fini(&a->s);
	problem_fini(&a->p);
	cluster_free(a->c);
}

TEST(finds_the_path_that_is_home_first)
{
	int none = 0, delayed = 0;
	struct rng r;

	rng_init(&r, 12);
	for (int round = 0; round < 2000; round++) {
		struct question a = { 0 };
		struct arena arena = { 0 };
		struct path_search *f;
		int path[MOST_LENGTH], found[MOST_LENGTH];
		double expected, home = -1;

		if (!ask(&a, &r))
			continue;
		path[0] = a.q.data_node;
		expected = brute_force(&a, path, 1);
		f = path_search_new(&arena, &a.p, &a.s);
		assert_non_null(f);
		if (path_search_run(f, &a.q, found, &home)) {
			assert_true(fabs(home - expected) < 1e-6);
			assert_true(ascends_after(&a, found, a.p.length, 0, -1));
			assert_true(path_walk(&a.p, a.s.work, &a.q, found, NULL) == home);
			a.q.n_taken = 0;
			delayed += home > path_walk(&a.p, a.s.work, &a.q, found, NULL) + 1e-6;
		} else {
			assert_true(isinf(expected));
			none++;
		}
		arena_free(&arena);
		put_away(&a);
	}
	/* Fails if too few queries had no path, or too few paths had to wait. */
	assert_true(none > 50 && delayed > 300);
}
