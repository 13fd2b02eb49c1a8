#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "schedule/cluster.h"
#include "schedule/place.h"

/* Nodes in two places, 1 s apart and 0.01 s within. */
static struct cluster *make(int stages, int replicas, bool pin_first)
{
	int n = stages * replicas;
	struct cluster *c = cluster_alloc(n, stages, true);

	assert_non_null(c);
	c->microbatches_per_data_node = 1;
	for (int s = 0; s < stages; s++)
		c->stages[s] = replicas;
	for (int i = 0; i < n; i++) {
		c->nodes[i].stage = pin_first && i == 0 ? stages - 1 : -1;
		for (int j = 0; j < n; j++) {
			c->delay_s[i * n + j] = 0.1;
			c->sync_pair_s[i * n + j] = (i < n / 2) == (j < n / 2) ? 0.01 : 1;
		}
	}
	return c;
}

static void deal(struct solution *s, const struct problem *p, struct rng *r)
{
	for (int i = 0; i < p->n_nodes; i++)
		s->stage_of[i] = i % p->n_stages;
	if (!p->movable[0]) {
		s->stage_of[p->n_stages - 1] = 0;
		s->stage_of[0] = p->n_stages - 1;
	}
	solution_index(s, p);
	for (int i = 0; i < 4 * p->n_nodes; i++) {
		int a = (int)rng_below(r, (uint32_t)p->n_nodes);
		int b = (int)rng_below(r, (uint32_t)p->n_nodes);

		if (p->movable[a] && p->movable[b])
			solution_exchange(s, a, b);
	}
}

static void places_that_are_far_apart_share_no_stage(void **state)
{
	int mixed = 0;
	struct rng r;

	(void)state;
	rng_init(&r, 3);
	for (int round = 0; round < 200; round++) {
		int stages = 2 * (1 + (int)rng_below(&r, 4)),
		    replicas = 2 + (int)rng_below(&r, 4);
		struct cluster *c = make(stages, replicas, round % 2);
		struct plan_request q;
		double before_s;
		struct solution s;
		struct problem p;

		plan_request_init(&q);
		assert_int_equal(problem_init(&p, c, &q, NULL), 0);
		assert_int_equal(solution_init(&s, &p), 0);
		deal(&s, &p, &r);
		before_s = solution_sync_s(&s, &p);
		mixed += before_s > 0.5;
		place_by_sync(&s, &p);
		/* A pinned node may be alone in its stage with nobody to change with. */
		assert_true(solution_sync_s(&s, &p) < (round % 2 ? before_s + 1e-9 : 0.05));
		for (int stage = 0; stage < stages; stage++) {
			assert_int_equal(s.start[stage + 1] - s.start[stage], replicas);
			for (int i = s.start[stage]; i < s.start[stage + 1]; i++)
				assert_int_equal(s.stage_of[s.members[i]], stage);
		}
		if (round % 2)
			assert_int_equal(s.stage_of[0], stages - 1);
		solution_fini(&s);
		problem_fini(&p);
		cluster_free(c);
	}
	assert_true(mixed > 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_that_are_far_apart_share_no_stage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
