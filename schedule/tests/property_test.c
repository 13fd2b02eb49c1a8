/* Tests random requests: each answer of the search must be a plan that passes the checker, or a
 * true refusal. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/skip_schedule.h"
#include "base/tests/test.h"
#include "schedule/execution/check.h"
#include "schedule/search/search.h"
#include "schedule/execution/simulate.h"
#include "schedule/tests/fixture.h"
#include "schedule/tests/oracle.h"

struct question {
	struct cluster *cluster;
	struct plan_request q;
	bool excluded[32];
	int n_excluded;
};

/* Draws a request with unequal nodes, missing links, and nodes that are unpinned, excluded or
 * without memory. */
static void draw_question(struct rng *r, int round, struct question *x)
{
	struct fixture_shape shape = { .most_stages = 5,
				       .most_replicas = 4,
				       .most_microbatches = 3,
				       .most_memory = 3,
				       .absent = round % 3 ? 0 : 0.4 * rng_uniform(r),
				       .grid = round % 2,
				       .unpinned = round % 5 == 0 };
	struct cluster *c = fixture_random_cluster(r, &shape);

	*x = (struct question){ .cluster = c };
	plan_request_init(&x->q);
	for (int i = 0; i < c->n_nodes; i++) {
		if (round % 4 == 1 && rng_below(r, 6) == 0)
			c->nodes[i].memory = 0;
		x->excluded[i] = round % 7 == 2 && rng_below(r, 5) == 0;
		x->n_excluded += x->excluded[i];
	}
	x->q.excluded = x->excluded;
	for (int s = 1; s < c->n_stages && round % 3 == 1; s++)
		c->always |= (stage_set)(rng_below(r, 3) == 0) << s;
	x->q.path_length = (int)rng_below(r, (uint32_t)c->n_stages + 1);
	if (x->q.path_length > 0 && x->q.path_length < stage_set_count(c->always))
		x->q.path_length = stage_set_count(c->always);
	x->q.algorithm =
		(enum plan_algorithm)(rng_below(r, 10) < 5 ? PLAN_BEST : rng_below(r, 5));
	x->q.free_assignment = rng_below(r, 6) == 0;
	if (x->q.free_assignment && x->q.algorithm == PLAN_BEST && rng_below(r, 2))
		x->q.sync_limit_s = 4 * rng_uniform(r);
	x->q.ascending = rng_below(r, 4) == 0;
	x->q.keep_batch = rng_below(r, 2);
	if (x->q.algorithm == PLAN_BEST && round % 3 == 2)
		x->q.skip_share = 1 + (int)rng_below(r, 99);
	x->q.seed = (uint64_t)round;
	x->q.evaluations = 1 + (int)rng_below(r, 60);
}

/* Checks that the checker refuses a copy of the plan that claims another share. If this share means
 * the same number of skipping microbatches for each data node, the checker must accept the copy. */
static void assert_refused(const struct question *x, const struct plan *p, int share,
			   const int *skip, const int *sent)
{
	struct plan *other = plan_copy(p);
	struct check_report report;
	bool same = true, named = false;

	other->skip_share = share;
	for (int v = 0; v < x->cluster->n_nodes; v++)
		same = same && skip_share_count(share, sent[v]) == skip[v];
	check_plan(x->cluster, other, NULL, NULL, &report);
	for (int i = 0; i < report.n_breaches; i++)
		named = named || strncmp(report.breaches[i], "share: ", 7) == 0;
	assert_true(named != same);
	check_report_fini(&report);
	plan_free(other);
}

/* Checks that the number of each data node's microbatches that skip stages is the share, rounded to
 * the nearest whole number. */
static void assert_share(const struct question *x, const struct plan *p)
{
	int sent[32] = { 0 }, skip[32] = { 0 };

	for (int i = 0; i < p->n_microbatches; i++) {
		const struct plan_microbatch *m = &p->microbatches[i];

		sent[m->data_node]++;
		skip[m->data_node] += m->length == p->path_length;
		assert_true(m->length == p->path_length || m->length == p->n_stages);
	}
	for (int v = 0; v < x->cluster->n_nodes; v++)
		assert_true(abs(100 * skip[v] - x->q.skip_share * sent[v]) <= 50);
	assert_refused(x, p, x->q.skip_share > 50 ? 1 : 99, skip, sent);
}

static void assert_good(const struct question *x, const struct plan *p)
{
	struct check_options options = { .excluded = x->excluded,
					 .pins = !x->q.free_assignment };
	struct check_report report;
	struct simulation *s = NULL;
	struct error err = { "" };

	if (simulate(x->cluster, p, &s, &err) != 0)
		fail_msg("%s", err.text);
	check_plan(x->cluster, p, s, &options, &report);
	if (report.n_breaches > 0)
		fail_msg("%s", report.breaches[0]);
	assert_true(s->iteration_s == p->predicted.iteration_s);
	assert_true(x->q.sync_limit_s <= 0 || s->sync_s <= x->q.sync_limit_s);
	assert_true(p->predicted.lower_bound_s <= s->iteration_s * (1 + 1e-9));
	if (x->q.skip_share > 0 && p->path_length < p->n_stages)
		assert_share(x, p);
	check_report_fini(&report);
	simulation_free(s);
}

static bool all_pinned(const struct cluster *c)
{
	for (int i = 0; i < c->n_nodes; i++) {
		if (c->nodes[i].stage < 0)
			return false;
	}
	return true;
}

/* Returns the oracle's answer. 1: legal paths exist; 0: none exist; -1: the oracle cannot decide,
 * because a data node is excluded or a node has no stage. */
