#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/start/construct.h"
#include "schedule/execution/fast_simulate.h"
#include "schedule/improve/ruin_recreate.h"
#include "schedule/tests/fixture.h"

struct setting {
	struct cluster *c;
	struct plan_request q;
	struct problem p;
	struct solution s;
	struct fast_simulate e;
	struct timetable t;
	struct ruin_recreate r;
};

/* The first plan of a cluster, run. */
static void make(struct setting *x, const char *name, int microbatches)
{
	x->c = fixture_cluster(name);
	x->c->microbatches_per_data_node = microbatches;
	plan_request_init(&x->q);
	x->q.path_length = 4;
	assert_int_equal(problem_init(&x->p, x->c, &x->q, NULL), 0);
	assert_int_equal(solution_init(&x->s, &x->p), 0);
	assert_int_equal(fast_simulate_init(&x->e, &x->p), 0);
	assert_int_equal(timetable_init(&x->t, &x->p), 0);
	assert_int_equal(ruin_recreate_init(&x->r, &x->t), 0);
	assert_int_equal(construct_assignment(&x->s, &x->p, NULL), 0);
	assert_int_equal(construct_paths(&x->s, &x->p, 0, false, NULL, NULL), 0);
}

static void unmake(struct setting *x)
{
	ruin_recreate_fini(&x->r);
	timetable_fini(&x->t);
	fast_simulate_fini(&x->e);
	solution_fini(&x->s);
	problem_fini(&x->p);
	cluster_free(x->c);
}

static double run(struct setting *x)
{
	fast_simulate_set_paths(&x->e, &x->s);
	assert_true(fast_simulate_run(&x->e, INFINITY));
	timetable_fill(&x->t, &x->e);
	return x->e.makespan_s;
}

static int *path_of(const struct setting *x, int mb)
{
	return x->s.path + (size_t)mb * (size_t)x->p.length;
}

/* The rows of each node by start, and every task once, but for those of the last that was put in. */
static void check_lists(const struct setting *x)
{
	int n = 0;

	for (int v = 0; v < x->p.n_nodes; v++) {
		const struct timetable_row *row = x->t.row + x->t.list[v].first;

		for (int i = 0; i < x->t.list[v].n; i++) {
			assert_true(i == 0 || row[i - 1].start_s <= row[i].start_s);
			n += row[i].free_s > -INFINITY;
		}
	}
	assert_int_equal(n, (x->p.n_mb - 1) * x->t.steps);
}

/* Up to three go out and come back; how many of them by another way. */
static int reinsert_some(struct setting *x, struct rng *r, int *exchanged)
{
	int n = 1 + (int)rng_below(r, 3), first = (int)rng_below(r, 10), other = 0;
	int was[PLAN_MOST_PATH];

	for (int k = 0; k < n; k++)
		ruin_recreate_take_out(&x->r, &x->s, first + 7 * k);
	for (int k = n - 1; k >= 0; k--) {
		int *path = path_of(x, first + 7 * k);
		size_t size = (size_t)x->p.length * sizeof(*path);

		memcpy(was, path, size);
		assert_true(ruin_recreate_put_in(&x->r, &x->s, first + 7 * k, 2, path));
		assert_true(fixture_is_legal(&x->p, &x->s, path));
		assert_int_equal(path[0], was[0]);
		other += memcmp(path, was, size) != 0;
		for (int h = 1; h + 1 < x->p.length; h++)
			*exchanged +=
				x->s.stage_of[path[h]] == x->s.stage_of[path[h + 1]] + 1;
	}
	return other;
}

static void every_rule_is_kept(void **state)
{
	static const char *const names[] = { "shipped20.json", "geo20_s8.json" };
	int before[PLAN_MOST_PATH], after[PLAN_MOST_PATH], other = 0, exchanged = 0;
	struct rng r;

	(void)state;
	rng_init(&r, 5);
	for (int k = 0; k < 2; k++) {
		struct setting x;

		make(&x, names[k], 6);
		fixture_visits(&x.p, &x.s, before);
		for (int round = 0; round < 300; round++) {
			run(&x);
			other += reinsert_some(&x, &r, &exchanged);
			check_lists(&x);
			ruin_recreate_undo(&x.r);
			fixture_visits(&x.p, &x.s, after);
			assert_memory_equal(before, after,
					    (size_t)x.p.n_stages * sizeof(*before));
		}
		unmake(&x);
	}
	assert_true(other > 300 && exchanged > 100);
}

static void undone_all_is_as_before(void **state)
{
	struct timetable_row *row;
	struct timetable_list *list;
	struct setting x;
	size_t lists;
	int exchanged = 0;
	struct rng r;

	(void)state;
	rng_init(&r, 6);
	make(&x, "geo20_s8.json", 6);
	lists = (size_t)x.p.n_nodes * sizeof(*list);
	list = malloc(lists);
	assert_non_null(list);
	run(&x);
	memcpy(list, x.t.list, lists);
	for (int round = 0; round < 200; round++) {
		int *path = malloc((size_t)(x.p.n_mb * x.p.length) * sizeof(*path));

		assert_non_null(path);
		memcpy(path, x.s.path, (size_t)(x.p.n_mb * x.p.length) * sizeof(*path));
		if (round % 2) /* which stays out */
			ruin_recreate_take_out(&x.r, &x.s, 29);
		reinsert_some(&x, &r, &exchanged);
		ruin_recreate_undo(&x.r);
		assert_memory_equal(list, x.t.list, lists);
		for (int v = 0; v < x.p.n_nodes; v++) {
			row = x.t.whole + list[v].first;
			assert_memory_equal(row, x.t.row + list[v].first,
					    (size_t)list[v].n * sizeof(*row));
		}
		memcpy(x.s.path, path, (size_t)(x.p.n_mb * x.p.length) * sizeof(*path));
		free(path);
	}
	free(list);
	unmake(&x);
}

/* One microbatch a data node, four of them far out of the way: what is found for the
 * fifth is what a run then shows, and no other node in its place makes it shorter. */
static void alone_it_is_exact(void **state)
{
	struct setting x;
	int mb = 2, *path;
	double s, put_off_s = 0;

	(void)state;
	make(&x, "geo20_s8.json", 1);
	path = path_of(&x, mb);
	for (int i = 0; i < x.p.n_mb; i++)
		x.e.release_s[i] = i == mb ? 0 : 1000;
	run(&x);
	ruin_recreate_take_out(&x.r, &x.s, mb);
	assert_true(ruin_recreate_put_in(&x.r, &x.s, mb, 1, path));
	ruin_recreate_undo(&x.r);
	s = timetable_estimate(&x.t, mb, path, &put_off_s);
	run(&x);
	assert_true(fabs(x.e.finish_s[mb] - s) < 1e-9);
	for (int h = 1; h < x.p.length; h++) {
		int stage = x.s.stage_of[path[h]], was = path[h];

		for (int i = x.s.start[stage]; i < x.s.start[stage + 1]; i++) {
			path[h] = x.s.members[i];
			run(&x);
			assert_true(x.e.finish_s[mb] >= s - 1e-9);
		}
		path[h] = was;
	}
	unmake(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_is_kept),
		cmocka_unit_test(undone_all_is_as_before),
		cmocka_unit_test(alone_it_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
