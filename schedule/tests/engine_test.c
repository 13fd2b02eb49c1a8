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

#include "schedule/engine.h"
#include "schedule/simulate.h"
#include "schedule/tests/fixture.h"

/* The plan's paths, priorities and releases into an engine, and its state after a run compared
 * with the reference, event for event. */
static void load(struct engine *e, const struct plan *p)
{
	for (int i = 0; i < p->n_microbatches; i++) {
		engine_set_path(e, i, p->microbatches[i].path);
		e->release_s[i] = p->microbatches[i].release_s;
	}
	if (p->n_orders == 0)
		return;
	e->priority = malloc((size_t)(e->n_mb * e->steps) * sizeof(*e->priority));
	assert_non_null(e->priority);
	for (int i = 0; i < e->n_mb * e->steps; i++)
		e->priority[i] = ENGINE_NO_PRIORITY;
	for (int o = 0; o < p->n_orders; o++) {
		for (int t = p->orders[o].n_tasks - 1; t >= 0; t--) {
			int mb = p->orders[o].tasks[t].microbatch;

			for (int s = 0; s < e->steps; s++) {
				static const enum task_kind kinds[] = { TASK_BACKWARD, TASK_LOSS,
									TASK_FORWARD };
				const struct engine_step *step = &e->chain[mb * e->steps + s];

				if (kinds[step->slots + 1] == p->orders[o].tasks[t].kind &&
				    step->node == p->orders[o].node)
					e->priority[mb * e->steps + s] = t;
			}
		}
	}
}

static void compare(const struct engine *e, const struct simulation *s, int length)
{
	assert_true(e->makespan_s == s->iteration_s);
	for (int i = 0; i < s->n_tasks; i++) {
		const struct sim_task *t = &s->tasks[i];
		int step = t->kind == TASK_FORWARD ? t->hop
						   : t->kind == TASK_LOSS ? length
									  : 2 * length - t->hop;

		assert_true(e->start_s[t->microbatch * e->steps + step] == t->start_s);
	}
}

static void agrees_with_the_reference_event_for_event(void **state)
{
	int standstills = 0;
	struct rng r;

	(void)state;
	rng_init(&r, 5);
	for (int round = 0; round < 3000; round++) {
		struct fixture_shape shape = { .most_stages = 6, .most_replicas = 4,
					       .most_microbatches = 6, .most_memory = 3,
					       .grid = round % 2 };
		struct cluster *c = fixture_random_cluster(&r, &shape);
		int length = 1 + (int)rng_below(&r, (uint32_t)c->n_stages);
		struct plan_request q;
		struct simulation *s = NULL;
		struct problem p;
		struct engine e;

		plan_request_init(&q);
		q.path_length = length;
		assert_int_equal(problem_init(&p, c, &q, NULL), 0);
		assert_int_equal(engine_init(&e, &p), 0);
		for (int again = 0; again < 3; again++) {
			struct plan *plan = fixture_random_plan(&r, c, length);
			int rc = simulate(c, plan, &s, NULL);

			free(e.priority);
			e.priority = NULL;
			load(&e, plan);
			assert_int_equal(engine_run(&e, INFINITY), rc == 0);
			standstills += rc != 0;
			if (rc == 0) {
				compare(&e, s, length);
				assert_true(engine_run(&e, s->iteration_s));
				assert_false(engine_run(&e, s->iteration_s * 0.999));
				simulation_free(s);
			}
			plan_free(plan);
		}
		engine_fini(&e);
		problem_fini(&p);
		cluster_free(c);
	}
	assert_true(standstills > 10); /* or the test would not have seen any */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_reference_event_for_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
