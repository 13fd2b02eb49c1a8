/* Tests the coverage bound: its routes are the fastest, and no plan is shorter than the bound. */
#include <math.h>

#include "base/tests/test.h"
#include "schedule/bound/bound.h"
#include "schedule/search/search.h"
#include "schedule/tests/fixture.h"
#include "schedule/bound/shortest_paths.h"

/* Finds the fastest path through exactly these stages by trying all sequences of nodes. */
static double fastest(const struct fixture_pinned *t, int *path, int visits, uint64_t stages,
		      double s)
{
	const struct problem *p = &t->p;
	size_t n = (size_t)p->n_nodes, at = (size_t)path[visits - 1];
	double best = INFINITY;

	if (visits == p->length) {
		uint64_t seen = 0;

		for (int i = 1; i < visits; i++)
			seen |= UINT64_C(1) << t->s.stage_of[path[i]];
		if (seen != stages || !fixture_is_legal(p, &t->s, path))
			return INFINITY;
		for (int i = 1; p->q->ascending && i < visits; i++)
			if (t->s.stage_of[path[i]] < t->s.stage_of[path[i - 1]])
				return INFINITY;
		return s + p->delay[at * n + (size_t)path[0]] + p->delay[(size_t)path[0] * n + at];
	}
	for (int v = 0; v < p->n_nodes; v++) {
		const struct cluster_node *to = &p->c->nodes[v];
		double way_s = s + p->delay[at * n + (size_t)v] + p->delay[(size_t)v * n + at] +
			       (to->forward_s + to->backward_s) * t->s.work[v];

		if (t->s.stage_of[v] < 1 || to->memory < 1)
			continue;
		path[visits] = v;
		best = fmin(best, fastest(t, path, visits + 1, stages, way_s));
	}
	return best;
}

TEST(routes_of_sets_are_the_fastest)
{
	int exchanged = 0, none = 0;
	struct rng r;

	rng_init(&r, 15);
	for (int round = 0; round < 150; round++) {
		struct fixture_shape shape = { .most_stages = 5, .most_replicas = 2,
					       .most_microbatches = 2, .most_memory = 2,
					       .absent = round % 3 ? 0 : 0.3 };
		struct cluster *c = fixture_random_cluster(&r, &shape);
		struct fixture_pinned t, straight;
		int length = 2 + (int)rng_below(&r, (uint32_t)c->n_stages - 1), path[8];
		uint64_t stages[8], before = 0;
		double least_s[8], straight_s[8];
		struct arena arena = { 0 };
		struct shortest_paths *w, *up;

		assert_int_equal(fixture_pinned_init(&t, c, length, false), 0);
		assert_int_equal(fixture_pinned_init(&straight, c, length, true), 0);
		path[0] = t.s.members[0];
		w = shortest_paths_new(&arena, &t.p, &t.s);
		up = shortest_paths_new(&arena, &straight.p, &straight.s);
		assert_in_range(shortest_paths_sets(w), 1, 6);
		shortest_paths_of_sets(w, path[0], least_s, stages);
		shortest_paths_of_sets(up, path[0], straight_s, NULL);
		for (int i = 0; i < shortest_paths_sets(w); i++) {
			double best = fastest(&t, path, 1, stages[i], 0);

			assert_int_equal(__builtin_popcountll(stages[i]), length - 1);
			assert_true(stages[i] != before && !(stages[i] & 1));
			assert_true(stages[i] >> c->n_stages == 0);
			before = stages[i];
			assert_true(isinf(best) ? isinf(least_s[i])
						: fabs(least_s[i] - best) < 1e-9);
			best = fastest(&straight, path, 1, stages[i], 0);
			assert_true(isinf(best) ? isinf(straight_s[i])
						: fabs(straight_s[i] - best) < 1e-9);
			exchanged += least_s[i] < straight_s[i] - 1e-9;
			none += isinf(least_s[i]);
		}
		arena_free(&arena);
		fixture_pinned_fini(&t);
		fixture_pinned_fini(&straight);
		cluster_free(c);
	}
	assert_true(exchanged > 20 && none > 5);
}

/* One data node with one slot, and two stages of one node each, one near and one far. Half of the
 * microbatches have to visit the far stage. */
TEST(far_stages_get_their_visits)
{
	struct cluster *c = cluster_alloc(3, 3, false);
	double near_s = 4 * 1 + 2 * 3, far_s = 4 * 5 + 2 * 3, alone_s;
	struct fixture_pinned t;
	struct bound *b;

	c->microbatches_per_data_node = 4;
	for (int i = 0; i < 3; i++) {
		c->stages[i] = 1;
		c->nodes[i].stage = i;
		c->nodes[i].forward_s = 1;
		c->nodes[i].backward_s = 2;
		c->nodes[i].memory = 1;
		for (int k = 0; k < 3; k++)
			c->delay_s[i * 3 + k] = i == 2 || k == 2 ? 5 : 1;
	}
	assert_int_equal(fixture_pinned_init(&t, c, 2, false), 0);
	b = bound_new(&t.p, &t.s, NULL);
	/* The first step computes the bound of the data node alone. In this bound, all microbatches
	 * visit the near stage. */
	assert_true(bound_step(b));
	alone_s = bound_s(b);
	assert_true(fabs(alone_s - 4 * near_s) < 1e-9);
	while (bound_step(b))
		;
	assert_true(bound_s(b) <= 2 * (near_s + far_s) + 1e-6);
	assert_true(bound_s(b) >= 2 * (near_s + far_s) * 0.997);
	bound_free(b);
	fixture_pinned_fini(&t);
	cluster_free(c);
}

/* If there are many sets of stages, only some routes are kept. The bound must still be below every
 * plan. */
TEST(no_plan_is_shorter_than_the_bound)
{
	int raised = 0;
	struct rng r;

	rng_init(&r, 21);
	for (int round = 0; round < 40; round++) {
		struct fixture_shape shape = { .most_stages = 10, .most_replicas = 3,
					       .most_microbatches = 6, .most_memory = 4 };
		struct cluster *c = fixture_random_cluster(&r, &shape);
		int length = 2 + (int)rng_below(&r, (uint32_t)c->n_stages - 1);
		struct plan *plan = NULL;
		struct fixture_pinned t;
		struct bound *b;
		double alone_s;

		assert_int_equal(fixture_pinned_init(&t, c, length, false), 0);
		t.q.evaluations = 1000;
		if (plan_search(c, &t.q, &plan, NULL) == 0) {
			b = bound_new(&t.p, &t.s, NULL);
			for (int i = 0; i < t.p.sizes[0] + t.p.n_stages - 1; i++)
				bound_step(b);
			alone_s = bound_s(b);
			while (bound_step(b))
				;
			assert_true(bound_s(b) <= plan->predicted.iteration_s * (1 + 1e-9));
			raised += bound_s(b) > alone_s * 1.001;
			bound_free(b);
			plan_free(plan);
		}
		fixture_pinned_fini(&t);
		cluster_free(c);
	}
	print_message("raised %d times\n", raised);
	assert_true(raised > 5);
}
