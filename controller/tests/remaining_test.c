/* How long an iteration takes in which microbatches run again, by hand on a small cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/rng.h"
#include "controller/iteration/remaining.h"
#include "schedule/execution/simulate.h"

enum { NODES = 4, STAGES = 2, DATA = 2 };

static const int stage_of[NODES] = { 0, 0, 1, 1 };
static const int shard_of[NODES] = { 0, 1, -1, -1 };
static const double TASK_S = 1, HOP_S = 0.5, FAR_S = 30;

/* Nodes 0 and 1 have the data; node 3 is far from node 0. */
static struct cluster *make_cluster(void)
{
	struct cluster *c = cluster_alloc(NODES, STAGES, false);

	assert_non_null(c);
	for (int i = 0; i < NODES * NODES; i++)
		c->delay_s[i] = HOP_S;
	c->delay_s[0 * NODES + 3] = c->delay_s[3 * NODES + 0] = FAR_S;
	for (int i = 0; i < NODES; i++) {
		c->nodes[i].forward_s = c->nodes[i].backward_s = c->nodes[i].loss_s = TASK_S;
		c->nodes[i].memory = 2;
	}
	return c;
}

/* 0 > 2 and 1 > 3: each has a pipeline of its own. */
static struct plan *make_plan(void)
{
	struct plan *p = plan_alloc(STAGES, NODES, DATA, 2);

	assert_non_null(p);
	p->path_length = 2;
	for (int i = 0; i < NODES; i++)
		p->assigned[i] = i;
	p->stage_start[1] = 2;
	p->stage_start[2] = NODES;
	for (int i = 0; i < DATA; i++) {
		p->microbatches[i].data_node = p->microbatches[i].path[0] = i;
		p->microbatches[i].path[1] = 2 + i;
	}
	return p;
}

struct fixture {
	struct cluster *c;
	struct plan *p;
	struct routes r;
};

static void begin(struct fixture *f)
{
	struct error err = { "" };

	f->c = make_cluster();
	f->p = make_plan();
	assert_int_equal(routes_init(&f->r, DATA, NODES), 0);
	assert_int_equal(routes_from_plan(&f->r, f->p, shard_of, DATA, 1, 5, &err), 0);
}

static void end(struct fixture *f)
{
	routes_fini(&f->r);
	plan_free(f->p);
	cluster_free(f->c);
}

static void lose(struct fixture *f, uint16_t gone)
{
	uint32_t changed[DATA];
	bool usable[NODES];

	for (int i = 0; i < NODES; i++)
		usable[i] = i != gone;
	assert_int_equal(routes_replace(&f->r, gone, usable, stage_of, f->c, changed), 1);
}

/* F, way, F, way, L, way, B, way, B: they end at 1, 2.5, 4, 5.5 and 7. */
static const double ALONE_S = 5 * TASK_S + 4 * HOP_S;

/* Microbatch i has come so far on its own. */
static void has_passed(struct fixture *f, uint32_t i, uint32_t tasks)
{
	struct microbatch *m = &f->r.microbatches[i];
	uint32_t passed = m->passed; /* what is told twice does not bring it on */

	for (uint32_t t = 0; t < tasks; t++) {
		enum work_kind kind = t < 2 ? WORK_FORWARD : t == 2 ? WORK_LOSS : WORK_BACKWARD;

		assert_int_equal(routes_take(m, routes_node_at(m, t), 5, WORK_ENDS, kind,
					     (t + 1) * TASK_S + t * HOP_S),
				 t >= passed);
	}
}

static double until(const struct fixture *f, double at_s)
{
	return remaining_until_s(f->c, &f->r, 5, at_s);
}

static void nothing_has_begun(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	assert_float_equal(until(&f, 0), ALONE_S, 1e-9);
	assert_float_equal(until(&f, 3), 3 + ALONE_S, 1e-9);
	end(&f);
}

