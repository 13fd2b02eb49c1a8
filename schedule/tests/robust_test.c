#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/execution/check.h"
#include "schedule/execution/fast_simulate.h"
#include "schedule/search/robust.h"
#include "schedule/execution/simulate.h"
#include "schedule/tests/fixture.h"

static void factors_are_one_on_average(void **state)
{
	struct jitter n = { .jitter = 0.4, .seed = 3 }, still = { .seed = 3 };
	double sum = 0, logs = 0, squares = 0;
	int draws = 0;

	(void)state;
	for (n.sample = 0; n.sample < 50; n.sample++) {
		for (int mb = 0; mb < 100; mb++) {
			for (int step = 0; step < 9; step++, draws++) {
				double f = jitter_factor(&n, mb, step, draws % 2), l = log(f);

				assert_true(f == jitter_factor(&n, mb, step, draws % 2));
				sum += f;
				logs += l;
				squares += l * l;
			}
		}
	}
	assert_true(fabs(sum / draws - 1) < 0.01);
	assert_true(fabs(sqrt(squares / draws - logs / draws * logs / draws) - 0.4) < 0.01);
	assert_true(jitter_factor(&n, 1, 2, false) != jitter_factor(&n, 1, 2, true));
	assert_true(jitter_factor(&n, 1, 2, false) != jitter_factor(&n, 2, 1, false));
	assert_true(jitter_factor(&still, 1, 2, false) == 1);
}

static double *factors_of(const struct jitter *n, int n_mb, int length)
{
	int steps = 2 * length + 1;
	double *f = malloc((size_t)(n_mb * (2 * steps + length)) * sizeof(*f)), *at = f;

	assert_non_null(f);
	for (int mb = 0; mb < n_mb; mb++) {
		for (int transfer = 0; transfer < 2; transfer++) {
			for (int s = 0; s < steps; s++)
				*at++ = jitter_factor(n, mb, s, transfer);
		}
		for (int hop = 0; hop < length; hop++)
			*at++ = jitter_factor(n, mb, steps + hop, false);
	}
	return f;
}

static void the_fast_simulation_varies_as_the_reference_does(void **state)
{
	int ended = 0;
	struct rng r;

	(void)state;
	rng_init(&r, 12);
	for (uint32_t round = 0; round < 500; round++) {
		struct fixture_shape shape = { .most_stages = 5, .most_replicas = 3,
					       .most_microbatches = 5, .most_memory = 3 };
		struct cluster *c = fixture_random_cluster(&r, &shape);
		int length = 1 + (int)rng_below(&r, (uint32_t)c->n_stages);
		struct plan *plan = fixture_random_plan(&r, c, length);
		struct jitter noise = { .jitter = 0.3, .seed = 5, .sample = round };
		struct simulation *s = NULL;
		struct plan_request q;
		struct problem p;
		struct fast_simulate e;
		double *factors;
		int rc;

		plan_request_init(&q);
		q.path_length = length;
		q.split_backward = plan->split_backward = round % 2;
		assert_int_equal(problem_init(&p, c, &q, NULL), 0);
		assert_int_equal(fast_simulate_init(&e, &p), 0);
		e.factors = factors = factors_of(&noise, p.n_mb, length);
		for (int o = 0; o < plan->n_orders; o++)
			plan->orders[o].n_tasks = 0;
		for (int i = 0; i < p.n_mb; i++) {
			fast_simulate_set_path(&e, i, plan->microbatches[i].path);
			e.release_s[i] = plan->microbatches[i].release_s;
		}
		rc = simulate_jittered(c, plan, &noise, &s, NULL);
		assert_int_equal(fast_simulate_run(&e, INFINITY), rc == 0);
		if (rc == 0) {
			assert_true(e.makespan_s == s->iteration_s);
			assert_true(fast_simulate_run(&e, s->iteration_s));
			ended++;
		}
		simulation_free(s);
		free(factors);
		fast_simulate_fini(&e);
		problem_fini(&p);
		plan_free(plan);
		cluster_free(c);
	}
	assert_true(ended > 300);
}

static struct plan *search(const struct cluster *c, const struct plan_request *q)
{
	struct plan *p = NULL;
	struct error err = { "" };

	if (plan_search(c, q, &p, &err) != 0)
		fail_msg("%s", err.text);
	return p;
}

