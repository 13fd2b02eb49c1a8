/* Compares the complete search for legal paths with the oracle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "schedule/execution/check.h"
#include "schedule/start/feasible.h"
#include "schedule/search/search.h"
#include "schedule/execution/simulate.h"
#include "schedule/tests/fixture.h"
#include "schedule/tests/oracle.h"

/* Makes a cluster of at most 5 stages and 15 microbatches, as many as the oracle can count. */
static struct cluster *sparse_cluster(struct rng *r)
{
	struct fixture_shape shape = { .most_stages = 5,
				       .most_replicas = 3,
				       .most_microbatches = 5,
				       .most_memory = 2,
				       .absent = 0.5 * rng_uniform(r) };
	struct cluster *c = fixture_random_cluster(r, &shape);

	for (int i = 0; i < c->n_nodes; i++)
		c->nodes[i].memory -= rng_below(r, 8) == 0;
	for (int i = 0; i < c->n_nodes; i++)
		c->nodes[i].memory += c->nodes[i].memory < 0;
	return c;
}

static void assert_legal(const struct cluster *c, const struct plan *plan)
{
	struct check_report report;

	check_plan(c, plan, NULL, NULL, &report);
	if (report.n_breaches > 0)
		fail_msg("%s", report.breaches[0]);
	check_report_fini(&report);
}

/* Paths are found if and only if they exist, and the paths found are legal. */
TEST(paths_are_found_where_they_exist)
{
	int found = 0, none = 0;
	struct rng r;

	rng_init(&r, 41);
	for (int round = 0; round < 1500; round++) {
		struct cluster *c = sparse_cluster(&r);
		struct error err = { "" };
		struct plan_request q;
		struct problem p;
		struct solution s;
		struct plan *plan;
		int rc;

		plan_request_init(&q);
		q.path_length = 1 + (int)rng_below(&r, (uint32_t)c->n_stages);
		q.ascending = round % 3 == 0;
		rc = problem_init(&p, c, &q, &err);
		if (rc == 0) {
			solution_init(&s, &p);
			for (int i = 0; i < p.n_nodes; i++)
				s.stage_of[i] = c->nodes[i].stage;
			solution_index(&s, &p);
			rc = feasible_paths(&s, &p, &err);
			if (rc == 0) {
				plan = solution_to_plan(&s, &p);
				assert_non_null(plan);
				assert_legal(c, plan);
				plan_free(plan);
			}
			solution_fini(&s);
			problem_fini(&p);
		}
		if (oracle_paths_exist(c, q.path_length, q.ascending) != (rc == 0))
			fail_msg("round %d: %d %s", round, rc, err.text);
		assert_true(rc == 0 || (rc == PLAN_INFEASIBLE && err.text[0] != '\0'));
		found += rc == 0;
		none += rc != 0;
		cluster_free(c);
	}
	assert_true(found > 300 && none > 300);
}

/* The search and the oracle agree, and the skip ratio that a refusal offers has a plan. */
TEST(refusals_are_true_and_offer_a_ratio_that_has_a_plan)
{
	int offered = 0, refused = 0;
	struct rng r;

	rng_init(&r, 43);
	for (int round = 0; round < 400; round++) {
		struct cluster *c = sparse_cluster(&r);
		struct error err = { "" };
		struct plan *plan = NULL;
		struct plan_request q;
		const char *offer;
		int rc, skip, of;

		plan_request_init(&q);
		q.path_length = 1 + (int)rng_below(&r, (uint32_t)c->n_stages);
		q.evaluations = 20;
		rc = plan_search(c, &q, &plan, &err);
		plan_free(plan);
		plan = NULL;
		if (rc == PLAN_INFEASIBLE)
			assert_false(oracle_paths_exist(c, q.path_length, false));
		else if (rc ==
			 PLAN_NOT_FOUND) /* paths exist, but the paths tried come to a standstill */
			assert_false(oracle_paths_exist(c, q.path_length, true));
		else
			assert_int_equal(rc, 0);
		refused += rc != 0;
		offer = strstr(err.text, "a skip of ");
		if (rc != 0 && offer) {
			assert_int_equal(sscanf(offer, "a skip of %d/%d would be possible", &skip,
						&of), 2);
			assert_int_equal(of, c->n_stages);
			q.path_length = of - skip;
			assert_int_equal(plan_search(c, &q, &plan, NULL), 0);
			plan_free(plan);
			offered++;
		} else if (rc != 0) {
			for (int length = 1; length <= c->n_stages; length++)
				assert_false(oracle_paths_exist(c, length, true));
		}
		cluster_free(c);
	}
	assert_true(refused > 50 && offered > 30);
}
