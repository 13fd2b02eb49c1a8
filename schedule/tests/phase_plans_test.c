/* Tests the plans of a whole run: every rule is kept in every phase, predictions are those of the
 * simulator, and a run whose nodes move never takes longer than a run with one allocation. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "schedule/execution/check.h"
#include "schedule/execution/simulate.h"
#include "schedule/search/phase_plans.h"
#include "schedule/tests/fixture.h"

struct question {
	struct cluster *c;
	struct skip_schedule schedule;
	struct phase_plans_request q;
};

static void ask(struct question *x, struct cluster *c, const char *schedule, uint64_t iterations)
{
	uint32_t most = (uint32_t)cluster_most_skipped(c);
	struct error err = { "" };

	*x = (struct question){ .c = c };
	if (skip_schedule_parse(&x->schedule, schedule, iterations, most, &err) != 0)
		fail_msg("%s", err.text);
	plan_request_init(&x->q.search);
	x->q.search.evaluations = 200;
	x->q.search.overlap_sync = true;
	x->q.search.free_assignment = true;
	x->q.schedule = &x->schedule;
	x->q.iterations = iterations;
	x->q.state_ratio = phase_plans_state_ratio(1);
}

static void answer(const struct question *x, struct phase_plans *out)
{
	struct error err = { "" };

	if (phase_plans_choose(x->c, &x->q, out, &err) != 0)
		fail_msg("%s", err.text);
}

/* Checks a phase's plan on a cluster with the stage sizes of that phase. */
static void assert_keeps_rules(const struct question *x, const struct phase_plan *p)
{
	struct cluster *c = cluster_copy(x->c);
	struct check_report report;
	struct simulation *s = NULL;

	assert_non_null(c);
	for (int k = 0; k < c->n_stages; k++) {
		c->stages[k] = p->plan->stage_start[k + 1] - p->plan->stage_start[k];
		assert_true(c->stages[k] >= 1);
	}
	c->microbatches_per_data_node = p->microbatches_per_data_node;
	assert_int_equal(p->plan->n_microbatches,
			 x->c->microbatches_per_data_node * x->c->stages[0]);
	assert_int_equal(p->plan->path_length, c->n_stages - (int)p->skip);
	assert_int_equal(p->plan->skip_share, p->share);
	assert_int_equal(simulate(c, p->plan, &s, NULL), 0);
	check_plan(c, p->plan, s, NULL, &report);
	if (report.n_breaches > 0)
		fail_msg("%s", report.breaches[0]);
	assert_true(p->seconds == (p->plan->overlap_sync ? s->total_s
							 : s->iteration_s + s->sync_s));
	check_report_fini(&report);
	simulation_free(s);
	cluster_free(c);
}

static bool visits_more(const struct question *x, const struct phase_plan *p)
{
	return p->share > 0 || (int)p->skip < cluster_most_skipped(x->c);
}

/* Checks that every stage that has been trained keeps one of its nodes. */
static void assert_stages_stay(const struct question *x, const int *before, const int *after,
			       bool was_whole)
{
	for (int s = 0; s < x->c->n_stages; s++) {
		int kept = 0;

		for (int v = 0; v < x->c->n_nodes; v++)
			kept += before[v] == s && after[v] == s;
		if (was_whole || stage_set_has(x->c->always, s))
			assert_true(kept > 0);
	}
}

/* Checks the moves into a phase: counts the moves again, and computes the longest fetch that a
 * moving node needs. */
static void assert_moves(const struct question *x, const struct phase_plan *was,
			 const struct phase_plan *is, bool was_whole)
{
	int n = x->c->n_nodes, moves = 0, before[32], after[32];
	bool stacks = x->q.stack && !was_whole && visits_more(x, is);
	double longest = 0, late;

	plan_stages(was->plan, n, before);
	plan_stages(is->plan, n, after);
	for (int v = 0; v < n; v++) {
		bool is_always = stage_set_has(x->c->always, after[v]);
		int source = stacks ? stage_set_source(x->c->always, after[v]) : after[v];
		double nearest = INFINITY;

		moves += before[v] != after[v];
		if (source == before[v] || !(was_whole || stacks || is_always))
			continue;
		for (int u = 0; u < n; u++)
			if (before[u] == source)
				nearest = fmin(nearest, x->c->sync_pair_s[u * n + v]);
		longest = fmax(longest, nearest * x->q.state_ratio);
	}
	assert_stages_stay(x, before, after, was_whole);
	assert_int_equal(is->moves, moves);
	assert_true(fabs(is->fetch_s - longest) < 1e-9);
	late = longest - (double)was->iterations * was->seconds;
	assert_true(fabs(is->delay_s - (late > 0 ? late : 0)) < 1e-9);
}

