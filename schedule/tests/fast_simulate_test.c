/* Tests that the fast simulation agrees with the reference event for event, also when it continues
 * a kept run. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tests/test.h"
#include "schedule/improve/fast_simulate.h"
#include "schedule/execution/simulate.h"
#include "schedule/tests/fixture.h"

/* Sets the paths and release times of the plan in the fast simulation. */
static void load(struct fast_simulate *e, const struct plan *p)
{
	for (int i = 0; i < p->n_microbatches; i++) {
		fast_simulate_set_path(e, i, p->microbatches[i].path);
		e->release_s[i] = p->microbatches[i].release_s;
	}
}

static void give_every_task_time(struct cluster *c)
{
	for (int i = 0; i < c->n_nodes; i++)
		c->nodes[i].loss_s += 0.25;
}

/* Lets the bytes of an activation take a random part of each link's delay, from none to all. */
static void occupy_links(struct rng *r, struct cluster *c)
{
	c->bytes_s = alloc_array((size_t)(c->n_nodes * c->n_nodes), sizeof(*c->bytes_s));
	for (int i = 0; i < c->n_nodes * c->n_nodes; i++)
		c->bytes_s[i] = c->delay_s[i] * (double)rng_below(r, 5) / 4;
}

static void first_come(struct plan *p)
{
	for (int i = 0; i < p->n_orders; i++)
		free(p->orders[i].tasks);
	p->n_orders = 0;
}

static void compare(const struct fast_simulate *e, const struct simulation *s, int length)
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

TEST(agrees_with_the_reference_event_for_event)
{
	int standstills = 0;
	struct rng r;

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
		struct fast_simulate e;

		give_every_task_time(c);
		if (round % 3 == 0)
			occupy_links(&r, c);
		plan_request_init(&q);
		q.path_length = length;
		assert_int_equal(problem_init(&p, c, &q, NULL), 0);
		fast_simulate_init(&e, &p);
		for (int again = 0; again < 3; again++) {
			struct plan *plan = fixture_random_plan(&r, c, length);
			int rc;

			first_come(plan);
			rc = simulate(c, plan, &s, NULL);
			load(&e, plan);
			assert_int_equal(fast_simulate_run(&e, INFINITY), rc == 0);
			standstills += rc != 0;
			if (rc == 0) {
				compare(&e, s, length);
				assert_true(fast_simulate_run(&e, s->iteration_s));
				assert_false(fast_simulate_run(&e, s->iteration_s * 0.999));
				simulation_free(s);
			}
			plan_free(plan);
		}
		fast_simulate_fini(&e);
		problem_fini(&p);
		cluster_free(c);
	}
	assert_true(standstills > 10); /* otherwise the test has covered too few standstills */
}

/* Gives up to three random microbatches the paths that they have in the plan `other`. Lists them in
 * mbs, and returns their number. */
static int edit(struct rng *r, const struct plan *other, struct solution *s, int n_mb, int length,
		int *mbs)
{
	int n = 1 + (int)rng_below(r, 3);

	for (int i = 0; i < n; i++) {
		mbs[i] = (int)rng_below(r, (uint32_t)n_mb);
		for (int k = 0; k < i; k++) {
			if (mbs[k] == mbs[i])
				return i;
		}
		memcpy(s->path + mbs[i] * length, other->microbatches[mbs[i]].path,
		       (size_t)length * sizeof(int));
	}
	return n;
}

struct edit_counts {
	int kept, cut, standstills, from_within;
};

/* Runs the paths of s twice: e continues its kept run, and `whole` runs from the start. Compares
 * the results. limit_s: as for fast_simulate_run. */
static bool try_edit(struct fast_simulate *e, struct fast_simulate *whole, const struct solution *s,
		     const int *mbs, int n, double limit_s, struct edit_counts *counts)
{
	double from_s = INFINITY;
	bool good;

	for (int i = 0; i < n; i++) {
		const int *path = s->path + mbs[i] * e->p->length;

		from_s = fmin(from_s, fast_simulate_changes_s(e, mbs[i], path));
		fast_simulate_set_path(e, mbs[i], path);
	}
	good = fast_simulate_run_from(e, from_s, limit_s);
	fast_simulate_set_paths(whole, s);
	assert_int_equal(fast_simulate_run(whole, limit_s), good);
	if (!good) {
		*(whole->late ? &counts->cut : &counts->standstills) += 1;
		return false;
	}
	assert_true(e->makespan_s == whole->makespan_s);
	assert_int_equal(e->n_booked, whole->n_booked);
	for (int i = 0; i < whole->n_mb; i++)
		assert_true(e->finish_s[i] == whole->finish_s[i]);
	for (int i = 0; i < whole->n_mb * whole->steps; i++) {
		assert_true(e->start_s[i] == whole->start_s[i]);
		assert_true(e->arrival_s[i] == whole->arrival_s[i]);
	}
	counts->kept++;
	counts->from_within += from_s > 0 && from_s < e->makespan_s;
	return true;
}

