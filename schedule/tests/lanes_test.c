/* Tests lanes: the packed timeline, the lanes themselves, and the search for their new paths. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "schedule/start/construct.h"
#include "schedule/improve/fast_simulate.h"
#include "schedule/improve/lanes.h"
#include "schedule/tests/fixture.h"

struct setting {
	struct cluster *c;
	struct plan_request q;
	struct problem p;
	struct solution s;
	struct fast_simulate e;
	struct lanes l;
};

/* Makes the first plan for a cluster. */
static void make(struct setting *x, const char *name, int microbatches)
{
	x->c = fixture_cluster(name);
	x->c->microbatches_per_data_node = microbatches;
	plan_request_init(&x->q);
	x->q.path_length = 4;
	assert_int_equal(problem_init(&x->p, x->c, &x->q, NULL), 0);
	solution_init(&x->s, &x->p);
	fast_simulate_init(&x->e, &x->p);
	lanes_init(&x->l, &x->p);
	assert_int_equal(construct_assignment(&x->s, &x->p, NULL), 0);
	assert_int_equal(construct_paths(&x->s, &x->p, 0, false, NULL, NULL), 0);
	lanes_fill_hops(&x->l, &x->s);
}

static void unmake(struct setting *x)
{
	lanes_fini(&x->l);
	fast_simulate_fini(&x->e);
	solution_fini(&x->s);
	problem_fini(&x->p);
	cluster_free(x->c);
}

static void run(struct setting *x)
{
	fast_simulate_set_paths(&x->e, &x->s);
	assert_true(fast_simulate_run(&x->e, INFINITY));
	lanes_fill(&x->l, &x->e);
}

static int *path_of(const struct setting *x, int mb)
{
	return x->s.path + (size_t)mb * (size_t)x->p.length;
}

/* Computes from the tasks of the run what the packed timeline should say about a node: the start
 * of a task that arrives at at_s, the start of the next task, and if a slot is free from at_s to
 * until_s. A task that waited for a slot counts as if it had arrived together with the task before
 * it. */
static void look(const struct setting *x, int node, double at_s, double until_s, double *free_s,
		 double *next_s, bool *has_slot)
{
	double arrival_s = 0;
	int held = 0;

	*free_s = at_s;
	*next_s = INFINITY;
	*has_slot = true;
	for (int i = 0; i < x->e.n_booked; i++) {
		int task = x->e.booked[i].task, step = task % x->e.steps;
		double end_s = x->e.start_s[task] + x->e.chain[task].duration_s + x->e.overhead_s;

		if (x->e.chain[task].node != node)
			continue;
		arrival_s = fmax(arrival_s, x->e.arrival_s[task]);
		if (arrival_s <= at_s)
			*free_s = fmax(*free_s, end_s);
		else
			*next_s = fmin(*next_s, x->e.start_s[task]);
		if (arrival_s > at_s)
			*has_slot = *has_slot && held < x->c->nodes[node].memory;
		if (arrival_s > until_s)
			return;
		held += (step < x->p.length) - (step > x->p.length);
	}
	*has_slot = *has_slot && held < x->c->nodes[node].memory;
}

TEST(rows_agree_with_the_run)
{
	int fits = 0, none = 0;
	struct setting x;
	struct rng r;

	rng_init(&r, 3);
	make(&x, "geo20_s8.json", 6);
	run(&x);
	for (int round = 0; round < 20000; round++) {
		int v = (int)rng_below(&r, (uint32_t)x.p.n_nodes), before, until;
		const struct slot_timeline_list *list = &x.l.timeline.list[v];
		double at_s = rng_uniform(&r) * x.e.makespan_s, free_s, next_s;
		double until_s = at_s + rng_uniform(&r) * 20;
		float over_s = 0, start_s;
		bool has_slot;

		look(&x, v, at_s, until_s, &free_s, &next_s, &has_slot);
		before = slot_timeline_before(&x.l.timeline, list, (float)at_s);
		until = slot_timeline_before(&x.l.timeline, list, (float)until_s);
		start_s = slot_timeline_start_s(&x.l.timeline, list, before, (float)at_s, 2,
						&over_s);
		next_s = fmax(0, free_s + 2 + x.e.overhead_s - next_s);
		assert_true(fabs((double)start_s - free_s) < 1e-3);
		assert_true(fabs((double)over_s - next_s) < 1e-3);
		assert_int_equal(slot_timeline_have_slot(list, before, until), has_slot);
		fits += over_s == 0 && has_slot;
		none += !has_slot;
	}
	assert_true(fits > 1000 && none > 1000);
	unmake(&x);
}

