/* Tests placement: sums and tours become short, and pinned nodes keep their stages. */
#include <stdlib.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "schedule/format/cluster.h"
#include "schedule/start/place.h"

/* Returns a cluster with nodes in two locations: gradients take 1 s between the locations and 0.01
 * s within one. */
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

struct setting {
	struct cluster *c;
	struct plan_request q;
	struct problem p;
	struct solution s;
};

/* Makes the problem for the request x->q, and takes ownership of the cluster. */
static void begin(struct setting *x, struct cluster *c)
{
	x->c = c;
	assert_int_equal(problem_init(&x->p, c, &x->q, NULL), 0);
	solution_init(&x->s, &x->p);
}

static void end(struct setting *x)
{
	solution_fini(&x->s);
	problem_fini(&x->p);
	cluster_free(x->c);
}

TEST(distant_locations_share_no_stage)
{
	int mixed = 0;
	struct rng r;

	rng_init(&r, 3);
	for (int round = 0; round < 200; round++) {
		int stages = 2 * (1 + (int)rng_below(&r, 4)),
		    replicas = 2 + (int)rng_below(&r, 4);
		struct cluster *c = make(stages, replicas, round % 2);
		double before_s;
		struct setting x;

		plan_request_init(&x.q);
		begin(&x, c);
		deal(&x.s, &x.p, &r);
		before_s = solution_sync_s(&x.s, &x.p, NULL);
		mixed += before_s > 0.5;
		place_by_sync(&x.s, &x.p, NULL);
		/* In odd rounds a node is pinned, and may remain the only node of its location in
		 * its stage. The sum of this stage may then stay slow. */
		assert_true(solution_sync_s(&x.s, &x.p, NULL) <
			    (round % 2 ? before_s + 1e-9 : 0.05));
		for (int stage = 0; stage < stages; stage++) {
			assert_int_equal(x.s.start[stage + 1] - x.s.start[stage], replicas);
			for (int i = x.s.start[stage]; i < x.s.start[stage + 1]; i++)
				assert_int_equal(x.s.stage_of[x.s.members[i]], stage);
		}
		if (round % 2)
			assert_int_equal(x.s.stage_of[0], stages - 1);
		end(&x);
	}
	assert_true(mixed > 150);
}

/* Finds the shortest sum over all placements of the nodes from number `node` on. */
static double least_sync(struct solution *s, const struct problem *p, int node, int *room)
{
	double least = 1e9;

	if (node == p->n_nodes) {
		solution_index(s, p);
		return solution_sync_s(s, p, NULL);
	}
	for (int stage = 0; stage < p->n_stages; stage++) {
		double now;

		if (room[stage] == 0)
			continue;
		room[stage]--;
		s->stage_of[node] = stage;
		now = least_sync(s, p, node + 1, room);
		least = now < least ? now : least;
		room[stage]++;
	}
	return least;
}

TEST(small_clusters_mostly_get_the_best_placement)
{
	int best = 0, kept = 0, early = 0;
	struct rng r;

	rng_init(&r, 8);
	for (int round = 0; round < 50; round++) {
		struct cluster *c = make(3, 3, false);
		int room[] = { 3, 3, 3 };
		struct setting x;
		double least, got;

		for (int i = 0; i < 81; i++)
			c->sync_pair_s[i] = 0.01 + rng_uniform(&r);
		plan_request_init(&x.q);
		begin(&x, c);
		least = least_sync(&x.s, &x.p, 0, room);
		deal(&x.s, &x.p, &r);
		place_by_sync(&x.s, &x.p, NULL);
		got = solution_sync_s(&x.s, &x.p, NULL);
		assert_true(got > least - 1e-9);
		best += got < least + 1e-9;
		/* Tries a limit that can just be kept, and one that leaves room. */
		deal(&x.s, &x.p, &r);
		place_within(&x.s, &x.p, least + 1e-9);
		kept += solution_sync_s(&x.s, &x.p, NULL) <= least + 1e-9;
		deal(&x.s, &x.p, &r);
		place_within(&x.s, &x.p, least + 0.2);
		got = solution_sync_s(&x.s, &x.p, NULL);
		assert_true(got <= least + 0.2);
		early += got > least + 1e-9;
		end(&x);
	}
	assert_true(best >= 30); /* of 50 rounds; 20 without random restarts */
	assert_int_equal(kept, 50);
	assert_true(early >= 25);
}

