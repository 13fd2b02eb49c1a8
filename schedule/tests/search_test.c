/* Tests the search as a whole: iteration times that it must reach, determinism, limits,
 * announcements, repairs and baselines. */
#include <pthread.h>
#include <stdatomic.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "schedule/execution/check.h"
#include "schedule/format/regions.h"
#include "schedule/search/search.h"
#include "schedule/execution/simulate.h"
#include "schedule/tests/fixture.h"

/* Checks that the checker passes the plan, and that its predictions are those of the simulator. */
static void assert_good(const struct cluster *c, const struct plan *p, const bool *excluded,
			bool pins)
{
	struct check_options options = { .excluded = excluded, .pins = pins };
	struct check_report report;
	struct simulation *s = NULL;
	struct error err = { "" };

	if (simulate(c, p, &s, &err) != 0)
		fail_msg("%s", err.text);
	check_plan(c, p, s, &options, &report);
	if (report.n_breaches > 0)
		fail_msg("%s", report.breaches[0]);
	assert_true(s->iteration_s == p->predicted.iteration_s);
	assert_true(s->sync_s == p->predicted.sync_s);
	assert_true(p->predicted.lower_bound_s <= s->iteration_s * (1 + 1e-9));
	check_report_fini(&report);
	simulation_free(s);
}

static struct plan *search(const struct cluster *c, const struct plan_request *q)
{
	struct plan *p = NULL;
	struct error err = { "" };

	if (plan_search(c, q, &p, &err) != 0)
		fail_msg("%s", err.text);
	return p;
}

/* In the best plan for shipped20, all microbatches of a data node take one path. */
TEST(tied_starts_find_the_best_plan_soon)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct cluster *c = fixture_cluster("shipped20.json");
		struct plan_request q;
		struct plan *p;

		plan_request_init(&q);
		q.evaluations = 2500;
		q.seed = seed;
		p = search(c, &q);
		assert_good(c, p, NULL, true);
		assert_true(p->predicted.iteration_s < 33.14);
		plan_free(p);
		cluster_free(c);
	}
}

/* With overlap_sync, the search must find a plan whose last sum of gradients ends earlier than in
 * the plan that is found without overlap_sync. */
TEST(plans_expect_overlapping_sums)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	struct plan *apart, *overlapped;
	struct simulation *s = NULL;
	struct plan_request q;

	plan_request_init(&q);
	q.evaluations = 20000;
	q.free_assignment = true;
	apart = search(c, &q);
	q.overlap_sync = true;
	overlapped = search(c, &q);
	assert_good(c, overlapped, NULL, false);
	assert_true(overlapped->overlap_sync &&
		    overlapped->predicted.total_s <=
			    overlapped->predicted.iteration_s + overlapped->predicted.sync_s);
	assert_int_equal(simulate(c, apart, &s, NULL), 0);
	assert_true(apart->predicted.total_s == 0);
	assert_true(overlapped->predicted.total_s < s->total_s);
	simulation_free(s);
	plan_free(apart);
	plan_free(overlapped);
	cluster_free(c);
}

/* Iteration times that the search must reach with 20,000 evaluations. */
TEST(reaches_known_plan_lengths)
{
	static const struct {
		const char *name;
		double given_s;
	} want[] = { { "shipped20.json", 34.8 },
		     { "geo18_s4.json", 31.5 },
		     { "geo20_s8.json", 65 },
		     { "one20_s16.json", 105.5 } };

	for (int i = 0; i < 4; i++) {
		struct cluster *c = fixture_cluster(want[i].name);
		struct plan_request q;
		struct plan *p;

		plan_request_init(&q);
		q.evaluations = 20000;
		p = search(c, &q);
		assert_good(c, p, NULL, true);
		if (p->predicted.iteration_s > want[i].given_s)
			fail_msg("%s: %f", want[i].name, p->predicted.iteration_s);
		plan_free(p);
		cluster_free(c);
	}
}

TEST(same_seed_same_plan)
{
	struct cluster *c = fixture_cluster("geo20_s8.json");
	struct plan_request q;

	for (int free_assignment = 0; free_assignment < 2; free_assignment++) {
		struct plan *a, *b;

		plan_request_init(&q);
		q.evaluations = 3000;
		q.seed = 17;
		q.free_assignment = free_assignment;
		a = search(c, &q);
		b = search(c, &q);
		assert_memory_equal(a->visits, b->visits, (size_t)(30 * 4) * sizeof(int));
		assert_int_equal(a->search.evaluations, b->search.evaluations);
		plan_free(b);
		q.seed = 18;
		b = search(c, &q);
		assert_int_not_equal(
			memcmp(a->visits, b->visits, (size_t)(30 * 4) * sizeof(int)), 0);
		assert_good(c, a, NULL, !free_assignment);
		plan_free(a);
		plan_free(b);
	}
	cluster_free(c);
}