static void assert_list(const struct question *x, const struct phase_plan_list *l)
{
	double total = 0;
	bool whole = false;

	for (int k = 0; k < l->n; k++) {
		assert_int_equal(l->phases[k].from, x->schedule.phases[k].from);
		assert_int_equal(l->phases[k].skip, x->schedule.phases[k].skip);
		assert_int_equal(l->phases[k].share, x->schedule.phases[k].share);
		assert_keeps_rules(x, &l->phases[k]);
		if (k > 0)
			assert_moves(x, &l->phases[k - 1], &l->phases[k], whole);
		whole = whole || visits_more(x, &l->phases[k]);
		total += (double)l->phases[k].iterations * l->phases[k].seconds +
			 l->phases[k].delay_s;
	}
	assert_true(fabs(l->total_s - total) <= 1e-9 * total);
}

static void assert_one_allocation(const struct question *x, const struct phase_plan_list *l)
{
	int first[32], stage_of[32];

	plan_stages(l->phases[0].plan, x->c->n_nodes, first);
	for (int k = 0; k < l->n; k++) {
		const struct plan *p = l->phases[k].plan;

		assert_int_equal(l->phases[k].moves, 0);
		plan_stages(p, x->c->n_nodes, stage_of);
		for (int s = 0; s < x->c->n_stages; s++)
			assert_int_equal(p->stage_start[s + 1] - p->stage_start[s],
					 x->c->stages[s]);
		assert_memory_equal(stage_of, first, (size_t)x->c->n_nodes * sizeof(int));
	}
}

TEST(random_runs_keep_every_rule)
{
	struct fixture_shape shape = { .most_stages = 5,
				       .most_replicas = 4,
				       .most_microbatches = 3,
				       .most_memory = 3 };
	int moved = 0, late = 0;
	struct rng r;

	rng_init(&r, 17);
	for (int round = 0; round < 60; round++) {
		struct phase_plans p;
		struct question x;
		struct cluster *c;
		char text[48];
		int most;

		shape.grid = round % 2;
		shape.unpinned = round % 5 == 0;
		c = fixture_random_cluster(&r, &shape);
		if (c->n_stages > 2 && round % 3)
			c->always |= (stage_set)1 << (c->n_stages - 1);
		most = cluster_most_skipped(c);
		snprintf(text, sizeof(text),
			 round % 3   ? "%d@0,0@3,%d@900"
			 : round % 2 ? "%d,40%%:1,%d"
				     : "%d,1,%d",
			 most, round % 2 ? most : 1);
		ask(&x, c, text, 4 + rng_below(&r, 40));
		x.q.stack = rng_below(&r, 2);
		x.q.search.overlap_sync = round % 4 != 1;
		x.q.search.free_assignment = round % 6 != 3;
		x.q.state_ratio = round % 7 ? 3 : 300;
		answer(&x, &p);
		assert_list(&x, &p.without_moves);
		assert_one_allocation(&x, &p.without_moves);
		assert_list(&x, &p.with_moves);
		assert_true(p.with_moves.total_s <= p.without_moves.total_s * (1 + 1e-12));
		for (int k = 0; k < p.with_moves.n; k++) {
			moved += p.with_moves.phases[k].moves > 0;
			late += p.without_moves.phases[k].delay_s > 0;
		}
		phase_plans_fini(&p);
		cluster_free(c);
	}
	assert_true(moved > 10);
	assert_true(late > 0);
}

/* Returns a cluster of twelve equal nodes without delays in four stages. While the two middle
 * stages are skipped, ten of the nodes are useful in the other two stages. */
static struct cluster *equal_nodes(double sync_pair_s)
{
	struct cluster *c = cluster_alloc(12, 4, true);

	assert_non_null(c);
	c->always = 9;
	c->microbatches_per_data_node = 10;
	for (int v = 0; v < 12; v++) {
		c->nodes[v].stage = v / 3;
		c->nodes[v].forward_s = 1;
		c->nodes[v].backward_s = 1;
		c->nodes[v].memory = 4;
		for (int u = 0; u < 12; u++) {
			c->delay_s[v * 12 + u] = 0;
			c->sync_pair_s[v * 12 + u] = u == v ? 0 : sync_pair_s;
		}
	}
	for (int s = 0; s < 4; s++)
		c->stages[s] = 3;
	return c;
}

