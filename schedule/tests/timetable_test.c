/* Tests the timetable's estimates and routes in cases with a known answer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "schedule/improve/fast_simulate.h"
#include "schedule/tests/fixture.h"
#include "schedule/improve/timetable.h"

struct setting {
	struct cluster *c;
	struct plan_request q;
	struct problem p;
	struct solution s;
	struct fast_simulate e;
	struct timetable t;
	struct arena arena; /* owns the candidates */
	struct candidate_lists candidates;
};

/* Makes a cluster of one data node with `microbatches` microbatches, and three more stages of up to
 * three nodes each. */
static void make(struct setting *x, struct rng *r, int microbatches)
{
	int sizes[] = { 1, 1 + (int)rng_below(r, 3), 1 + (int)rng_below(r, 3),
			1 + (int)rng_below(r, 3) };
	int n = sizes[0] + sizes[1] + sizes[2] + sizes[3], at = 0;

	x->arena = (struct arena){ 0 };
	x->c = cluster_alloc(n, 4, false);
	assert_non_null(x->c);
	memcpy(x->c->stages, sizes, sizeof(sizes));
	x->c->microbatches_per_data_node = microbatches;
	x->c->dispatch_overhead_s = 0.1;
	for (int stage = 0; stage < 4; stage++) {
		for (int k = 0; k < sizes[stage]; k++, at++) {
			x->c->nodes[at].stage = stage;
			x->c->nodes[at].forward_s = 0.1 + rng_uniform(r);
			x->c->nodes[at].backward_s = 0.1 + rng_uniform(r);
			x->c->nodes[at].loss_s = 0.1;
			x->c->nodes[at].memory = 3;
		}
	}
	for (int i = 0; i < n * n; i++)
		x->c->delay_s[i] = rng_uniform(r);
	plan_request_init(&x->q);
	x->q.path_length = 4;
	assert_int_equal(problem_init(&x->p, x->c, &x->q, NULL), 0);
	solution_init(&x->s, &x->p);
	fast_simulate_init(&x->e, &x->p);
	timetable_init(&x->t, &x->p);
	candidate_lists_init(&x->candidates, &x->arena, &x->p, 8);
	for (int i = 0; i < n; i++)
		x->s.stage_of[i] = x->c->nodes[i].stage;
	solution_index(&x->s, &x->p);
}

static void unmake(struct setting *x)
{
	arena_free(&x->arena);
	timetable_fini(&x->t);
	fast_simulate_fini(&x->e);
	solution_fini(&x->s);
	problem_fini(&x->p);
	cluster_free(x->c);
}

static void draw_path(const struct setting *x, struct rng *r, int *path)
{
	for (int stage = 0; stage < 4; stage++) {
		int size = x->s.start[stage + 1] - x->s.start[stage];

		path[stage] =
			x->s.members[x->s.start[stage] + (int)rng_below(r, (uint32_t)size)];
	}
}

static double run(struct setting *x)
{
	fast_simulate_set_paths(&x->e, &x->s);
	assert_true(fast_simulate_run(&x->e, INFINITY));
	return x->e.makespan_s;
}

/* For a single microbatch, the estimate must equal the simulated time, and the route must be the
 * best of all routes. */
TEST(exact_for_a_single_microbatch)
{
	struct rng r;

	rng_init(&r, 41);
	for (int round = 0; round < 300; round++) {
		double best = INFINITY, put_off_s = 0, routed;
		int path[4], other[4];
		struct setting x;

		make(&x, &r, 1);
		draw_path(&x, &r, x.s.path);
		run(&x);
		timetable_fill(&x.t, &x.e);
		memcpy(path, x.s.path, sizeof(path));
		assert_true(timetable_route(&x.t, &x.s, &x.candidates, 0, -1, 1, path));
		for (int tries = 0; tries < 400; tries++) {
			double s;

			draw_path(&x, &r, other);
			memcpy(x.s.path, other, sizeof(other));
			s = run(&x);
			assert_true(fabs(s - timetable_estimate(&x.t, 0, other, &put_off_s)) <
				    1e-9);
			best = fmin(best, s);
		}
		memcpy(x.s.path, path, sizeof(path));
		routed = run(&x);
		assert_true(routed <= best + 1e-9);
		assert_true(put_off_s == 0);
		unmake(&x);
	}
}

static void assert_whole(const struct timetable *t)
{
	for (int task = 0; task < t->p->n_mb * t->steps; task++)
		assert_memory_equal(&t->row[t->row_of[task]], timetable_row(t, task),
				    sizeof(*t->row));
}