/* Returns a cluster whose stages lie along a line, 1 s from one stage to the next. */
static struct cluster *make_line(int stages, struct rng *r)
{
	struct cluster *c = make(stages, 2, false);
	int at[16];

	for (int s = 0; s < stages; s++) {
		int other = (int)rng_below(r, (uint32_t)s + 1);

		at[s] = at[other];
		at[other] = s;
	}
	c->nodes[1].stage = 1;
	for (int i = 0; i < c->n_nodes; i++) {
		for (int j = 0; j < c->n_nodes; j++)
			c->delay_s[i * c->n_nodes + j] =
				0.01 + abs(at[i % stages] - at[j % stages]);
	}
	return c;
}

/* Returns the length of a path through all stages. */
static double trip_s(const struct solution *s, const struct problem *p)
{
	double sum_s = 0;

	for (int k = 0; k < p->n_stages; k++) {
		int u = s->members[s->start[k]];
		int v = s->members[s->start[(k + 1) % p->n_stages]];

		sum_s += p->delay[u * p->n_nodes + v];
	}
	return sum_s;
}

TEST(stages_get_an_order_with_short_paths)
{
	int shorter = 0;
	struct rng r;

	rng_init(&r, 5);
	for (int round = 0; round < 100; round++) {
		int stages = 4 + (int)rng_below(&r, 6);
		struct cluster *c = make_line(stages, &r);
		double before_s, sync_s;
		struct setting x;

		plan_request_init(&x.q);
		x.q.path_length = stages;
		begin(&x, c);
		for (int i = 0; i < x.p.n_nodes; i++)
			x.s.stage_of[i] = i % stages;
		solution_index(&x.s, &x.p);
		before_s = trip_s(&x.s, &x.p);
		sync_s = solution_sync_s(&x.s, &x.p, NULL);
		place_in_order(&x.s, &x.p);
		assert_true(trip_s(&x.s, &x.p) < before_s + 1e-9);
		assert_true(solution_sync_s(&x.s, &x.p, NULL) == sync_s);
		shorter += trip_s(&x.s, &x.p) < before_s - 0.5;
		/* The node is pinned, so it keeps its stage */
		assert_int_equal(x.s.stage_of[1], 1);
		for (int i = 0; i < x.p.n_nodes; i++) {
			assert_int_equal(x.s.stage_of[i], x.s.stage_of[i % stages]);
			assert_int_equal(x.s.members[x.s.start[x.s.stage_of[i]] + i / stages], i);
		}
		end(&x);
	}
	assert_true(shorter > 70);
}

/* If the search is cancelled, place_by_sync exchanges no nodes. */
TEST(cancelling_stops_the_exchanges)
{
	atomic_bool cancel = true;
	struct progress g;
	struct setting x;
	struct cluster *c = make(4, 4, false);
	struct rng r;
	double before_s;

	rng_init(&r, 7);
	plan_request_init(&x.q);
	x.q.cancel = &cancel;
	begin(&x, c);
	progress_init(&g, &x.p, 0);
	deal(&x.s, &x.p, &r);
	before_s = solution_sync_s(&x.s, &x.p, NULL);
	assert_true(before_s > 0.5);
	place_by_sync(&x.s, &x.p, &g);
	assert_true(solution_sync_s(&x.s, &x.p, NULL) == before_s);
	cancel = false;
	place_by_sync(&x.s, &x.p, &g);
	assert_true(solution_sync_s(&x.s, &x.p, NULL) < 0.05);
	progress_fini(&g);
	end(&x);
}
