/* Plans that take turns: each keeps the rules, the stages of nodes and the limit of time, and
 * visits other sets of stages than the others do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "schedule/execution/check.h"
#include "schedule/execution/simulate.h"
#include "schedule/search/search.h"
#include "schedule/search/turn_plans.h"
#include "schedule/tests/fixture.h"

enum { MOST = 4 };

struct answer {
	struct plan *plans[MOST];
	int n;
};

static void answer_fini(struct answer *a)
{
	for (int k = 0; k < a->n; k++)
		plan_free(a->plans[k]);
}

/* Returns false if there is not even a first plan. */
static bool ask(const struct cluster *c, const struct plan_request *q, struct answer *a)
{
	struct error err = { "" };

	*a = (struct answer){ .n = 0 };
	if (plan_search(c, q, &a->plans[0], &err) != 0)
		return false;
	a->n = turn_plans_search(c, q, MOST, a->plans, &err);
	if (a->n < 1)
		fail_msg("%s", err.text);
	return true;
}

static struct plan_request request(int path_length, int64_t evaluations)
{
	struct plan_request q;

	plan_request_init(&q);
	q.path_length = path_length;
	q.evaluations = evaluations;
	q.overlap_sync = true;
	return q;
}

static void assert_keeps_rules(const struct cluster *c, const struct plan_request *q,
			       const struct plan *p)
{
	struct check_options options = { .excluded = q->excluded };
	struct check_report report;
	struct simulation *s = NULL;

	assert_int_equal(simulate(c, p, &s, NULL), 0);
	check_plan(c, p, s, &options, &report);
	if (report.n_breaches > 0)
		fail_msg("%s", report.breaches[0]);
	assert_true(turn_plans_seconds(p) ==
		    (p->overlap_sync ? s->iteration_s + (s->total_s - s->iteration_s)
				     : s->iteration_s + s->sync_s));
	check_report_fini(&report);
	simulation_free(s);
}

/* Returns the set of stages that microbatch m visits. */
static stage_set visited(const struct plan *p, int m)
{
	int stage_of[64];
	stage_set set = 0;

	plan_stages(p, 64, stage_of);
	for (int h = 0; h < p->microbatches[m].length; h++)
		set |= (stage_set)1 << stage_of[p->microbatches[m].path[h]];
	return set;
}

/* Pairs each microbatch of a with one of b that visits the same stages. Counts those of a without
 * one. */
static int count_unlike(const struct plan *a, const struct plan *b)
{
	bool used[512] = { false };
	int unlike = 0;

	for (int i = 0; i < a->n_microbatches; i++) {
		int k = 0;

		while (k < b->n_microbatches && (used[k] || visited(a, i) != visited(b, k)))
			k++;
		if (k < b->n_microbatches)
			used[k] = true;
		else
			unlike++;
	}
	return unlike;
}

static void assert_good(const struct cluster *c, const struct plan_request *q,
			const struct answer *a)
{
	const struct plan *first = a->plans[0];
	int skipping = 0;

	for (int m = 0; m < first->n_microbatches; m++)
		skipping += first->microbatches[m].length < c->n_stages;
	for (int k = 0; k < a->n; k++) {
		const struct plan *p = a->plans[k];

		assert_keeps_rules(c, q, p);
		assert_int_equal(p->path_length, first->path_length);
		assert_int_equal(p->skip_share, first->skip_share);
		assert_memory_equal(p->stage_start, first->stage_start,
				    (size_t)(c->n_stages + 1) * sizeof(int));
		assert_memory_equal(p->assigned, first->assigned,
				    (size_t)p->stage_start[c->n_stages] * sizeof(int));
		assert_true(turn_plans_seconds(p) <= 1.02 * turn_plans_seconds(first));
		for (int j = 0; j < k; j++) {
			int unlike = count_unlike(p, a->plans[j]);

			assert_int_equal(turn_plans_differ(p, a->plans[j]), unlike);
			assert_true(unlike > 0 && unlike >= 0.25 * skipping);
		}
	}
}