/* A thread takes the next chain as soon as it is free. The number of threads must not change the
 * result. */
TEST(threads_do_not_change_the_plan)
{
	struct cluster *c = fixture_cluster("one20_s16.json");
	struct plan *alone = NULL;
	struct plan_request q;

	plan_request_init(&q);
	/* Enough for several chains: one chain alone makes the first 11,000 evaluations. */
	q.evaluations = 30000;
	for (int threads = 1; threads <= 5; threads += 2) {
		struct plan *p;

		q.threads = threads;
		p = search(c, &q);
		assert_good(c, p, NULL, true);
		assert_int_equal(p->search.evaluations, 30000);
		if (!alone) {
			alone = p;
			continue;
		}
		assert_memory_equal(alone->visits, p->visits,
				    (size_t)(p->n_microbatches * p->path_length) * sizeof(int));
		assert_int_equal(alone->search.n_history, p->search.n_history);
		for (int i = 0; i < p->search.n_history; i++)
			assert_true(alone->search.history[i][1] == p->search.history[i][1]);
		plan_free(p);
	}
	plan_free(alone);
	cluster_free(c);
}

struct canceller {
	atomic_bool *cancel;
	pthread_t thread;
	int calls;
};

static void cancel_at_the_third(void *arg, const struct plan *plan)
{
	struct canceller *x = arg;

	assert_true(plan->predicted.iteration_s > 0);
	assert_true(pthread_equal(pthread_self(), x->thread));
	if (++x->calls == 3)
		atomic_store(x->cancel, true);
}

/* Each reading of the clock is one second later, so that each improvement is announced. */
static int64_t steps_of_a_second(void *arg)
{
	static int64_t now_us;

	(void)arg;
	return now_us += 1000000;
}

TEST(cancels_threads_and_calls_back_on_one_thread)
{
	struct cluster *c = fixture_cluster("geo20_s8.json");
	atomic_bool cancel = false;
	struct canceller x = { .cancel = &cancel, .thread = pthread_self() };
	struct plan_request q;
	struct plan *p;

	plan_request_init(&q);
	q.evaluations = INT64_MAX / 2;
	q.threads = 4;
	q.cancel = &cancel;
	q.on_improvement = cancel_at_the_third;
	q.on_improvement_arg = &x;
	q.clock_us = steps_of_a_second;
	p = search(c, &q);
	assert_good(c, p, NULL, true);
	assert_true(x.calls >= 3);
	plan_free(p);
	cluster_free(c);
}

/* A clock that advances when it is read, and the announcements with their times. */
struct listener {
	int64_t now_us, us_a_look;
	int n;
	double at_s[1000], iteration_s[1000];
};

static int64_t later_at_each_look(void *arg)
{
	struct listener *l = arg;

	return l->now_us += l->us_a_look;
}

static void listen(void *arg, const struct plan *p)
{
	struct listener *l = arg;

	assert_true(l->n < 1000);
	l->at_s[l->n] = (double)l->now_us * 1e-6;
	l->iteration_s[l->n++] = p->predicted.iteration_s;
}

static bool is_announced_by(const struct listener *l, double at_s, double iteration_s)
{
	for (int i = 0; i < l->n && l->at_s[i] <= at_s; i++) {
		if (l->iteration_s[i] <= iteration_s + 1e-9)
			return true;
	}
	return false;
}

static void expect_announced_soon(const char *name, enum plan_algorithm algorithm, uint64_t seed,
			     int64_t evaluations, int64_t us_a_look)
{
	struct cluster *c = fixture_cluster(name);
	struct listener l = { .us_a_look = us_a_look };
	struct plan_request q;
	struct plan *p;

	plan_request_init(&q);
	q.algorithm = algorithm;
	q.seed = seed;
	q.evaluations = evaluations;
	q.budget_s = 1000; /* without a budget the search would not read the clock */
	q.clock_us = later_at_each_look;
	q.clock_arg = &l;
	q.on_improvement = listen;
	q.on_improvement_arg = &l;
	p = search(c, &q);
	assert_true(p->search.n_history > 1);
	for (int k = 0; k < p->search.n_history; k++) {
		const double *h = p->search.history[k];

		if (!is_announced_by(&l, h[0] + 0.05, h[1]))
			fail_msg("%s: %f of %f is not announced by then", name, h[1], h[0]);
	}
	plan_free(p);
	cluster_free(c);
}