static void what_is_done_stays(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	has_passed(&f, 0, 3);
	has_passed(&f, 1, 3);
	assert_float_equal(until(&f, 4.25), ALONE_S, 1e-9);
	has_passed(&f, 1, 4);
	assert_false(routes_home(&f.r.microbatches[1]));
	has_passed(&f, 1, 5);
	assert_true(routes_home(&f.r.microbatches[1]));
	f.r.microbatches[0].done = f.r.microbatches[1].done = true;
	assert_float_equal(until(&f, 4.25), 4.25, 1e-9);
	end(&f);
}

/* Node 2 is lost. Microbatch 0 goes by node 3, far away: from where it is. */
static void the_way_of_what_stands_in(void **state)
{
	static const struct {
		uint32_t passed;
		double at_s, until_s;
	} cases[] = {
		{ 1, 2, 2 + 4 * FAR_S + 4 * TASK_S },          /* all but its first F */
		{ 3, 4.25, 4.25 + 2 * FAR_S + 3 * TASK_S },    /* F there, then B and B: the loss stays */
		{ 4, 5.75, 5.75 + 2 * FAR_S + 3 * TASK_S },    /* what was on its way from node 2 is lost */
		{ 5, 7.5, 7.5 + FAR_S + 2 * TASK_S },          /* it is home */
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct fixture f;

		begin(&f);
		f.r.microbatches[1].done = true;
		has_passed(&f, 0, cases[k].passed);
		lose(&f, 2);
		assert_float_equal(until(&f, cases[k].at_s), cases[k].until_s, 1e-9);
		end(&f);
	}
}

/* Node 0 is lost, and microbatch 0 goes on under node 1: F there, at once; its loss, for which node 2 has
 * kept the input, then B. The gradient has been made before. */
static void another_data_node(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	f.r.microbatches[1].done = true;
	has_passed(&f, 0, 4);
	lose(&f, 0);
	assert_float_equal(until(&f, 6), 6 + 3 * TASK_S, 1e-9);
	routes_begin_again(&f.r, 0);
	assert_float_equal(until(&f, 6), 6 + ALONE_S, 1e-9);
	end(&f);
}

/* What has been begun ends when it would have, and keeps its node until then. */
static void what_runs_goes_on(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	f.r.microbatches[1].done = true;
	has_passed(&f, 0, 1);
	routes_take(&f.r.microbatches[0], 2, 5, WORK_STARTS, WORK_FORWARD, 1.5);
	assert_float_equal(until(&f, 2), ALONE_S, 1e-9);
	end(&f);
}

/* Node 3 is lost at once, and both ask for node 2 at 1.5. What waits there loses a second, which 1 has
 * not to lose: its last task takes three. */
static void what_runs_again_goes_first(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	lose(&f, 3);
	f.c->nodes[1].backward_s = 3 * TASK_S;
	assert_float_equal(until(&f, 0), ALONE_S + 2 * TASK_S, 1e-9);
	end(&f);
}

/* Where no microbatch can be run at all, nothing is said. */
static void not_known(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	lose(&f, 2);
	f.c->delay_s[0 * NODES + 3] = -1;
	assert_true(until(&f, 2) < 0);
	end(&f);
}

/* ---- improving ---- */

enum { MANY = 12, WIDE = 11, LAYERS = 4 };

static const int wide_stage_of[WIDE] = { 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3 };
static const int wide_shard_of[WIDE] = { 0, 1, 2, -1, -1, -1, -1, -1, -1, -1, -1 };

static struct cluster *random_cluster(struct rng *rng)
{
	struct cluster *c = cluster_alloc(WIDE, LAYERS, false);

	assert_non_null(c);
	for (int i = 0; i < WIDE * WIDE; i++)
		c->delay_s[i] = 0.2 + 2 * rng_uniform(rng);
	for (int i = 0; i < WIDE; i++) {
		c->nodes[i].forward_s = 0.5 + rng_uniform(rng);
		c->nodes[i].backward_s = 2 * c->nodes[i].forward_s;
		c->nodes[i].loss_s = 0.1;
		c->nodes[i].memory = 4;
	}
	return c;
}

