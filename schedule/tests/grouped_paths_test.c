/* Tests tied microbatches: the construction gives them one path, and no move separates their paths.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "schedule/improve/anneal.h"
#include "schedule/start/construct.h"
#include "schedule/tests/fixture.h"

struct setting {
	struct cluster *c;
	struct plan_request q;
	struct problem p;
	struct solution s;
	bool excluded[20];
	int *ring;
};

/* without: a node to exclude; -1: none. */
static void make(struct setting *x, int microbatches, int without)
{
	*x = (struct setting){ .c = fixture_cluster("geo20_s8.json") };
	x->c->microbatches_per_data_node = microbatches;
	plan_request_init(&x->q);
	x->q.path_length = 4;
	x->q.excluded = x->excluded;
	if (without >= 0)
		x->excluded[without] = true;
	assert_int_equal(problem_init(&x->p, x->c, &x->q, NULL), 0);
	solution_init(&x->s, &x->p);
	assert_int_equal(construct_assignment(&x->s, &x->p, NULL), 0);
	x->ring = calloc((size_t)x->p.n_mb, sizeof(*x->ring));
	assert_non_null(x->ring);
}

static void unmake(struct setting *x)
{
	free(x->ring);
	solution_fini(&x->s);
	problem_fini(&x->p);
	cluster_free(x->c);
}

static const int *path_of(const struct setting *x, const struct solution *s, int mb)
{
	return s->path + (size_t)mb * (size_t)x->p.length;
}

static bool same_path(const struct setting *x, const struct solution *s, int a, int b)
{
	return memcmp(path_of(x, s, a), path_of(x, s, b),
		      (size_t)x->p.length * sizeof(int)) == 0;
}

static void assert_exposure(const struct setting *x, const struct solution *s)
{
	int visits[CLUSTER_MOST_STAGES] = { 0 };

	for (int i = 0; i < x->p.n_mb * x->p.length; i++)
		visits[s->stage_of[s->path[i]]]++;
	for (int k = 1; k < x->p.n_stages; k++)
		assert_in_range(visits[k], x->p.low[k], x->p.high[k]);
}

/* Counts the microbatches in the ring of tied microbatches that contains mb. */
static int ring_size(const struct setting *x, int mb)
{
	int n = 1;

	for (int i = x->ring[mb]; i != mb; i = x->ring[i]) {
		assert_int_equal(x->p.mb_slot[i], x->p.mb_slot[mb]);
		assert_true(same_path(x, &x->s, i, mb));
		n++;
	}
	return n;
}

TEST(groups_take_the_same_path)
{
	for (int group = 2; group <= 6; group++) {
		struct setting x;
		struct rng rng;

		make(&x, 6, -1);
		rng_init(&rng, 3);
		for (int deal = 0; deal < 5; deal++) {
			assert_int_equal(construct_tied(&x.s, &x.p, group, deal ? &rng : NULL), 0);
			assert_exposure(&x, &x.s);
			construct_rings(x.ring, &x.s, &x.p, group);
			for (int i = 0; i < x.p.n_mb; i++) {
				int rank = i % 6, apart = 6 / group;

				if (rank < apart * group)
					assert_true(ring_size(&x, i) >= group);
				else
					assert_int_equal(ring_size(&x, i), 1);
			}
		}
		unmake(&x);
	}
}

/* One microbatch of a pair belongs to the first wave, and the other one to the second wave. */
TEST(pairs_are_half_of_the_microbatches_apart)
{
	struct setting x;

	make(&x, 6, -1);
	assert_int_equal(construct_tied(&x.s, &x.p, 2, NULL), 0);
	for (int i = 0; i < x.p.n_mb; i++)
		assert_true(same_path(&x, &x.s, i, i % 6 < 3 ? i + 3 : i - 3));
	unmake(&x);
}

/* With 24 microbatches each stage needs 14 or 15 visits, but groups of six can only make 12 or
 * 18. */
TEST(impossible_groups_are_refused)
{
	struct setting x;

	make(&x, 6, 0); /* excludes a data node */
	assert_int_equal(x.p.n_mb, 24);
	assert_int_equal(construct_tied(&x.s, &x.p, 6, NULL), PLAN_INFEASIBLE);
	assert_int_equal(construct_tied(&x.s, &x.p, 5, NULL), 0);
	assert_exposure(&x, &x.s);
	construct_rings(x.ring, &x.s, &x.p, 5);
	for (int i = 0; i < x.p.n_mb; i++)
		assert_int_equal(ring_size(&x, i), i % 6 < 5 ? 5 : 1);
	unmake(&x);
}

TEST(moves_keep_ties)
{
	for (int group = 2; group <= 6; group += 2) {
		struct setting x;
		struct anneal a;
		double first_s;

		make(&x, 6, group == 4 ? 1 : -1);
		assert_int_equal(construct_tied(&x.s, &x.p, group, NULL), 0);
		construct_rings(x.ring, &x.s, &x.p, group);
		assert_int_equal(anneal_init(&a, &x.p, &x.s, 1, 1), 0);
		first_s = a.best_s;
		a.moves.tied = x.ring;
		for (int i = 0; i < 3000; i++) {
			anneal_step(&a);
			for (int mb = 0; mb < x.p.n_mb; mb++)
				assert_true(same_path(&x, &a.current, mb, x.ring[mb]));
			assert_exposure(&x, &a.current);
		}
		assert_true(a.best_s < first_s);
		anneal_fini(&a);
		unmake(&x);
	}
}