TEST(banned_nodes_are_not_visited)
{
	int routed = 0, none = 0;
	struct rng r;

	rng_init(&r, 43);
	for (int round = 0; round < 300; round++) {
		struct setting x;
		int path[4], banned;

		make(&x, &r, 2);
		draw_path(&x, &r, x.s.path);
		draw_path(&x, &r, x.s.path + 4);
		run(&x);
		timetable_fill(&x.t, &x.e);
		memcpy(path, x.s.path + 4, sizeof(path));
		banned = path[2];
		if (timetable_route(&x.t, &x.s, &x.candidates, 1, banned, 1, path)) {
			assert_int_equal(path[0], x.s.path[4]);
			for (int stage = 1; stage < 4; stage++)
				assert_int_equal(x.s.stage_of[path[stage]], stage);
			assert_int_not_equal(path[2], banned);
			routed++;
		} else { /* the stage has no other node, so there is no other route */
			assert_int_equal(x.s.start[3] - x.s.start[2], 1);
			none++;
		}
		assert_whole(&x.t);
		unmake(&x);
	}
	assert_true(routed > 50 && none > 50);
}

/* Makes a cluster with two microbatches, and with nodes 1 and 2 in stage 1. Tasks take 1 s, but the
 * forward task at node 1 takes 3 s. Transfers take no time. */
static void make_five(struct setting *x, struct rng *r)
{
	do {
		make(x, r, 2);
		if (x->p.n_nodes != 5 || x->p.sizes[1] != 2)
			unmake(x);
	} while (x->p.n_nodes != 5 || x->p.sizes[1] != 2);
	x->c->dispatch_overhead_s = x->e.overhead_s = 0;
	for (int i = 0; i < 5; i++)
		x->c->nodes[i].forward_s = x->c->nodes[i].backward_s = x->c->nodes[i].loss_s = 1;
	x->c->nodes[1].forward_s = 3;
	memset(x->p.delay, 0, 25 * sizeof(double));
}

/* The second microbatch visits node 2. The estimate for its path through node 1 must include the
 * wait for the first microbatch there. */
TEST(estimates_include_waits)
{
	double put_off_s = 0;
	struct setting x;
	struct rng r;

	rng_init(&r, 47);
	make_five(&x, &r);
	memcpy(x.s.path, (int[]){ 0, 1, 3, 4, 0, 2, 3, 4 }, 8 * sizeof(int));
	run(&x);
	timetable_fill(&x.t, &x.e);
	/* Microbatch 0 arrives at node 1 at 1 s and stays until 4 s. Microbatch 1 is sent at 2 s,
	 * and its next tasks end at 3, 4 and 5 s. */
	assert_true(timetable_row(&x.t, 1)->start_s == 1 &&
		    timetable_row(&x.t, 9 + 1)->start_s == 2);
	assert_true(x.t.home_s[0] == 11 && x.t.home_s[1] == 10);
	/* At node 1, microbatch 1 would start at 4 s, end at 7 s instead of 3 s, and finish at 14
	 * s. */
	assert_true(timetable_estimate(&x.t, 1, (int[]){ 0, 1, 3, 4 }, &put_off_s) == 14);
	assert_whole(&x.t);
	unmake(&x);
}

/* In the same cluster, both microbatches visit node 1. The second waits there for the first from 2
 * s to 4 s. */
TEST(lists_the_waits)
{
	struct timetable_wait waits[4] = { { 0 } };
	struct setting x;
	struct rng r;

	rng_init(&r, 47);
	make_five(&x, &r);
	memcpy(x.s.path, (int[]){ 0, 1, 3, 4, 0, 1, 3, 4 }, 8 * sizeof(int));
	run(&x);
	timetable_fill(&x.t, &x.e);
	assert_true(timetable_row(&x.t, 9 + 1)->arrival_s == 2 &&
		    timetable_row(&x.t, 9 + 1)->start_s == 4);
	assert_int_equal(timetable_waits(&x.t, 1, waits, 4), 1);
	assert_int_equal(waits[0].waiting, 1);
	assert_int_equal(waits[0].blocking, 0);
	assert_int_equal(waits[0].node, 1);
	assert_int_equal(timetable_waits(&x.t, 1, waits, 0), 0);
	assert_int_equal(timetable_waits(&x.t, 0, waits, 4), 0);
	unmake(&x);
}