static struct plan *random_plan(struct rng *rng)
{
	struct plan *p = plan_alloc(LAYERS, WIDE, MANY, 3);

	assert_non_null(p);
	for (int i = 0, s = -1; i < WIDE; i++) {
		while (s < wide_stage_of[i])
			p->stage_start[++s] = i;
		p->assigned[i] = i;
	}
	p->stage_start[LAYERS] = WIDE;
	p->path_length = 3;
	for (int i = 0; i < MANY; i++) {
		struct plan_microbatch *m = &p->microbatches[i];

		m->data_node = m->path[0] = i % 3;
		m->path[1] = 3 + (int)rng_below(rng, 3);
		m->path[2] = 6 + (int)rng_below(rng, 5);
	}
	return p;
}

/* What a run of the plan had done until then, told as agents tell it. */
static void play_until(struct routes *r, const struct simulation *sim, double at_s)
{
	static const enum work_kind kinds[] = { [TASK_FORWARD] = WORK_FORWARD, [TASK_LOSS] = WORK_LOSS,
						[TASK_BACKWARD] = WORK_BACKWARD };

	for (int i = 0; i < sim->n_tasks; i++) {
		const struct sim_task *t = &sim->tasks[i];
		struct microbatch *m = &r->microbatches[t->microbatch];

		if (t->start_s <= at_s)
			routes_take(m, (uint16_t)t->node, 7, WORK_STARTS, kinds[t->kind], t->start_s);
		if (t->end_s <= at_s)
			routes_take(m, (uint16_t)t->node, 7, WORK_ENDS, kinds[t->kind], t->end_s);
	}
}

/* From any moment of a run on, it ends when the reference says. */
static void it_is_the_execution_model(void **state)
{
	int n = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct simulation *sim = NULL;
		struct error err = { "" };
		struct routes r;
		struct rng rng;

		rng_init(&rng, seed);
		struct cluster *c = random_cluster(&rng);
		struct plan *p = random_plan(&rng);

		for (int i = 0; i < WIDE; i++)
			c->nodes[i].memory = 2 + (int)rng_below(&rng, 3);
		if (simulate(c, p, &sim, &err) == 0) { /* slots may wait in a circle */
			for (int k = 0; k < 5; k++) {
				double at_s = k == 0 ? 0 : sim->iteration_s * rng_uniform(&rng);

				assert_int_equal(routes_init(&r, MANY, WIDE), 0);
				assert_int_equal(routes_from_plan(&r, p, wide_shard_of, 3, 4, 7, &err), 0);
				if (k > 0)
					play_until(&r, sim, at_s);
				assert_float_equal(remaining_until_s(c, &r, 7, at_s), sim->iteration_s, 1e-6);
				routes_fini(&r);
				n++;
			}
		}
		simulation_free(sim);
		plan_free(p);
		cluster_free(c);
	}
	assert_true(n > 500);
}

/* Its gradient is in that node's sum: elsewhere it would be counted once more. */
static void what_was_counted_stays_when_all_begins_again(void **state)
{
	static const bool usable[NODES] = { true, true, true, true };
	uint32_t changed[DATA];
	struct fixture f;

	(void)state;
	for (int counted = 0; counted < 2; counted++) {
		begin(&f);
		f.c->nodes[2].forward_s = 10 * FAR_S;
		has_passed(&f, 0, 4);
		if (counted)
			assert_int_equal(routes_count(&f.r, 2, 0, WORK_BACKWARD), 0);
		routes_begin_again(&f.r, 0);
		remaining_improve(f.c, &f.r, 5, 8, usable, stage_of, 100000, changed, 0);
		assert_int_equal(f.r.microbatches[0].nodes[1], counted ? 2 : 3);
		end(&f);
	}
}