/* An improvement that is found right after an announcement must be announced soon, even if no
 * better one follows for a long time. A search with one chain reads the clock less often than a
 * search with several chains. For one chain, each reading therefore advances the test's clock by
 * more. */
TEST(announces_improvements_soon)
{
	static const char *const names[] = { "shipped20.json", "geo18_s4.json", "one20_s16.json" };

	for (int i = 0; i < 3; i++) {
		for (uint64_t seed = 1; seed <= 4; seed++) {
			expect_announced_soon(names[i], PLAN_BEST, seed, 14000, 500);
			expect_announced_soon(names[i], PLAN_BEST, seed, 60000, 20);
		}
		expect_announced_soon(names[i], PLAN_CBS, 1, 2000, 500);
	}
}

TEST(free_is_better_than_given)
{
	static const char *const names[] = { "shipped20.json", "geo18_s4.json", "geo20_s8.json",
					     "one20_s16.json" };

	for (int i = 0; i < 4; i++) {
		struct cluster *c = fixture_cluster(names[i]);
		struct plan_request q;
		struct plan *given, *placed;

		plan_request_init(&q);
		q.evaluations = 30000;
		given = search(c, &q);
		q.free_assignment = true;
		placed = search(c, &q);
		assert_good(c, placed, NULL, false);
		/* All nodes of one20_s16 are equal, so no placement is better. */
		if (i == 3)
			assert_true(placed->predicted.iteration_s == given->predicted.iteration_s);
		else
			assert_true(placed->predicted.iteration_s + placed->predicted.sync_s <
				    given->predicted.iteration_s + given->predicted.sync_s);
		plan_free(given);
		plan_free(placed);
		cluster_free(c);
	}
}

TEST(excluded_nodes_are_not_used)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	bool excluded[20] = { false };
	struct plan_request q;
	struct plan *p, *whole;
	struct error err = { "" };

	plan_request_init(&q);
	q.evaluations = 500;
	whole = search(c, &q);
	q.excluded = excluded;
	q.from = whole;
	excluded[11] = excluded[14] = true; /* a data node, and a node of stage 1 */
	p = search(c, &q);
	assert_good(c, p, excluded, true);
	assert_int_equal(p->n_microbatches, 24);
	plan_free(p);
	q.keep_batch = true;
	p = search(c, &q);
	assert_good(c, p, excluded, true);
	assert_int_equal(p->n_microbatches, 30);
	plan_free(p);
	excluded[8] = excluded[15] = true; /* all nodes of stage 1 */
	p = NULL;
	assert_int_equal(plan_search(c, &q, &p, &err), PLAN_INFEASIBLE);
	assert_null(p);
	assert_non_null(strstr(err.text, "stage 1"));
	plan_free(whole);
	cluster_free(c);
}

/* If all nodes are equal, the repaired plan is the best of the first plans. The search must
 * nevertheless improve it as far as a search improves a plan that it builds from nothing. */
TEST(a_repair_among_equal_nodes_is_as_good_as_a_fresh_plan)
{
	struct cluster *c = fixture_cluster("one20_s16.json");
	bool excluded[20] = { [1] = true };
	struct plan *whole, *fresh, *repaired;
	struct plan_request q;

	plan_request_init(&q);
	q.evaluations = 20000;
	whole = search(c, &q);
	q.excluded = excluded;
	q.keep_batch = true;
	fresh = search(c, &q);
	q.from = whole;
	repaired = search(c, &q);
	assert_good(c, repaired, excluded, true);
	assert_true(repaired->predicted.iteration_s <= fresh->predicted.iteration_s);
	plan_free(whole);
	plan_free(fresh);
	plan_free(repaired);
	cluster_free(c);
}

TEST(a_cancelled_search_returns_its_best_plan)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	atomic_bool cancel = true;
	struct plan_request q;
	struct plan *p;

	plan_request_init(&q);
	q.cancel = &cancel;
	p = search(c, &q);
	assert_good(c, p, NULL, true);
	plan_free(p);
	cluster_free(c);
}

