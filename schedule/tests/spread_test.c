/* Tests plans with a skip_share: they keep the rules, and train all sub-networks about equally
 * often. */
#include <string.h>

#include "base/tests/test.h"
#include "schedule/execution/check.h"
#include "schedule/execution/simulate.h"
#include "schedule/search/search.h"
#include "schedule/tests/fixture.h"

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

static int count_sets(const struct plan *p)
{
	stage_set seen[512];
	int n = 0;

	for (int m = 0; m < p->n_microbatches; m++) {
		stage_set set = visited(p, m);
		int i = 0;

		while (i < n && seen[i] != set)
			i++;
		seen[i] = set;
		n += i == n;
	}
	return n;
}

/* Fails unless each sub-network of this length is trained by the same number of microbatches, to
 * within one. */
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

/* A microbatch that skips visits two of the four middle stages, so there are six sub-networks. With
 * four of the seeds, the quickest plan trains only two or four sub-networks, and spreading must
 * change it. Seeds 4 to 6 also exclude a data node and another node. */
TEST(a_share_of_skipping_microbatches_trains_every_sub_network)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	bool excluded[20] = { [0] = true, [9] = true };
	struct plan_request q = request(4, 40000);
	struct plan *plan;

	c->always = 1 | 1 << 5;
	q.skip_share = 30;
	q.ascending = q.keep_batch = true;
	for (q.seed = 1; q.seed <= 6; q.seed++) {
		q.excluded = q.seed > 3 ? excluded : NULL;
		assert_int_equal(plan_search(c, &q, &plan, NULL), 0);
		assert_int_equal(count_sets(plan), 7); /* six sub-networks, and the whole model */
		assert_even(plan, 4);
		assert_keeps_rules(c, &q, plan);
		assert_true(plan->search.evaluations <= q.evaluations);
		plan_free(plan);
	}
	cluster_free(c);
}

/* Assigns nodes as in the second phase of the recipe `robust` on shipped20. */
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

/* Training all sub-networks equally often must count more than a short iteration. With CROWDING =
 * 4 in place of 0.25 (spread.c), the plan would train only four of the six sub-networks. */
TEST(spreading_goes_before_time)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	struct plan_request q = request(4, 60000);
	struct plan *plan;

	assign_like_robust(c);
	c->always = 1 | 1 << 5;
	q.skip_share = 30;
	q.ascending = true;
	for (q.seed = 1; q.seed <= 3; q.seed++) {
		assert_int_equal(plan_search(c, &q, &plan, NULL), 0);
		assert_int_equal(count_sets(plan), 7);
		plan_free(plan);
	}
	cluster_free(c);
}
