/* Tests the sketch: it improves bad paths a lot, keeps every rule, and depends only on the seed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "schedule/improve/anneal.h"
#include "schedule/execution/check.h"
#include "schedule/start/construct.h"
#include "schedule/improve/fast_simulate.h"
#include "schedule/start/sketch.h"
#include "schedule/search/multi_start.h"
#include "schedule/published/straight.h"
#include "schedule/tests/fixture.h"

struct setting {
	struct cluster *c;
	struct plan_request q;
	struct problem p;
	struct progress g;
	struct solution first, s;
};

/* Makes the problem geo20_s8 with random legal paths. */
static void make(struct setting *x)
{
	struct rng r;

	rng_init(&r, 3);
	x->c = fixture_cluster("geo20_s8.json");
	plan_request_init(&x->q);
	assert_int_equal(problem_init(&x->p, x->c, &x->q, NULL), 0);
	progress_init(&x->g, &x->p, 0);
	solution_init(&x->first, &x->p);
	solution_init(&x->s, &x->p);
	assert_int_equal(construct_assignment(&x->first, &x->p, NULL), 0);
	assert_int_equal(random_paths(&x->first, &x->p, &r, NULL), 0);
	solution_copy(&x->s, &x->first, &x->p);
}

static void unmake(struct setting *x)
{
	solution_fini(&x->first);
	solution_fini(&x->s);
	progress_fini(&x->g);
	problem_fini(&x->p);
	cluster_free(x->c);
}

/* Returns the iteration time in the execution model. */
static double seconds(const struct setting *x, const struct solution *s)
{
	struct fast_simulate e;
	double made_s;

	fast_simulate_init(&e, &x->p);
	fast_simulate_set_paths(&e, s);
	assert_true(fast_simulate_run(&e, INFINITY));
	made_s = e.makespan_s;
	fast_simulate_fini(&e);
	return made_s;
}

static size_t paths_size(const struct setting *x)
{
	return (size_t)(x->p.n_mb * x->p.length) * sizeof(int);
}

/* Random paths take several times as long as the best known plan, 63.99 s. */
TEST(turns_random_paths_into_a_good_start)
{
	struct check_report report;
	struct setting x;
	struct plan *plan;

	make(&x);
	sketch_paths(&x.s, &x.g, 50000);
	assert_true(seconds(&x, &x.first) > 150 && seconds(&x, &x.s) < 80);
	plan = solution_to_plan(&x.s, &x.p);
	assert_non_null(plan);
	check_plan(x.c, plan, NULL, NULL, &report);
	assert_int_equal(report.n_breaches, 0);
	check_report_fini(&report);
	plan_free(plan);
	unmake(&x);
}

TEST(the_same_seed_gives_the_same_paths)
{
	struct setting x, y;

	make(&x);
	make(&y);
	sketch_paths(&x.s, &x.g, 3000);
	sketch_paths(&y.s, &y.g, 3000);
	assert_memory_equal(x.s.path, y.s.path, paths_size(&x));
	y.q.seed = 2;
	solution_copy(&y.s, &y.first, &y.p);
	sketch_paths(&y.s, &y.g, 3000);
	assert_memory_not_equal(x.s.path, y.s.path, paths_size(&x));
	unmake(&x);
	unmake(&y);
}

TEST(a_sketch_can_be_cancelled)
{
	atomic_bool cancel = true;
	struct setting x;

	make(&x);
	x.q.cancel = &cancel;
	sketch_paths(&x.s, &x.g, INT64_MAX);
	assert_memory_equal(x.s.path, x.first.path, paths_size(&x));
	unmake(&x);
}

TEST(the_search_continues_from_the_better_start)
{
	struct setting x;
	struct anneal a;
	double before_s;

	make(&x);
	assert_int_equal(anneal_init(&a, &x.p, &x.first, 1, 1), 0);
	before_s = a.best_s;
	assert_int_equal(multi_start_sketched(&x.g, &a, 50000, 0, NULL), 0);
	assert_true(before_s > 150 && a.best_s < 80);
	assert_int_equal(x.g.n_history, 1);
	assert_float_equal(x.g.history[0][1], a.best_s, 0);
	assert_float_equal(seconds(&x, &a.best), a.best_s, 1e-9);

	for (int i = 0; i < 20000; i++)
		anneal_step(&a);
	before_s = a.best_s;
	assert_true(before_s < 70);
	assert_int_equal(multi_start_sketched(&x.g, &a, 3000, 0, NULL), 0);
	assert_float_equal(a.best_s, before_s, 0);
	assert_int_equal(x.g.n_history, 1);

	x.g.evaluations = 0;
	assert_int_equal(multi_start_sketched(&x.g, &a, 3000, 100, NULL), 0);
	assert_int_equal(x.g.evaluations, 201);
	assert_true(a.best_s <= before_s);
	anneal_fini(&a);
	unmake(&x);
}