static void count_announcement(void *arg, const struct plan *plan)
{
	int *calls = arg;

	assert_true(plan->predicted.iteration_s > 0);
	++*calls;
}

/* With unequal nodes, missing links and nodes without a stage, every answer is a valid plan or a
 * refusal. */
TEST(random_clusters_are_planned_or_refused)
{
	int planned = 0, calls = 0;
	struct rng r;

	rng_init(&r, 23);
	for (int round = 0; round < 600; round++) {
		struct fixture_shape shape = { .most_stages = 6,
					       .most_replicas = 4,
					       .most_microbatches = 5,
					       .most_memory = 3,
					       .absent = round % 3 ? 0 : 0.08,
					       .grid = round % 2,
					       .unpinned = round % 5 == 0 };
		struct cluster *c = fixture_random_cluster(&r, &shape);
		struct plan_request q;
		struct plan *p = NULL;
		struct error err = { "" };
		int rc;

		plan_request_init(&q);
		q.path_length = 1 + (int)rng_below(&r, (uint32_t)c->n_stages);
		q.free_assignment = round % 7 == 0;
		q.evaluations = 200;
		q.seed = (uint64_t)round;
		q.on_improvement = count_announcement;
		q.on_improvement_arg = &calls;
		rc = plan_search(c, &q, &p, &err);
		if (rc == 0) {
			assert_good(c, p, NULL, !q.free_assignment);
			planned++;
		} else {
			/* feasible_test checks which of the two refusals is correct. */
			assert_true(rc == PLAN_INFEASIBLE || rc == PLAN_NOT_FOUND);
			assert_true(shape.absent > 0);
			assert_true(err.text[0] != '\0');
		}
		plan_free(p);
		cluster_free(c);
	}
	assert_true(planned >= 400);
	assert_true(calls >= planned);
}

/* The clusters have so many microbatches that lanes are planned. Most data nodes send more
 * microbatches than they have slots. Links are missing, and memory is small. */
TEST(many_microbatches_are_planned_or_refused)
{
	int planned = 0, same = 0, large = 0;
	struct rng r;

	rng_init(&r, 31);
	for (int round = 0; round < 150; round++) {
		struct fixture_shape shape = { .most_stages = 6,
					       .most_replicas = 16,
					       .most_microbatches = 5,
					       .most_memory = 1 + round % 4,
					       .absent = round % 2 ? 0.15 : 0,
					       .grid = round % 3 == 0,
					       .unpinned = round % 5 == 0 };
		struct cluster *c = fixture_random_cluster(&r, &shape);
		struct error err = { "" };
		struct plan *p = NULL, *again;
		struct plan_request q;
		int rc;

		c->microbatches_per_data_node = (41 + round % 40) / c->stages[0] + 1;
		plan_request_init(&q);
		q.path_length = 1 + (int)rng_below(&r, (uint32_t)c->n_stages);
		q.free_assignment = round % 7 == 0;
		q.evaluations = 60;
		q.seed = (uint64_t)round;
		rc = plan_search(c, &q, &p, &err);
		if (rc == 0) {
			assert_good(c, p, NULL, !q.free_assignment);
			again = search(c, &q);
			same += again->predicted.iteration_s == p->predicted.iteration_s;
			plan_free(again);
			planned++;
			large += c->n_nodes >= 40;
		} else {
			assert_true(rc == PLAN_INFEASIBLE || rc == PLAN_NOT_FOUND);
			assert_true(shape.absent > 0);
		}
		plan_free(p);
		cluster_free(c);
	}
	assert_true(large >= 50);
	assert_int_equal(same, planned);
}

/* Returns a cluster of nodes in regions all over the world. */
static struct cluster *large_cluster(int nodes)
{
	struct regions_request q;
	struct regions *regions;
	struct cluster *c = NULL;
	int at = 0;

	assert_int_equal(regions_read("deploy/regions.json", &regions, NULL), 0);
	regions_request_init(&q, 4, 8);
	q.n_nodes = nodes;
	q.n_stages = 8;
	q.path_length = 6;
	q.shuffle = true;
	q.seed = 1;
	assert_int_equal(regions_cluster(regions, &q, &c, NULL), 0);
	regions_free(regions);
	for (int s = 0; s < c->n_stages; s++) {
		for (int k = 0; k < c->stages[s]; k++)
			c->nodes[at++].stage = s;
	}
	return c;
}