/* Each data node has six microbatches and three slots. It sends each of the last three when one of
 * the first three has finished. */
TEST(lanes_are_found)
{
	struct setting x;
	int n = 0;

	make(&x, "geo20_s8.json", 6);
	run(&x);
	for (int i = 0; i < x.p.n_mb; i++) {
		int next = x.l.next[i];

		if (next >= 0) {
			assert_int_equal(x.l.before[next], i);
			assert_int_equal(path_of(&x, i)[0], path_of(&x, next)[0]);
			assert_true(fabs(x.e.finish_s[i] + x.e.overhead_s -
					 x.e.start_s[next * x.e.steps]) < 1e-6);
			n++;
		}
		assert_int_equal(x.l.before[i] >= 0, i % 6 >= 3);
	}
	assert_int_equal(n, x.p.n_mb / 2);
	unmake(&x);
}

/* Takes a few lanes out and plans them again. In half of the cases, the lanes that the first lane
 * delays are ejected and planned, too. Returns true if all microbatches found paths. */
static bool plan_some(struct setting *x, struct rng *r)
{
	bool good = true;
	int n;

	lanes_take_out(&x->l, &x->s, (int)rng_below(r, (uint32_t)x->p.n_mb));
	n = x->l.n_out;
	for (int k = (int)rng_below(r, 3); k > 0; k--)
		lanes_take_out(&x->l, &x->s, (int)rng_below(r, (uint32_t)x->p.n_mb));
	if (rng_below(r, 2))
		good = lanes_put_in(&x->l, &x->s, n, true, 0, INFINITY) &&
		       lanes_eject(&x->l, &x->s);
	return good && lanes_put_in(&x->l, &x->s, x->l.n_out, rng_below(r, 2), 1, INFINITY);
}

TEST(lanes_keep_every_rule)
{
	int before[PLAN_MOST_PATH], after[PLAN_MOST_PATH], planned = 0, exchanged = 0, more = 0;
	struct setting x;
	struct rng r;
	int *was;

	rng_init(&r, 5);
	make(&x, "geo20_s8.json", 6);
	was = malloc((size_t)(x.p.n_mb * x.p.length) * sizeof(*was));
	assert_non_null(was);
	fixture_visits(&x.p, &x.s, before);
	for (int round = 0; round < 600; round++) {
		bool good;

		run(&x);
		memcpy(was, x.s.path, (size_t)(x.p.n_mb * x.p.length) * sizeof(*was));
		good = plan_some(&x, &r);
		more += x.l.n_out > 6;
		for (int i = 0; i < x.p.n_mb; i++) {
			const int *path = path_of(&x, i);

			assert_true(fixture_is_legal(&x.p, &x.s, path));
			assert_int_equal(path[0], was[i * x.p.length]);
			for (int h = 1; h + 1 < x.p.length; h++)
				exchanged += x.s.stage_of[path[h]] == x.s.stage_of[path[h + 1]] + 1;
		}
		lanes_restore(&x.l);
		if (!good)
			memcpy(x.s.path, was, (size_t)(x.p.n_mb * x.p.length) * sizeof(*was));
		planned += good;
		fixture_visits(&x.p, &x.s, after);
		assert_memory_equal(before, after, (size_t)x.p.n_stages * sizeof(*before));
		fast_simulate_set_paths(&x.e, &x.s);
		/* With exchanged stages the run can come to a standstill; the old paths are then
		 * restored. */
		if (!fast_simulate_run(&x.e, INFINITY))
			memcpy(x.s.path, was, (size_t)(x.p.n_mb * x.p.length) * sizeof(*was));
	}
	assert_true(planned > 300 && exchanged > 100 && more > 50);
	free(was);
	unmake(&x);
}

/* Compares the used rows of a node's list with the copies that slot_timeline_fill made. */
static void check_rows(const struct slot_timeline *g, int node, const struct slot_timeline *as,
		       const struct slot_timeline_list *was)
{
	const struct slot_timeline_list *list = &g->list[node];
	size_t first = (size_t)list->first, room = (size_t)list->room;

	assert_memory_equal(list, was, sizeof(*was));
	assert_memory_equal(g->arrival_s + first, as->kept_arrival_s + first,
			    room * sizeof(*g->arrival_s));
	assert_memory_equal(g->start_s + first, as->kept_start_s + first,
			    room * sizeof(*g->start_s));
	assert_memory_equal(g->free_s + first, as->kept_free_s + first, room * sizeof(*g->free_s));
	assert_memory_equal(g->task + first, as->kept_task + first, room * sizeof(*g->task));
}

