/* Tests the limit for sums (--sync-limit). Every plan keeps the limit. A request is refused only if
 * no placement of the nodes keeps the limit. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "schedule/execution/check.h"
#include "schedule/search/search.h"
#include "schedule/execution/simulate.h"
#include "schedule/tests/fixture.h"

#define STAGES 3
#define REPLICAS 2
#define NODES (STAGES * REPLICAS)

static struct plan *search(const struct cluster *c, const struct plan_request *q)
{
	struct plan *p = NULL;
	struct error err = { "" };

	if (plan_search(c, q, &p, &err) != 0)
		fail_msg("%s", err.text);
	return p;
}

/* Checks that the plan keeps every rule except the pins, and that its predictions are those of the
 * simulator. */
static void assert_within(const struct cluster *c, const struct plan *p, double limit_s)
{
	struct check_options options = { .pins = false };
	struct check_report report;
	struct simulation *s = NULL;

	assert_int_equal(simulate(c, p, &s, NULL), 0);
	check_plan(c, p, s, &options, &report);
	assert_int_equal(report.n_breaches, 0);
	assert_true(s->iteration_s == p->predicted.iteration_s);
	assert_true(s->sync_s == p->predicted.sync_s);
	assert_true(s->sync_s <= limit_s);
	check_report_fini(&report);
	simulation_free(s);
}

/* Returns a cluster of unequal nodes; each pair has its own delay and its own time of a sum. */
static struct cluster *make(struct rng *r)
{
	struct cluster *c = cluster_alloc(NODES, STAGES, true);

	assert_non_null(c);
	c->microbatches_per_data_node = 2;
	for (int s = 0; s < STAGES; s++)
		c->stages[s] = REPLICAS;
	for (int i = 0; i < NODES; i++) {
		c->nodes[i].stage = i / REPLICAS;
		c->nodes[i].memory = 1 + (int)rng_below(r, 2);
		c->nodes[i].forward_s = 0.5 + rng_uniform(r);
		c->nodes[i].backward_s = 1 + rng_uniform(r);
		c->nodes[i].loss_s = 0.1;
		for (int j = 0; j < NODES; j++) {
			c->delay_s[i * NODES + j] = 3 * rng_uniform(r);
			c->sync_pair_s[i * NODES + j] = 0.1 + rng_uniform(r);
		}
	}
	return c;
}

/* Finds the shortest iteration over all placements, for each of the limits. Each placement is
 * planned with enough evaluations to find its best plan at this size. INFINITY: no placement keeps
 * the limit. */
static void enumerate(struct cluster *c, int node, int *room, const double *limit_s, int n,
		      double *least_s)
{
	struct plan_request q;
	struct plan *p;

	for (int s = 0; s < STAGES && node < NODES; s++) {
		if (room[s] == 0)
			continue;
		room[s]--;
		c->nodes[node].stage = s;
		enumerate(c, node + 1, room, limit_s, n, least_s);
		room[s]++;
	}
	if (node < NODES)
		return;
	plan_request_init(&q);
	q.path_length = 2;
	q.evaluations = 1000;
	p = search(c, &q);
	for (int k = 0; k < n; k++) {
		if (p->predicted.sync_s <= limit_s[k])
			least_s[k] = fmin(least_s[k], p->predicted.iteration_s);
	}
	plan_free(p);
}

TEST(finds_what_plain_enumeration_finds)
{
	const double limit_s[] = { 0.3, 0.5, 0.7, 0.9, 5 };
	int best = 0, kept = 0, refused = 0;
	struct rng r;

	rng_init(&r, 11);
	for (int round = 0; round < 12; round++) {
		double least_s[5] = { INFINITY, INFINITY, INFINITY, INFINITY, INFINITY };
		struct cluster *c = make(&r);
		int room[STAGES] = { REPLICAS, REPLICAS, REPLICAS };

		enumerate(c, 0, room, limit_s, 5, least_s);
		for (int k = 0; k < 5; k++) {
			struct plan_request q;
			struct plan *p = NULL;
			struct error err = { "" };
			int rc;

			plan_request_init(&q);
			q.free_assignment = true;
			q.path_length = 2;
			q.evaluations = 20000;
			q.sync_limit_s = limit_s[k];
			rc = plan_search(c, &q, &p, &err);
			if (isinf(least_s[k])) {
				assert_int_equal(rc, PLAN_NOT_FOUND);
				refused++;
				continue;
			}
			assert_int_equal(rc, 0);
			assert_within(c, p, limit_s[k]);
			assert_true(p->predicted.iteration_s > least_s[k] - 1e-9);
			best += p->predicted.iteration_s < least_s[k] + 1e-9;
			kept++;
			plan_free(p);
		}
		cluster_free(c);
	}
	assert_true(refused >= 5 && kept >= 30);
	assert_true(best >= kept - 1);
}