/* Iteration times that the search must reach with 1,500 evaluations, by planning lanes. */
TEST(lanes_reach_known_plan_lengths)
{
	static const struct {
		int nodes;
		double given_s;
	} want[] = { { 50, 97 }, { 100, 88 } };

	for (int i = 0; i < 2; i++) {
		struct cluster *c = large_cluster(want[i].nodes);
		struct plan_request q;
		struct plan *p;

		plan_request_init(&q);
		q.evaluations = 1500;
		p = search(c, &q);
		assert_good(c, p, NULL, true);
		if (p->predicted.iteration_s > want[i].given_s)
			fail_msg("%d: %f", want[i].nodes, p->predicted.iteration_s);
		plan_free(p);
		cluster_free(c);
	}
}

/* A plan has a lower bound, however early the search ends. */
TEST(plans_have_a_bound)
{
	struct cluster *c = large_cluster(100);

	for (int evaluations = 1; evaluations < 400; evaluations += 100) {
		struct plan_request q;
		struct plan *p;

		plan_request_init(&q);
		q.evaluations = evaluations;
		p = search(c, &q);
		assert_good(c, p, NULL, true);
		assert_true(p->predicted.lower_bound_s > 0);
		plan_free(p);
	}
	cluster_free(c);
}

/* In the first 10,000 evaluations, movable nodes exchange stages. After these, the stages are fixed
 * and lanes are planned. 3,000 such evaluations must shorten the plan by at least 1%. */
TEST(nodes_settle_before_lanes_are_planned)
{
	struct cluster *c = large_cluster(100);
	struct plan_request q;
	double total_s[2];

	for (int i = 0; i < 2; i++) {
		struct plan *p;

		plan_request_init(&q);
		q.free_assignment = true;
		q.threads = 2;
		q.evaluations = i == 0 ? 10000 : 13000;
		p = search(c, &q);
		assert_good(c, p, NULL, false);
		assert_int_equal(p->search.evaluations, q.evaluations);
		assert_true(p->predicted.lower_bound_s > 0);
		total_s[i] = p->predicted.iteration_s + p->predicted.sync_s;
		plan_free(p);
	}
	if (total_s[1] > 0.99 * total_s[0])
		fail_msg("%f, and then %f", total_s[0], total_s[1]);
	cluster_free(c);
}

/* The plans of the published methods keep the rules, too. */
TEST(baselines_are_valid)
{
	static const char *const instances[] = { "shipped20.json", "geo18_s4.json",
						 "geo20_s8.json", "one20_s16.json" };

	for (int i = 0; i < 4; i++) {
		struct cluster *c = fixture_cluster(instances[i]);
		double seconds[5];

		for (int a = PLAN_CBS; a <= PLAN_DTFM_SKIP; a++) {
			struct plan_request q;
			struct plan *p;

			plan_request_init(&q);
			q.algorithm = (enum plan_algorithm)a;
			q.evaluations = 2000;
			p = search(c, &q);
			assert_good(c, p, NULL, true);
			assert_string_equal(p->search.algorithm,
					    plan_algorithm_name(q.algorithm));
			if (a == PLAN_DTFM)
				assert_int_equal(p->path_length, c->n_stages);
			seconds[a] = p->predicted.iteration_s;
			plan_free(p);
			q.free_assignment = true;
			q.evaluations = 30;
			p = search(c, &q);
			assert_good(c, p, NULL, false);
			plan_free(p);
		}
		assert_true(seconds[PLAN_CBS] <= seconds[PLAN_NO_TC2]);
		assert_true(seconds[PLAN_NO_TC2] < seconds[PLAN_DTFM]);
		cluster_free(c);
	}
}

TEST(baselines_keep_the_rules_on_random_clusters)
{
	struct rng r;

	rng_init(&r, 29);
	for (int round = 0; round < 200; round++) {
		struct fixture_shape shape = { .most_stages = 6,
					       .most_replicas = 4,
					       .most_microbatches = 5,
					       .most_memory = 3,
					       .grid = round % 2 };
		struct cluster *c = fixture_random_cluster(&r, &shape);
		struct plan_request q;

		plan_request_init(&q);
		q.path_length = 1 + (int)rng_below(&r, (uint32_t)c->n_stages);
		q.free_assignment = round % 4 == 0;
		q.evaluations = 100;
		for (int a = PLAN_CBS; a <= PLAN_DTFM_SKIP; a++) {
			struct plan *p;

			q.algorithm = (enum plan_algorithm)a;
			p = search(c, &q);
			assert_good(c, p, NULL, !q.free_assignment);
			plan_free(p);
		}
		cluster_free(c);
	}
}