static int paths_exist(const struct question *x)
{
	struct cluster *c = cluster_copy(x->cluster);
	int length = x->q.path_length, answer = -1;
	bool known = all_pinned(c) && !x->q.free_assignment && x->q.skip_share == 0;

	assert_non_null(c);
	if (x->q.algorithm == PLAN_DTFM)
		length = c->n_stages;
	else if (length == 0)
		length = plan_default_path_length(c);
	for (int i = 0; i < c->n_nodes; i++) {
		known = known && !(x->excluded[i] && c->nodes[i].stage == 0);
		c->nodes[i].memory = x->excluded[i] ? 0 : c->nodes[i].memory;
	}
	if (known)
		answer = oracle_paths_exist(c, length, x->q.ascending);
	cluster_free(c);
	return answer;
}

static bool a_stage_is_empty(const struct question *x)
{
	int left[64] = { 0 };
	bool empty = false;

	for (int i = 0; i < x->cluster->n_nodes; i++) {
		if (x->cluster->nodes[i].stage >= 0)
			left[x->cluster->nodes[i].stage] += !x->excluded[i];
	}
	for (int s = 0; s < x->cluster->n_stages; s++)
		empty = empty || left[s] == 0;
	return empty;
}

TEST(every_answer_is_good_or_a_true_refusal)
{
	int planned = 0, refused = 0, not_found = 0;
	struct rng r;

	rng_init(&r, 71);
	for (int round = 0; round < 3000; round++) {
		struct question x;
		struct plan *p = NULL;
		struct error err = { "" };
		int rc, exist;

		draw_question(&r, round, &x);
		rc = plan_search(x.cluster, &x.q, &p, &err);
		exist = paths_exist(&x);
		if (rc == 0) {
			assert_good(&x, p);
			planned++;
		} else {
			assert_null(p);
			assert_true(err.text[0] != '\0');
			if (rc == PLAN_INFEASIBLE && exist == 1 && !a_stage_is_empty(&x))
				fail_msg("round %d: there are paths: %s", round, err.text);
			if (rc != PLAN_INFEASIBLE && rc != PLAN_NOT_FOUND)
				fail_msg("round %d: %d %s, algorithm %d free %d excluded %d",
					 round, rc, err.text, (int)x.q.algorithm,
					 x.q.free_assignment, x.n_excluded);
			refused += rc == PLAN_INFEASIBLE;
			not_found += rc == PLAN_NOT_FOUND;
		}
		plan_free(p);
		cluster_free(x.cluster);
	}
	print_message("%d planned, %d refused, %d not found\n", planned, refused, not_found);
	assert_true(planned > 1500 && refused > 200);
}

static void assert_same(const struct plan *a, const struct plan *b)
{
	assert_int_equal(a->n_microbatches, b->n_microbatches);
	assert_int_equal(a->search.evaluations, b->search.evaluations);
	for (int i = 0; i < a->n_microbatches; i++) {
		const struct plan_microbatch *m = &a->microbatches[i];

		assert_int_equal(m->length, b->microbatches[i].length);
		assert_memory_equal(m->path, b->microbatches[i].path,
				    (size_t)m->length * sizeof(int));
	}
	assert_memory_equal(a->assigned, b->assigned,
			    (size_t)a->stage_start[a->n_stages] * sizeof(int));
	assert_true(a->predicted.iteration_s == b->predicted.iteration_s);
	assert_true(a->predicted.lower_bound_s == b->predicted.lower_bound_s);
}

TEST(same_question_same_answer)
{
	struct rng r;
	int same = 0;

	rng_init(&r, 73);
	for (int round = 0; round < 150; round++) {
		struct plan *a = NULL, *b = NULL;
		struct question x;
		int rc;

		draw_question(&r, round, &x);
		x.q.evaluations = round % 10 ? 100 : 3000;
		rc = plan_search(x.cluster, &x.q, &a, NULL);
		x.q.threads = 4;
		assert_int_equal(plan_search(x.cluster, &x.q, &b, NULL), rc);
		if (rc == 0)
			assert_same(a, b);
		same += rc == 0;
		plan_free(a);
		plan_free(b);
		cluster_free(x.cluster);
	}
	assert_true(same > 75);
}

struct searcher {
	const struct question *x;
	struct plan *plan;
	int rc;
};

static void *search(void *arg)
{
	struct searcher *s = arg;

	s->rc = plan_search(s->x->cluster, &s->x->q, &s->plan, NULL);
	return NULL;
}

/* Two searches run at the same time, and another thread cancels both at a random moment. The plans
 * found so far must be complete, and a leak checker must find nothing. */
TEST(cancelled_at_any_moment)
{
	int planned = 0;
	struct rng r;

	rng_init(&r, 79);
	for (int round = 0; round < 120; round++) {
		struct timespec moment = { 0, (long)rng_below(&r, 3000000) };
		struct searcher two[2] = { { 0 } };
		pthread_t threads[2];
		atomic_bool cancel = false;
		struct question x;

		draw_question(&r, round, &x);
		x.q.evaluations = 0; /* no limit other than cancelling */
		x.q.cancel = &cancel;
		x.q.threads = 1 + round % 3;
		for (int i = 0; i < 2; i++) {
			two[i].x = &x;
			assert_int_equal(pthread_create(&threads[i], NULL, search, &two[i]), 0);
		}
		nanosleep(&moment, NULL);
		atomic_store(&cancel, true);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(pthread_join(threads[i], NULL), 0);
			if (two[i].rc == 0)
				assert_good(&x, two[i].plan);
			else
				assert_true(two[i].rc > 0 || two[i].rc == -ECANCELED);
			planned += two[i].rc == 0;
			plan_free(two[i].plan);
		}
		cluster_free(x.cluster);
	}
	assert_true(planned > 50);
}