/* The limit of the sums is the time that they take with the given stages. Within this limit, a free
 * placement of the nodes finds a shorter iteration than the given stages allow. */
TEST(places_nodes_better_than_given)
{
	static const struct {
		const char *name;
		/* Limit of the sums, and the shortest known iteration with the given stages */
		double limit_s, iteration_s;
	} want[] = { { "shipped20.json", 45.2, 33.134 },
		     { "geo18_s4.json", 42.63, 29.0 },
		     { "geo20_s8.json", 42.23, 66 },
		     { "one20_s16.json", 0.21, 105.5 } };

	for (int i = 0; i < 4; i++) {
		struct cluster *c = fixture_cluster(want[i].name);
		struct plan_request q;
		struct plan *p, *again;

		plan_request_init(&q);
		q.free_assignment = true;
		q.sync_limit_s = want[i].limit_s;
		q.evaluations = 30000;
		p = search(c, &q);
		assert_within(c, p, want[i].limit_s);
		if (p->predicted.iteration_s > want[i].iteration_s)
			fail_msg("%s: %f", want[i].name, p->predicted.iteration_s);
		q.threads = 3;
		again = search(c, &q);
		assert_memory_equal(p->visits, again->visits,
				    (size_t)(p->n_microbatches * p->path_length) * sizeof(int));
		plan_free(again);
		plan_free(p);
		cluster_free(c);
	}
}

TEST(impossible_limits_are_reported)
{
	struct cluster *c = fixture_cluster("geo18_s4.json");
	struct error err = { "" };
	struct plan_request q;
	struct plan *p = NULL;
	const char *would;

	plan_request_init(&q);
	q.free_assignment = true;
	q.evaluations = 100;
	q.sync_limit_s = 5;
	assert_int_equal(plan_search(c, &q, &p, &err), PLAN_NOT_FOUND);
	assert_null(p);
	would = strstr(err.text, "; ");
	assert_non_null(would);
	q.sync_limit_s = strtod(would + 2, NULL);
	assert_true(q.sync_limit_s > 5);
	p = search(c, &q);
	assert_within(c, p, q.sync_limit_s);
	plan_free(p);
	cluster_free(c);
}

TEST(useless_limits_are_refused)
{
	struct cluster *c = fixture_cluster("geo18_s4.json");
	double *sums = c->sync_pair_s;
	struct plan_request q;
	struct plan *p = NULL;

	plan_request_init(&q);
	q.evaluations = 10;
	q.sync_limit_s = 40;
	/* Refused, because the stages are given */
	assert_int_equal(plan_search(c, &q, &p, NULL), -EINVAL);
	q.free_assignment = true;
	q.algorithm = PLAN_CBS;
	assert_int_equal(plan_search(c, &q, &p, NULL), -EINVAL);
	q.algorithm = PLAN_BEST;
	q.sync_limit_s = -1;
	assert_int_equal(plan_search(c, &q, &p, NULL), -EINVAL);
	q.sync_limit_s = NAN;
	assert_int_equal(plan_search(c, &q, &p, NULL), -EINVAL);
	q.sync_limit_s = 40;
	c->sync_pair_s = NULL; /* refused, because the times of sums are unknown */
	assert_int_equal(plan_search(c, &q, &p, NULL), -EINVAL);
	c->sync_pair_s = sums;
	cluster_free(c);
}

/* A plan to start from may break the limit; the repaired plan does not. */
TEST(repairs_keep_the_limit)
{
	struct cluster *c = fixture_cluster("geo20_s8.json");
	bool excluded[20] = { false };
	struct plan_request q;
	struct plan *whole, *p;

	plan_request_init(&q);
	q.evaluations = 500;
	whole = search(c, &q);
	assert_true(whole->predicted.sync_s > 42);
	q.free_assignment = true;
	q.from = whole;
	q.sync_limit_s = 20;
	q.excluded = excluded;
	excluded[7] = true;
	p = search(c, &q);
	assert_true(p->predicted.sync_s <= 20);
	plan_free(p);
	plan_free(whole);
	cluster_free(c);
}
