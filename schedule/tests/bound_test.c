#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/bound.h"
#include "schedule/engine.h"
#include "schedule/tests/fixture.h"

/* Every order of the machine's tasks, with microbatches free to overtake one another: what the
 * search leaves out by symmetry. step[i] is how far microbatch i is. */
static void all_orders(const struct bound_machine *m, int *step, double *ready, double free_s,
		       double end_s, int left, double *best)
{
	int under_way = 0;

	if (left == 0) {
		*best = end_s < *best ? end_s : *best;
		return;
	}
	if (end_s >= *best)
		return;
	for (int i = 0; i < m->n; i++)
		under_way += step[i] > 0 && step[i] < (m->split ? 4 : 3);
	for (int i = 0; i < m->n; i++) {
		const double durations[] = { m->forward_s, m->loss_s, m->backward_s,
					     m->weights_s, 0 };
		double duration = durations[step[i]];
		double lag = step[i] == 0 ? m->lag_loss_s : step[i] == 1 ? m->lag_back_s : 0;
		double start = free_s > ready[i] ? free_s : ready[i], was = ready[i];

		if (step[i] == (m->split ? 4 : 3) || (step[i] == 0 && under_way == m->slots))
			continue;
		step[i]++;
		ready[i] = start + duration + lag;
		all_orders(m, step, ready, start + duration + m->overhead_s, start + duration, left - 1,
			   best);
		step[i]--;
		ready[i] = was;
	}
}

static void one_machine_is_exact(void **state)
{
	struct rng r;

	(void)state;
	rng_init(&r, 3);
	for (int round = 0; round < 150; round++) {
		struct bound_machine m = {
			.forward_s = rng_uniform(&r),
			.loss_s = rng_uniform(&r) / 2,
			.backward_s = 2 * rng_uniform(&r),
			.overhead_s = rng_uniform(&r) / 4,
			.lag_loss_s = 4 * rng_uniform(&r),
			.lag_back_s = 4 * rng_uniform(&r),
			.split = round % 3 == 0,
			.weights_s = rng_uniform(&r),
			.n = 1 + (int)rng_below(&r, 3),
			.slots = 1 + (int)rng_below(&r, 3),
		};
		int step[4] = { 0 };
		double ready[4] = { 0 }, best = INFINITY, s;
		bool exact;

		s = bound_machine_s(&m, 1000000, &exact);
		assert_true(exact);
		all_orders(&m, step, ready, 0, 0, (m.split ? 4 : 3) * m.n, &best);
		assert_true(fabs(s - best) < 1e-9);
		/* The formula stays below. */
		s = bound_machine_s(&m, 0, &exact);
		assert_false(exact);
		assert_true(s <= best + 1e-9);
	}
}

/* No plan whatever beats the bound: random ones, with random orders and releases. */
static void no_plan_is_below(void **state)
{
	struct rng r;

	(void)state;
	rng_init(&r, 9);
	for (int round = 0; round < 400; round++) {
		struct fixture_shape shape = { .most_stages = 5, .most_replicas = 3,
					       .most_microbatches = 4, .most_memory = 3,
					       .grid = round % 2 };
		struct cluster *c = fixture_random_cluster(&r, &shape);
		int length = 1 + (int)rng_below(&r, (uint32_t)c->n_stages);
		struct plan_request q;
		struct problem p;
		struct solution s;
		struct engine e;
		struct bound *b;

		plan_request_init(&q);
		q.path_length = length;
		q.split_backward = round % 3 == 0;
		assert_int_equal(problem_init(&p, c, &q, NULL), 0);
		assert_int_equal(solution_init(&s, &p), 0);
		assert_int_equal(engine_init(&e, &p), 0);
		for (int i = 0; i < p.n_nodes; i++)
			s.stage_of[i] = c->nodes[i].stage;
		solution_index(&s, &p);
		/* Exposure is not kept by random plans: only the data nodes' bounds hold. */
		memset(p.low, 0, (size_t)p.n_stages * sizeof(int));
		b = bound_new(&p, &s, NULL);
		assert_non_null(b);
		while (bound_step(b))
			;
		for (int again = 0; again < 20; again++) {
			struct plan *plan = fixture_random_plan(&r, c, length);

			for (int i = 0; i < plan->n_microbatches; i++)
				engine_set_path(&e, i, plan->microbatches[i].path);
			if (engine_run(&e, INFINITY))
				assert_true(bound_s(b) <= e.makespan_s * (1 + 1e-9));
			plan_free(plan);
		}
		bound_free(b);
		engine_fini(&e);
		solution_fini(&s);
		problem_fini(&p);
		cluster_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_machine_is_exact),
		cmocka_unit_test(no_plan_is_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