/* Restores the paths that the kept run had. */
static void take_back(struct fast_simulate *e, const struct solution *base, const int *mbs, int n)
{
	for (int i = 0; i < n; i++)
		fast_simulate_set_path(e, mbs[i], base->path + mbs[i] * e->p->length);
}

static void edit_often(struct rng *r, const struct cluster *c, struct fast_simulate *e,
		       struct fast_simulate *whole, struct solution *base, struct solution *s,
		       struct edit_counts *counts)
{
	const struct problem *p = e->p;
	int mbs[3];

	for (int k = 0; k < 25; k++) {
		double limit_s = rng_below(r, 3) ? INFINITY : 1.05 * e->makespan_s;
		struct plan *plan = fixture_random_plan(r, c, p->length);
		int n;

		solution_copy(s, base, p);
		n = edit(r, plan, s, p->n_mb, p->length, mbs);
		plan_free(plan);
		if (try_edit(e, whole, s, mbs, n, limit_s, counts) && k % 2) {
			fast_simulate_keep(e);
			solution_copy(base, s, p);
		} else {
			take_back(e, base, mbs, n);
		}
	}
}

static void random_edits(struct rng *r, const struct cluster *c, int length,
			 struct edit_counts *counts)
{
	struct plan *plan = fixture_random_plan(r, c, length);
	struct plan_request q;
	struct solution s, base;
	struct problem p;
	struct fast_simulate e, whole;

	plan_request_init(&q);
	q.path_length = length;
	assert_int_equal(problem_init(&p, c, &q, NULL), 0);
	solution_init(&s, &p);
	solution_init(&base, &p);
	fast_simulate_init(&e, &p);
	fast_simulate_init(&whole, &p);
	for (int i = 0; i < p.n_nodes; i++)
		base.stage_of[i] = c->nodes[i].stage;
	solution_index(&base, &p);
	memcpy(base.path, plan->visits, (size_t)(p.n_mb * length) * sizeof(int));
	plan_free(plan);
	fast_simulate_set_paths(&e, &base);
	if (fast_simulate_run(&e, INFINITY)) {
		fast_simulate_keep(&e);
		edit_often(r, c, &e, &whole, &base, &s, counts);
	}
	fast_simulate_fini(&e);
	fast_simulate_fini(&whole);
	solution_fini(&s);
	solution_fini(&base);
	problem_fini(&p);
}

TEST(a_continued_run_equals_a_whole_run)
{
	struct edit_counts counts = { 0 };
	struct rng r;

	rng_init(&r, 31);
	for (int round = 0; round < 1500; round++) {
		struct fixture_shape shape = { .most_stages = 6, .most_replicas = 5,
					       .most_microbatches = 8, .most_memory = 4,
					       .grid = round % 2 };
		struct cluster *c = fixture_random_cluster(&r, &shape);

		give_every_task_time(c);
		if (round % 3 == 0) { /* equal nodes: a changed path can keep all times */
			for (int i = 0; i < c->n_nodes; i++) {
				c->nodes[i].forward_s = c->nodes[i].loss_s = 0.5;
				c->nodes[i].backward_s = 0.75;
			}
			for (int i = 0; i < c->n_nodes * c->n_nodes; i++)
				c->delay_s[i] = 0.25;
		}
		if (round % 4 < 2)
			occupy_links(&r, c);
		random_edits(&r, c, 2 + (int)rng_below(&r, (uint32_t)c->n_stages - 1), &counts);
		cluster_free(c);
	}
	assert_true(counts.kept > 1000 && counts.cut > 100 && counts.standstills > 10);
	assert_true(counts.from_within > 1000);
}