static int count_sets(const struct answer *a, int plans)
{
	stage_set seen[512];
	int n = 0;

	for (int k = 0; k < plans; k++) {
		for (int m = 0; m < a->plans[k]->n_microbatches; m++) {
			stage_set set = visited(a->plans[k], m);
			int i = 0;

			while (i < n && seen[i] != set)
				i++;
			seen[i] = set;
			n += i == n;
		}
	}
	return n;
}

TEST(random_clusters_get_plans_that_differ)
{
	struct fixture_shape shape = { .most_stages = 8,
				       .most_replicas = 3,
				       .most_microbatches = 4,
				       .most_memory = 3 };
	int several = 0;
	struct rng r;

	rng_init(&r, 5);
	for (int round = 0; round < 150; round++) {
		struct cluster *c;
		struct answer a;
		struct plan_request q;
		bool excluded[64] = { false };

		shape.grid = round % 2;
		shape.unpinned = round % 5 == 0;
		shape.absent = round % 7 == 0 ? 0.1 : 0;
		c = fixture_random_cluster(&r, &shape);
		q = request(1 + (int)rng_below(&r, (uint32_t)c->n_stages), 1500);
		q.seed = (uint64_t)round;
		q.overlap_sync = round % 3;
		q.free_assignment = round % 4 == 0;
		if (q.path_length < c->n_stages && round % 6 == 0)
			q.skip_share = 50;
		if (round % 3 == 0) {
			excluded[rng_below(&r, (uint32_t)c->n_nodes)] = true;
			q.excluded = excluded;
			q.keep_batch = round % 2;
		}
		if (ask(c, &q, &a)) {
			assert_good(c, &q, &a);
			if (q.path_length == c->n_stages)
				assert_int_equal(a.n, 1);
			several += a.n > 1;
			answer_fini(&a);
		}
		cluster_free(c);
	}
	assert_true(several > 10);
}

/* Eight stages of two nodes, without delays. Ten microbatches that skip four of seven stages have
 * 35 possible sub-networks. */
static struct cluster *eight_stages(void)
{
	struct cluster *c = cluster_alloc(16, 8, false);

	assert_non_null(c);
	c->microbatches_per_data_node = 5;
	for (int v = 0; v < 16; v++) {
		c->nodes[v].stage = v / 2;
		c->nodes[v].forward_s = 1;
		c->nodes[v].backward_s = 1;
		c->nodes[v].memory = 4;
		for (int u = 0; u < 16; u++)
			c->delay_s[v * 16 + u] = 0;
	}
	for (int s = 0; s < 8; s++)
		c->stages[s] = 2;
	return c;
}

TEST(turns_train_more_sub_networks)
{
	struct cluster *c = eight_stages();
	struct plan_request q = request(4, 3000);
	struct answer a;

	assert_true(ask(c, &q, &a));
	assert_good(c, &q, &a);
	assert_int_equal(a.n, MOST);
	assert_true(count_sets(&a, 1) <= 10);
	assert_true(count_sets(&a, MOST) >= 20);
	answer_fini(&a);
	cluster_free(c);
}

/* Fails unless each sub-network of this length is trained by as many microbatches as the others,
 * give or take one. */
static void assert_even(const struct plan *p, int length)
{
	int least = p->n_microbatches, most = 0;

	for (int i = 0; i < p->n_microbatches; i++) {
		int alike = 0;

		if (p->microbatches[i].length != length)
			continue;
		for (int k = 0; k < p->n_microbatches; k++)
			alike += visited(p, k) == visited(p, i);
		least = alike < least ? alike : least;
		most = alike > most ? alike : most;
	}
	assert_in_range(most - least, 0, 1);
}

/* Six sub-networks have two of the four middle stages. The quickest plans of four seeds train two
 * or four of them. From seed 4 on, a data node and another node are excluded. */