TEST(nodes_of_skipped_stages_help_the_others)
{
	struct cluster *c = equal_nodes(0.1);
	struct phase_plans p;
	struct question x;

	ask(&x, c, "2,0", 100);
	answer(&x, &p);
	assert_int_equal(p.with_moves.phases[0].plan->stage_start[1], 5);
	assert_int_equal(p.with_moves.phases[1].plan->stage_start[1], 3);
	assert_true(p.with_moves.phases[1].moves >= 4);
	assert_true(p.with_moves.phases[0].seconds < 0.8 * p.without_moves.phases[0].seconds);
	assert_true(p.with_moves.phases[1].seconds == p.without_moves.phases[1].seconds);
	phase_plans_fini(&p);
	cluster_free(c);
}

/* Two independent searches give hardly any node the same stage in both phases. So that few nodes
 * move, the search must also try allocations that differ little between the phases. */
TEST(nodes_move_between_near_allocations)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	struct phase_plans p;
	struct question x;

	c->always |= 32;
	ask(&x, c, "4@0,0@30%", 100);
	x.q.search.evaluations = 10000;
	answer(&x, &p);
	assert_list(&x, &p.with_moves);
	assert_true(p.with_moves.phases[1].moves > 0);
	assert_true(p.with_moves.phases[1].moves < 12);
	assert_true(p.with_moves.total_s < 0.99 * p.without_moves.total_s);
	phase_plans_fini(&p);
	cluster_free(c);
}

/* With state_ratio = 1e6, fetching a stage takes far longer than the phase before, and no node
 * may move. With state_ratio = 3, fetching is quick, and nodes move. */
TEST(a_move_that_takes_longer_than_it_gains_is_not_made)
{
	struct cluster *c = equal_nodes(0.1);
	struct phase_plans p;
	struct question x;

	ask(&x, c, "0,2", 100);
	x.q.state_ratio = 1e6;
	answer(&x, &p);
	assert_int_equal(p.with_moves.phases[1].moves, 0);
	assert_true(p.with_moves.total_s <= p.without_moves.total_s);
	phase_plans_fini(&p);
	ask(&x, c, "0,2", 100);
	x.q.state_ratio = 3;
	answer(&x, &p);
	assert_true(p.with_moves.phases[1].moves > 0);
	phase_plans_fini(&p);
	cluster_free(c);
}

TEST(the_run_is_written_as_json)
{
	struct cluster *c = equal_nodes(0.1);
	struct phase_plans p;
	struct question x;
	json_t *root, *phases;
	char *text;

	ask(&x, c, "2@0,0@30%,1@500", 100); /* the run ends before the last phase */
	answer(&x, &p);
	text = phase_plans_format(&p);
	assert_non_null(text);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "format")),
			    "skippipe.phases/1");
	phases = json_object_get(json_object_get(root, "with_moves"), "phases");
	assert_int_equal(json_array_size(phases), 2);
	for (size_t k = 0; k < 2; k++) {
		char *plan_text = json_dumps(json_object_get(json_array_get(phases, k), "plan"), 0);
		struct plan *plan = NULL;

		assert_int_equal(plan_parse(plan_text, strlen(plan_text), &plan, NULL), 0);
		assert_int_equal(plan->path_length, k == 0 ? 2 : 4);
		plan_free(plan);
		free(plan_text);
	}
	free(text);
	text = phase_plans_table(&p);
	assert_non_null(strstr(text, "31-100"));
	free(text);
	json_decref(root);
	phase_plans_fini(&p);
	cluster_free(c);
}

TEST(a_phase_without_a_plan_is_named)
{
	struct cluster *c = equal_nodes(0.1);
	struct error err = { "" };
	struct phase_plans p;
	struct question x;

	for (int v = 0; v < 12; v++)
		c->nodes[v].memory = 0;
	ask(&x, c, "2,0", 100);
	assert_int_equal(phase_plans_choose(c, &x.q, &p, &err), PLAN_INFEASIBLE);
	assert_non_null(strstr(err.text, "skipping 2 of 4 stages"));
	cluster_free(c);
}
