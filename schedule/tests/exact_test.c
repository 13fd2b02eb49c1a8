#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "schedule/search/search.h"
#include "schedule/bound/bound.h"
#include "schedule/execution/check.h"
#include "schedule/bound/exact.h"
#include "schedule/execution/simulate.h"
#include "schedule/tests/fixture.h"
#include "schedule/tests/oracle.h"

#define ORACLE_RUNS 300000
#define MOST_STEPS 100000000

/* One of every kind: memory tight or not, missing links, unequal or equal nodes. */
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
	     i++) { /* equal nodes: ties everywhere */
		c->nodes[i].forward_s = c->nodes[0].forward_s;
		c->nodes[i].backward_s = c->nodes[0].backward_s;
		c->nodes[i].loss_s = c->nodes[0].loss_s;
	}
	return c;
}

static double simulated_s(const struct cluster *c, const struct plan *plan)
{
	struct check_report report;
	struct simulation *s = NULL;
	struct error err = { "" };
	double iteration_s;

	if (simulate(c, plan, &s, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(check_plan(c, plan, s, NULL, &report), 0);
	if (report.n_breaches > 0)
		fail_msg("%s", report.breaches[0]);
	check_report_fini(&report);
	iteration_s = s->iteration_s;
	simulation_free(s);
	return iteration_s;
}

struct setting {
	struct plan_request q;
	struct problem p;
	struct solution s;
};

static int setting_init(struct setting *t, const struct cluster *c, int length, bool fifo,
			bool ascending)
{
	plan_request_init(&t->q);
	t->q.path_length = length;
	t->q.fifo = fifo;
	t->q.ascending = ascending;
	if (problem_init(&t->p, c, &t->q, NULL) != 0)
		return -1;
	assert_int_equal(solution_init(&t->s, &t->p), 0);
	for (int i = 0; i < t->p.n_nodes; i++)
		t->s.stage_of[i] = c->nodes[i].stage;
	solution_index(&t->s, &t->p);
	return 0;
}

static void setting_fini(struct setting *t)
{
	solution_fini(&t->s);
	problem_fini(&t->p);
}

/* The bound of everything else holds for the best there is. */
static void assert_bound_holds(const struct setting *t, double best_s)
{
	struct bound *b = bound_new(&t->p, &t->s, NULL);

	assert_non_null(b);
	while (bound_step(b))
		;
	if (bound_s(b) > best_s * (1 + 1e-9))
		fail_msg("bound %.17g above the optimum %.17g", bound_s(b), best_s);
	bound_free(b);
}

static void equals_plain_enumeration(void **state)
{
	int solved[2] = { 0 }, ordered = 0, none = 0;
	struct rng r;

	(void)state;
	rng_init(&r, 61);
	for (int round = 0; round < 700; round++) {
		struct cluster *c = tiny_cluster(&r, round);
		struct oracle_request o = {
			.path_length = 1 + (int)rng_below(&r, (uint32_t)c->n_stages),
			.ascending = round % 6 == 0,
			.fifo = round % 2,
			.most_runs = ORACLE_RUNS
		};
		struct oracle_answer answer;
		struct plan *plan = NULL;
		struct setting t;
		int rc;

		oracle_solve(c, &o, &answer);
		if (!answer.complete ||
		    setting_init(&t, c, o.path_length, o.fifo, o.ascending) != 0) {
			cluster_free(c);
			continue;
		}
		rc = exact_search(&t.p, &t.s, INFINITY, MOST_STEPS, NULL, &plan);
		if (isinf(answer.iteration_s)) {
			assert_null(plan);
			none++;
		} else {
			assert_int_equal(rc, 0);
			assert_non_null(plan);
			if (fabs(simulated_s(c, plan) / answer.iteration_s - 1) > 1e-9)
				fail_msg("round %d: %.17g, by enumeration %.17g", round,
					 simulated_s(c, plan), answer.iteration_s);
			assert_bound_holds(&t, answer.iteration_s);
			ordered += plan->n_orders > 0;
			plan_free(plan);
			/* Nothing is shorter than the shortest. */
			assert_int_equal(exact_search(&t.p, &t.s, answer.iteration_s, MOST_STEPS, NULL, &plan), 0);
			assert_null(plan);
			solved[o.fifo]++;
		}
		setting_fini(&t);
		cluster_free(c);
	}
	print_message("%d and %d solved, %d with an order, %d without a plan\n", solved[0],
		      solved[1], ordered, none);
	assert_true(solved[0] > 150 && solved[1] > 150 && ordered > 5 && none > 10);
}

/* The search says of small instances that its plan is the best, and it is. */
static void the_search_proves_small_instances(void **state)
{
	int proved = 0, rounds = 0;
	struct rng r;

	(void)state;
	rng_init(&r, 67);
	for (int round = 0; round < 60; round++) {
		struct cluster *c = tiny_cluster(&r, round);
		struct oracle_request o = {
			.path_length = 1 + (int)rng_below(&r, (uint32_t)c->n_stages),
			.fifo = round % 2,
			.most_runs = ORACLE_RUNS
		};
		struct oracle_answer answer;
		struct plan_request q;
		struct plan *plan = NULL;
		struct error err = { "" };
		int rc;

		plan_request_init(&q);
		q.path_length = o.path_length;
		q.fifo = o.fifo;
		q.evaluations = 1000;
		oracle_solve(c, &o, &answer);
		rc = plan_search(c, &q, &plan, &err);
		if (isinf(answer.iteration_s) && answer.complete)
			assert_int_equal(rc, PLAN_INFEASIBLE);
		if (rc == 0 && answer.complete) {
			assert_true(fabs(plan->predicted.iteration_s / answer.iteration_s - 1) <
				    1e-9);
			assert_true(plan->predicted.lower_bound_s <=
				    plan->predicted.iteration_s * (1 + 1e-9));
			proved += plan->predicted.lower_bound_s >=
				  plan->predicted.iteration_s * (1 - 1e-9);
			rounds++;
		}
		plan_free(plan);
		cluster_free(c);
	}
	assert_true(rounds > 30 && proved == rounds);
}

static bool proves(const struct cluster *c, int64_t evaluations, double *iteration_s)
{
	struct plan_request q;
	struct plan *plan = NULL;
	struct error err = { "" };
	bool proved;

	plan_request_init(&q);
	q.path_length = 3;
	q.evaluations = evaluations;
	assert_int_equal(plan_search(c, &q, &plan, &err), 0);
	*iteration_s = plan->predicted.iteration_s;
	proved = plan->predicted.lower_bound_s >= *iteration_s * (1 - 1e-9);
	plan_free(plan);
	return proved;
}

/* Ten nodes, four stages, six microbatches. */
static void who_asks_for_more_gets_more_branches(void **state)
{
	struct fixture_shape shape = { .most_stages = 4, .most_replicas = 4, .most_microbatches = 3,
				       .most_memory = 2 };
	struct cluster *c = NULL;
	double few_s, many_s;
	struct rng r;

	(void)state;
	rng_init(&r, 71);
	for (int round = 0; round < 22; round++) {
		cluster_free(c);
		c = fixture_random_cluster(&r, &shape);
	}
	assert_false(proves(c, 1500, &few_s));
	assert_true(proves(c, 200000, &many_s));
	assert_true(many_s <= few_s);
	cluster_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_plain_enumeration),
		cmocka_unit_test(the_search_proves_small_instances),
		cmocka_unit_test(who_asks_for_more_gets_more_branches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