/* Not begun; at its data node; on its way from there; at the next. */
static void come_so_far(struct microbatch *m, uint32_t how)
{
	if (how >= 1)
		routes_take(m, m->nodes[0], 7, WORK_STARTS, WORK_FORWARD, 0);
	if (how >= 2)
		routes_take(m, m->nodes[0], 7, WORK_ENDS, WORK_FORWARD, 0.5);
	if (how >= 3)
		routes_take(m, m->nodes[1], 7, WORK_STARTS, WORK_FORWARD, 1.5);
}

/* Who may not move has not; what moved has a new attempt and is among the changed; and it is shorter,
 * more often than not. */
static void moves_are_legal_and_pay(void **state)
{
	static const int ahead[] = { 0, 1, 1, 2 }; /* hops from here on may move */
	int shorter = 0, moved = 0, starts_elsewhere = 0, goes_elsewhere = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		bool usable[WIDE], listed[MANY] = { false };
		uint16_t before[MANY][3];
		uint32_t changed[MANY], attempt[MANY];
		struct error err = { "" };
		struct routes r;
		struct rng rng;
		uint16_t gone;
		double was, is;
		int n, all;

		rng_init(&rng, seed);
		struct cluster *c = random_cluster(&rng);
		struct plan *p = random_plan(&rng);

		assert_int_equal(routes_init(&r, MANY, WIDE), 0);
		assert_int_equal(routes_from_plan(&r, p, wide_shard_of, 3, 4, 7, &err), 0);
		for (uint32_t i = 0; i < MANY; i++)
			come_so_far(&r.microbatches[i], i % 4);
		gone = (uint16_t)rng_below(&rng, WIDE);
		for (int i = 0; i < WIDE; i++)
			usable[i] = i != gone;
		n = routes_replace(&r, gone, usable, wide_stage_of, c, changed);
		assert_true(n >= 0);
		for (uint32_t i = 0; i < MANY; i++) {
			memcpy(before[i], r.microbatches[i].nodes, sizeof(before[i]));
			attempt[i] = r.microbatches[i].route.attempt;
		}
		was = remaining_until_s(c, &r, 7, 2);
		all = n > 0 ? remaining_improve(c, &r, 7, 2, usable, wide_stage_of, 100000,
					      changed, n) : 0;
		is = remaining_until_s(c, &r, 7, 2);
		assert_true(is <= was);
		shorter += is < was;
		assert_true(all >= n);
		moved += all - n;
		for (int k = 0; k < all; k++) {
			assert_true(changed[k] < MANY && !listed[changed[k]]);
			listed[changed[k]] = true;
		}
		for (uint32_t i = 0; i < MANY; i++) {
			const struct microbatch *m = &r.microbatches[i];
			bool again = attempt[i] > 7;

			starts_elsewhere += m->nodes[0] != before[i][0];
			goes_elsewhere += i % 4 == 3 && !again && m->moved;
			for (int h = 0; h < 3; h++) {
				assert_true(usable[m->nodes[h]]);
				assert_int_equal(wide_stage_of[m->nodes[h]], m->stages[h]);
				if (h < ahead[i % 4] && !(again && h == m->replaced))
					assert_int_equal(m->nodes[h], before[i][h]);
			}
			assert_int_equal(m->route.attempt > 7, listed[i]);
			assert_true(m->route.attempt <= 8);
			assert_true(again || m->moved == listed[i]);
		}
		routes_fini(&r);
		plan_free(p);
		cluster_free(c);
	}
	assert_true(shorter > 30);
	assert_true(moved > 60);
	assert_true(starts_elsewhere > 20);
	assert_true(goes_elsewhere > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_has_begun),
		cmocka_unit_test(what_is_done_stays),
		cmocka_unit_test(the_way_of_what_stands_in),
		cmocka_unit_test(another_data_node),
		cmocka_unit_test(what_runs_goes_on),
		cmocka_unit_test(what_runs_again_goes_first),
		cmocka_unit_test(not_known),
		cmocka_unit_test(it_is_the_execution_model),
		cmocka_unit_test(moves_are_legal_and_pay),
		cmocka_unit_test(what_was_counted_stays_when_all_begins_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
