/* Tests the bounds of one data node and of plans: bounds that claim to be exact are exact, and no
 * plan is shorter than its bound. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "schedule/bound/bound.h"
#include "schedule/improve/fast_simulate.h"
#include "schedule/bound/single_machine.h"
#include "schedule/tests/fixture.h"

/* The progress of a microbatch in the plain enumeration of all orders. */
struct machine_task {
	int step;
	double ready_s, sent_s;
};

/* Tries every order of the machine's tasks. Here microbatches may overtake one another, which the
 * search in single_machine.c excludes by symmetry. */
static void all_orders(const struct single_machine *m, struct machine_task *jobs, double free_s,
		       double end_s, double *best)
{
	int under_way = 0, left = 0, last = 3;

	for (int i = 0; i < m->n; i++) {
		left += last - jobs[i].step;
		under_way += jobs[i].step > 0 && jobs[i].step < last;
	}
	if (left == 0 || end_s >= *best) {
		*best = end_s < *best ? end_s : *best;
		return;
	}
	for (int i = 0; i < m->n; i++) {
		const double seconds[] = { m->forward_s, m->loss_s, m->backward_s };
		struct machine_task was = jobs[i], *j = &jobs[i];
		double start = free_s > j->ready_s ? free_s : j->ready_s, end;

		if (j->step == last || (j->step == 0 && under_way == m->slots))
			continue;
		end = start + seconds[j->step];
		j->ready_s = end + (j->step == 0   ? m->lag_loss_s
				    : j->step == 1 ? m->lag_back_s
						   : 0);
		if (j->step == 0)
			j->sent_s = end;
		if (j->step == 1)
			j->ready_s = fmax(j->ready_s, j->sent_s + m->lag_round_s + m->loss_s);
		j->step++;
		all_orders(m, jobs, end + m->overhead_s, end, best);
		*j = was;
	}
}

static struct single_machine random_machine(struct rng *r, int most_mb)
{
	return (struct single_machine){
		.forward_s = rng_uniform(r),
		.loss_s = rng_uniform(r) / 2,
		.backward_s = 2 * rng_uniform(r),
		.overhead_s = rng_uniform(r) / 4,
		.lag_loss_s = 4 * rng_uniform(r),
		.lag_back_s = 4 * rng_uniform(r),
		.lag_round_s = 8 * rng_uniform(r),
		.n = 1 + (int)rng_below(r, (uint32_t)most_mb),
		.slots = 1 + (int)rng_below(r, 4),
	};
}

TEST(one_machine_is_exact)
{
	struct rng r;

	rng_init(&r, 3);
	for (int round = 0; round < 400; round++) {
		struct single_machine m = random_machine(&r, 3);
		struct machine_task jobs[3] = { { 0 } };
		double best = INFINITY;
		bool exact;

		all_orders(&m, jobs, 0, 0, &best);
		assert_true(fabs(single_machine_least_s(&m, 1000, &exact) - best) < 1e-9);
		assert_true(exact);
		/* With merged states, and with the formula that needs no states, the bound must
		 * stay below the best order. */
		assert_true(single_machine_least_s(&m, 1, &exact) <= best + 1e-9);
		assert_true(single_machine_least_s(&m, 0, &exact) <= best + 1e-9);
		assert_false(exact);
	}
}

/* With few states, the bound is between the formula's bound and the exact result. */
TEST(merged_states_stay_below)
{
	int rounded = 0;
	struct rng r;

	rng_init(&r, 5);
	for (int round = 0; round < 100; round++) {
		struct single_machine m = random_machine(&r, 12);
		bool exact, few;
		double least = single_machine_least_s(&m, 3000, &exact);
		double merged = single_machine_least_s(&m, 2, &few);

		assert_true(!exact || merged <= least + 1e-9);
		assert_true(!few || fabs(merged - least) < 1e-9);
		assert_true(merged >= single_machine_least_s(&m, 0, &few));
		rounded += exact && merged < least - 1e-9;
	}
	assert_true(rounded > 5);
}

/* Random plans, with random orders and release times, must not be shorter than the bound. */
TEST(no_plan_is_shorter_than_the_bound)
{
	struct rng r;

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
		struct fast_simulate e;
		struct bound *b;

		plan_request_init(&q);
		q.path_length = length;
		assert_int_equal(problem_init(&p, c, &q, NULL), 0);
		solution_init(&s, &p);
		fast_simulate_init(&e, &p);
		for (int i = 0; i < p.n_nodes; i++)
			s.stage_of[i] = c->nodes[i].stage;
		solution_index(&s, &p);
		/* Random plans do not have equal exposure. All numbers of visits are therefore
		 * allowed, so that only the bounds of single data nodes are tested. */
		memset(p.low, 0, (size_t)p.n_stages * sizeof(int));
		for (int stage = 0; stage < p.n_stages; stage++)
			p.high[stage] = p.n_mb;
		b = bound_new(&p, &s, NULL);
		assert_non_null(b);
		while (bound_step(b))
			;
		for (int again = 0; again < 20; again++) {
			struct plan *plan = fixture_random_plan(&r, c, length);

			for (int i = 0; i < plan->n_microbatches; i++)
				fast_simulate_set_path(&e, i, plan->microbatches[i].path);
			if (fast_simulate_run(&e, INFINITY))
				assert_true(bound_s(b) <= e.makespan_s * (1 + 1e-9));
			plan_free(plan);
		}
		bound_free(b);
		fast_simulate_fini(&e);
		solution_fini(&s);
		problem_fini(&p);
		cluster_free(c);
	}
}