TEST(a_share_of_skipping_microbatches_trains_every_sub_network)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	bool excluded[20] = { [0] = true, [9] = true };
	struct plan_request q = request(4, 40000);
	struct answer a = { .n = 1 };

	c->always = 1 | 1 << 5;
	q.skip_share = 30;
	q.ascending = q.keep_batch = true;
	for (q.seed = 1; q.seed <= 6; q.seed++) {
		q.excluded = q.seed > 3 ? excluded : NULL;
		assert_int_equal(plan_search(c, &q, &a.plans[0], NULL), 0);
		assert_int_equal(count_sets(&a, 1), 7); /* and the whole model */
		assert_even(a.plans[0], 4);
		assert_keeps_rules(c, &q, a.plans[0]);
		assert_true(a.plans[0]->search.evaluations <= q.evaluations);
		answer_fini(&a);
	}
	cluster_free(c);
}

/* The allocation of the second phase of `robust` on shipped20. */
static void assign_like_robust(struct cluster *c)
{
	static const int stage_of[20] = { 5, 1, 0, 5, 2, 1, 0, 1, 3, 3,
					  4, 3, 0, 5, 0, 0, 2, 2, 0, 4 };
	static const int sizes[6] = { 6, 3, 3, 3, 2, 3 };

	for (int v = 0; v < 20; v++)
		c->nodes[v].stage = stage_of[v];
	memcpy(c->stages, sizes, sizeof(sizes));
	c->microbatches_per_data_node = 5;
}

/* If the walk weighed crowding and time as it does for plans that take turns, it would find four of
 * six sub-networks here. */
TEST(spreading_goes_before_time)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	struct plan_request q = request(4, 60000);
	struct answer a = { .n = 1 };

	assign_like_robust(c);
	c->always = 1 | 1 << 5;
	q.skip_share = 30;
	q.ascending = true;
	for (q.seed = 1; q.seed <= 3; q.seed++) {
		assert_int_equal(plan_search(c, &q, &a.plans[0], NULL), 0);
		assert_int_equal(count_sets(&a, 1), 7);
		answer_fini(&a);
	}
	cluster_free(c);
}

/* Without the sums, a search that is free to take longer finds plans beyond the limit here. */
TEST(plans_keep_the_limit_of_time)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	struct plan_request q = request(4, 6000);
	struct answer a;

	memset(c->sync_pair_s, 0, (size_t)(c->n_nodes * c->n_nodes) * sizeof(*c->sync_pair_s));
	for (q.seed = 1; q.seed <= 6; q.seed++) {
		assert_true(ask(c, &q, &a));
		assert_good(c, &q, &a);
		answer_fini(&a);
	}
	cluster_free(c);
}

/* With one stage skipped, equal exposure determines how often each sub-network is trained. */
TEST(one_skipped_stage_leaves_no_second_plan)
{
	struct cluster *c = fixture_cluster("geo18_s4.json");
	struct plan_request q = request(3, 4000);
	struct answer a;

	assert_true(ask(c, &q, &a));
	assert_int_equal(a.n, 1);
	answer_fini(&a);
	cluster_free(c);
}

TEST(the_same_request_gets_the_same_plans)
{
	struct cluster *c = fixture_cluster("geo20_s8.json");
	struct plan_request q = request(4, 3000);
	struct answer a, b;

	assert_true(ask(c, &q, &a));
	assert_true(ask(c, &q, &b));
	assert_int_equal(a.n, b.n);
	for (int k = 0; k < a.n; k++) {
		char *x = plan_format(a.plans[k]), *y = plan_format(b.plans[k]);

		assert_string_equal(x, y);
		free(x);
		free(y);
	}
	answer_fini(&a);
	answer_fini(&b);
	cluster_free(c);
}

TEST(a_cancelled_search_keeps_the_first_plan)
{
	struct cluster *c = fixture_cluster("geo20_s8.json");
	struct plan_request q = request(4, 3000);
	struct plan *plans[MOST] = { NULL };
	atomic_bool cancel = false;

	assert_int_equal(plan_search(c, &q, &plans[0], NULL), 0);
	atomic_store(&cancel, true);
	q.cancel = &cancel;
	assert_int_equal(turn_plans_search(c, &q, MOST, plans, NULL), 1);
	plan_free(plans[0]);
	cluster_free(c);
}