/* There are six nodes in three pairs. The two nodes of a pair are nearest to each other but have no
 * link. */
TEST(nodes_without_a_link_share_no_stage)
{
	struct cluster *c = cluster_alloc(6, 3, true);
	struct plan_request q;
	struct plan *p = NULL;

	assert_non_null(c);
	c->microbatches_per_data_node = 2;
	for (int s = 0; s < 3; s++)
		c->stages[s] = 2;
	for (int i = 0; i < 6; i++) {
		struct cluster_node *node = &c->nodes[i];

		node->stage = -1;
		node->forward_s = node->backward_s = node->loss_s = 1;
		node->memory = 4;
		for (int j = 0; j < 6; j++) {
			bool pair = i / 2 == j / 2;

			c->delay_s[i * 6 + j] = pair && i < j ? -1 : pair ? 0.01 : 0.5;
			c->sync_pair_s[i * 6 + j] = pair && i < j ? -1 : pair ? 0.01 : 5;
		}
	}
	for (uint64_t seed = 1; seed <= 20; seed++) {
		plan_request_init(&q);
		q.free_assignment = true;
		q.path_length = 3;
		q.seed = seed;
		q.evaluations = 2000;
		assert_int_equal(plan_search(c, &q, &p, NULL), 0);
		for (int s = 0; s < 3; s++)
			assert_int_not_equal(p->assigned[2 * s] / 2, p->assigned[2 * s + 1] / 2);
		plan_free(p);
	}
	cluster_free(c);
}

/* Returns a cluster of one data node in stage 0 and two other nodes, the second of which computes
 * three times as fast. Links take next to no time. */
static struct cluster *slow_and_fast(int n_stages)
{
	struct cluster *c = cluster_alloc(3, n_stages, false);

	assert_non_null(c);
	c->microbatches_per_data_node = 16;
	c->stages[0] = 1;
	for (int s = 1; s < n_stages; s++)
		c->stages[s] = 2 / (n_stages - 1);
	for (int i = 0; i < 3; i++) {
		c->nodes[i].forward_s = i == 0 ? 0.01 : i == 1 ? 3 : 1;
		c->nodes[i].backward_s = 2 * c->nodes[i].forward_s;
		c->nodes[i].memory = 16;
		for (int j = 0; j < 3; j++)
			c->delay_s[i * 3 + j] = 0.001;
	}
	c->nodes[0].stage = 0;
	return c;
}

/* The replica that is three times as fast gets three times as many microbatches. Both replicas are
 * busy for 36 s, so that neither waits for the other one's gradient. */
TEST(replicas_get_microbatches_in_proportion_to_their_speed)
{
	struct cluster *c = slow_and_fast(2);
	struct plan_request q;
	struct plan *p;
	int of[3] = { 0 };

	c->nodes[1].stage = c->nodes[2].stage = 1;
	plan_request_init(&q);
	q.path_length = 2;
	q.evaluations = 5000;
	p = search(c, &q);
	assert_good(c, p, NULL, true);
	for (int i = 0; i < p->n_microbatches; i++)
		of[p->microbatches[i].path[1]]++;
	assert_int_equal(of[1], 4);
	assert_int_equal(of[2], 12);
	assert_true(p->predicted.iteration_s < 36.5);
	plan_free(p);
	cluster_free(c);
}

/* A free assignment gives the stage with more work to the faster node. */
TEST(the_larger_stage_gets_the_faster_node)
{
	for (int large = 1; large <= 2; large++) {
		struct cluster *c = slow_and_fast(3);
		struct plan_request q;
		struct plan *p;

		c->work[0] = 0.1;
		c->work[1] = c->work[2] = 0.5;
		c->work[large] = 2.4;
		plan_request_init(&q);
		q.path_length = 3;
		q.evaluations = 5000;
		p = search(c, &q);
		assert_good(c, p, NULL, true);
		assert_int_equal(p->assigned[large], 2);
		/* A visit takes 4.5 s on the slow node and 7.2 s on the fast one. If the nodes
		 * exchange their stages, the slow node alone would be busy for 16 times 21.6 s. */
		assert_true(p->predicted.iteration_s >= 16 * 7.2 &&
			    p->predicted.iteration_s < 16 * 7.2 + 20);
		plan_free(p);
		cluster_free(c);
	}
}