TEST(restoring_undoes_everything)
{
	struct setting x, y;
	size_t paths, times;
	struct rng r;

	rng_init(&r, 6);
	make(&x, "geo20_s8.json", 6);
	make(&y, "geo20_s8.json", 6);
	run(&x);
	run(&y);
	paths = (size_t)(x.p.n_mb * x.p.length) * sizeof(int);
	times = (size_t)x.p.n_mb * sizeof(float);
	for (int round = 0; round < 200; round++) {
		plan_some(&x, &r);
		assert_true(x.l.timeline.n_changed > 0);
		lanes_restore(&x.l);
		for (int v = 0; v < x.p.n_nodes; v++)
			check_rows(&x.l.timeline, v, &y.l.timeline, &y.l.timeline.list[v]);
		assert_memory_equal(x.l.sent_s, y.l.sent_s, times);
		assert_memory_equal(x.l.home_s, y.l.home_s, times);
		memcpy(x.s.path, y.s.path, paths);
	}
	unmake(&x);
	unmake(&y);
}

/* The other four data nodes send their microbatches only at 1,000 s, so microbatch 2 meets no
 * other microbatch. Its predicted finish must therefore equal the simulated finish. Replacing one
 * node of its path must not make it finish earlier. */
TEST(exact_without_others)
{
	struct setting x;
	int mb = 2, *path;
	double promised_s;

	make(&x, "geo20_s8.json", 1);
	path = path_of(&x, mb);
	for (int i = 0; i < x.p.n_mb; i++)
		x.e.release_s[i] = i == mb ? 0 : 1000;
	run(&x);
	lanes_take_out(&x.l, &x.s, mb);
	assert_true(lanes_put_in(&x.l, &x.s, 1, true, 1, 0));
	promised_s = (double)x.l.home_s[mb];
	lanes_restore(&x.l);
	assert_true(x.l.back_s[0] == (float)promised_s);
	run(&x);
	assert_true(fabs(x.e.finish_s[mb] - promised_s) < 1e-3);
	for (int h = 1; h < x.p.length; h++) {
		int stage = x.s.stage_of[path[h]], was = path[h];

		for (int i = x.s.start[stage]; i < x.s.start[stage + 1]; i++) {
			path[h] = x.s.members[i];
			run(&x);
			assert_true(x.e.finish_s[mb] >= promised_s - 1e-3);
		}
		path[h] = was;
	}
	unmake(&x);
}

/* Returns true if a task of another microbatch starts while a newly planned microbatch has a task
 * on the same node. */
static bool overlaps(const struct setting *x, int n)
{
	const struct slot_timeline *g = &x->l.timeline;

	for (int v = 0; v < x->p.n_nodes; v++) {
		const struct slot_timeline_list *list = &g->list[v];

		for (int i = list->first; i + 1 < list->first + list->n; i++) {
			bool mine = false;

			for (int k = 0; k < n; k++)
				mine = mine || x->l.out[k] == g->task[i] / g->steps;
			if (mine && g->start_s[i + 1] < g->free_s[i] - 0.01f)
				return true;
		}
	}
	return false;
}

/* A lane that is planned as if it were alone delays other lanes. After the delayed lanes have
 * been ejected, no microbatch is delayed. */
TEST(delayed_lanes_are_ejected)
{
	int met = 0, left = 0;
	struct setting x;
	struct rng r;

	rng_init(&r, 7);
	make(&x, "geo20_s8.json", 6);
	run(&x);
	for (int round = 0; round < 200; round++) {
		int n;

		lanes_take_out(&x.l, &x.s, (int)rng_below(&r, (uint32_t)x.p.n_mb));
		n = x.l.n_out;
		assert_true(lanes_put_in(&x.l, &x.s, n, true, 0, INFINITY));
		if (overlaps(&x, n)) {
			met++;
			assert_true(x.l.over_s > 0);
			if (lanes_eject(&x.l, &x.s)) {
				assert_true(x.l.n_out > n && x.l.over_s == 0);
				assert_false(overlaps(&x, n));
				left++;
			}
		}
		lanes_restore(&x.l);
		fast_simulate_set_paths(&x.e, &x.s);
		assert_true(fast_simulate_run(&x.e, INFINITY));
		lanes_fill(&x.l, &x.e);
	}
	assert_true(met > 50 && left > 30);
	unmake(&x);
}
