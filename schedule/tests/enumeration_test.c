/* Compares bounds and plans of tiny clusters with a plain enumeration of all paths and orders
 * (oracle.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/tests/test.h"
#include "schedule/search/search.h"
#include "schedule/bound/bound.h"
#include "schedule/tests/fixture.h"
#include "schedule/tests/oracle.h"

#define ORACLE_RUNS 300000

/* Tiny clusters of every kind: with little or enough memory, missing links, unequal or equal nodes.
 */
static struct cluster *tiny_cluster(struct rng *r, int round)
{
	struct fixture_shape shape = { .most_stages = 4,
				       .most_replicas = 2,
				       .most_microbatches = 2 + round % 2,
				       .most_memory = round % 3 ? 1 : 3,
				       .absent = round % 4 ? 0 : 0.2,
				       .grid = round % 5 < 2 };
	struct cluster *c;

	for (;;) {
		c = fixture_random_cluster(r, &shape);
		if (c->stages[0] * c->microbatches_per_data_node <= 4)
			break;
		cluster_free(c);
	}
	for (int i = 1; round % 7 == 0 && i < c->n_nodes;
	     i++) { /* in some rounds all nodes are equal, so that many plans are equally short */
		c->nodes[i].forward_s = c->nodes[0].forward_s;
		c->nodes[i].backward_s = c->nodes[0].backward_s;
		c->nodes[i].loss_s = c->nodes[0].loss_s;
	}
	return c;
}

/* Draws a set of stages that every microbatch visits, and a path length that has room for this
 * set. */
static int draw_length(struct rng *r, struct cluster *c, int round)
{
	int least;

	for (int s = 1; s < c->n_stages && round % 4 == 1; s++)
		c->always |= (stage_set)(rng_below(r, 2)) << s;
	least = stage_set_count(c->always);
	return least + (int)rng_below(r, (uint32_t)(c->n_stages - least + 1));
}

/* The bounds hold for every order of tasks at the nodes, which includes first come, first
 * served. */
TEST(bounds_hold_for_the_best_plan)
{
	int held[2] = { 0 };
	struct rng r;

	rng_init(&r, 61);
	for (int round = 0; round < 700; round++) {
		struct cluster *c = tiny_cluster(&r, round);
		struct oracle_request o = {
			.path_length = draw_length(&r, c, round),
			.ascending = round % 6 == 0,
			.fifo = round % 2,
			.most_runs = ORACLE_RUNS
		};
		struct oracle_answer answer;
		struct fixture_pinned t;
		struct bound *b;

		oracle_solve(c, &o, &answer);
		if (!answer.complete || isinf(answer.iteration_s) ||
		    fixture_pinned_init(&t, c, o.path_length, o.ascending) != 0) {
			cluster_free(c);
			continue;
		}
		b = bound_new(&t.p, &t.s, NULL);
		assert_non_null(b);
		while (bound_step(b))
			;
		if (bound_s(b) > answer.iteration_s * (1 + 1e-9))
			fail_msg("round %d: bound %.17g above the optimum %.17g", round, bound_s(b),
				 answer.iteration_s);
		held[o.fifo]++;
		bound_free(b);
		fixture_pinned_fini(&t);
		cluster_free(c);
	}
	print_message("%d and %d bounds held\n", held[0], held[1]);
	assert_true(held[0] > 150 && held[1] > 150);
}

/* In the search's plans, nodes serve first come, first served. Here the oracle tries only this
 * order, too. In tiny clusters the search nearly always finds the best plan. The search may find
 * no plan only if the oracle finds no plan. */
TEST(the_search_finds_the_best_of_tiny_clusters)
{
	int rounds = 0, best = 0, refused = 0;
	double longer = 0;
	struct rng r;

	rng_init(&r, 6);
	for (int round = 0; round < 200; round++) {
		struct cluster *c = tiny_cluster(&r, round);
		struct oracle_request o = {
			.path_length = draw_length(&r, c, round),
			.fifo = true,
			.most_runs = ORACLE_RUNS
		};
		struct oracle_answer answer;
		struct plan_request q;
		struct plan *plan = NULL;
		struct error err = { "" };
		int rc;

		plan_request_init(&q);
		q.path_length = o.path_length;
		q.evaluations = 2000;
		oracle_solve(c, &o, &answer);
		rc = plan_search(c, &q, &plan, &err);
		if (isinf(answer.iteration_s) && answer.complete) {
			assert_true(rc == PLAN_INFEASIBLE || rc == PLAN_NOT_FOUND);
			refused++;
		}
		if (rc == 0 && answer.complete) {
			double ratio = plan->predicted.iteration_s / answer.iteration_s;

			assert_true(ratio > 1 - 1e-9);
			assert_true(plan->predicted.lower_bound_s <=
				    answer.iteration_s * (1 + 1e-9));
			best += ratio < 1 + 1e-9;
			longer += ratio - 1;
			rounds++;
		}
		plan_free(plan);
		cluster_free(c);
	}
	print_message("%d of %d are best, %.4f longer on average; %d refused\n", best, rounds,
		      longer / rounds, refused);
	assert_true(rounds > 100 && refused > 2);
	assert_true(best >= 0.95 * rounds && longer <= 0.01 * rounds);
}