/* On noise that neither has seen; each seed by itself may be lucky with either. */
static void robust_plans_are_shorter_on_average(void **state)
{
	struct cluster *c = fixture_cluster("geo20_s8.json");
	struct robust_outcome planned, robust;
	double mean_s = 0, p95_s = 0; /* of the robust ones, less those of the others */
	struct check_report report;
	struct plan_request q;

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct plan *a, *b;

		plan_request_init(&q);
		q.evaluations = 60000;
		q.fifo = true;
		q.seed = seed;
		a = search(c, &q);
		q.jitter = 0.2;
		b = search(c, &q);
		assert_int_equal(check_plan(c, b, NULL, NULL, &report), 0);
		assert_int_equal(report.n_breaches, 0);
		assert_int_equal(robust_expect(c, a, 0.2, 99, 400, &planned, NULL), 0);
		assert_int_equal(robust_expect(c, b, 0.2, 99, 400, &robust, NULL), 0);
		mean_s += robust.mean_s - planned.mean_s;
		p95_s += robust.p95_s - planned.p95_s;
		assert_true(robust.p95_s > robust.mean_s);
		/* What it says of itself is about what is seen. */
		assert_true(fabs(b->predicted.expected_s / robust.mean_s - 1) < 0.02);
		assert_true(b->predicted.jitter == 0.2 && b->predicted.standstills == 0);
		check_report_fini(&report);
		plan_free(a);
		plan_free(b);
	}
	/* By half of what has been seen, 0.8 and 1.7 s each, at the least. */
	if (!(mean_s / 4 < -0.4 && p95_s / 4 < -0.85))
		fail_msg("%f and %f s", mean_s / 4, p95_s / 4);
	cluster_free(c);
}

static void the_same_question_has_the_same_answer(void **state)
{
	struct cluster *c = fixture_cluster("geo20_s8.json");
	struct plan_request q;
	struct plan *once, *again;

	(void)state;
	plan_request_init(&q);
	q.evaluations = 20000;
	q.jitter = 0.2;
	once = search(c, &q);
	again = search(c, &q);
	assert_memory_equal(once->visits, again->visits, (size_t)(30 * 4) * sizeof(int));
	assert_true(again->predicted.expected_s == once->predicted.expected_s);
	plan_free(once);
	plan_free(again);
	cluster_free(c);
}

/* Free assignments, lost nodes, missing links, few evaluations, a cancelled search. */
static void every_answer_is_valid(void **state)
{
	struct rng r;
	int planned = 0;

	(void)state;
	rng_init(&r, 41);
	for (int round = 0; round < 60; round++) {
		struct fixture_shape shape = { .most_stages = 5, .most_replicas = 3,
					       .most_microbatches = 4, .most_memory = 3,
					       .absent = round % 3 ? 0 : 0.08,
					       .unpinned = round % 5 == 0 };
		struct cluster *c = fixture_random_cluster(&r, &shape);
		atomic_bool cancel = round % 4 == 1;
		struct simulation *s = NULL;
		struct check_report report;
		struct plan_request q;
		struct plan *p = NULL;
		int rc;

		plan_request_init(&q);
		q.evaluations = 1 + (int64_t)rng_below(&r, 400);
		q.free_assignment = round % 2;
		q.split_backward = round % 7 == 0;
		q.jitter = 0.5;
		q.samples = 1 + (int)rng_below(&r, 5);
		q.cancel = &cancel;
		rc = plan_search(c, &q, &p, NULL);
		if (rc == 0) {
			assert_int_equal(simulate(c, p, &s, NULL), 0);
			assert_true(s->iteration_s == p->predicted.iteration_s);
			assert_int_equal(check_plan(c, p, s, NULL, &report), 0);
			assert_int_equal(report.n_breaches, 0);
			check_report_fini(&report);
			simulation_free(s);
			planned++;
		} else {
			assert_true((rc == PLAN_INFEASIBLE || rc == PLAN_NOT_FOUND) && shape.absent > 0);
		}
		plan_free(p);
		cluster_free(c);
	}
	assert_true(planned > 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(factors_are_one_on_average),
		cmocka_unit_test(the_fast_simulation_varies_as_the_reference_does),
		cmocka_unit_test(robust_plans_are_shorter_on_average),
		cmocka_unit_test(the_same_question_has_the_same_answer),
		cmocka_unit_test(every_answer_is_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
