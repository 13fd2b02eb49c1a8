/* The bookkeeping of an iteration, driven by random runs with random deaths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "controller/routes.h"

enum { NODES = 11, STAGES = 4, DATA = 3, WAVES = 4, N = DATA * WAVES };

/* Stage 0: nodes 0-2, stage 1: 3-5, stage 2: 6-8, stage 3: 9-10. */
static const int stage_of[NODES] = { 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3 };
static const int shard_of[NODES] = { 0, 1, 2, -1, -1, -1, -1, -1, -1, -1, -1 };

static struct cluster *make_cluster(void)
{
	struct cluster *c = cluster_alloc(NODES, STAGES, false);

	assert_non_null(c);
	for (int i = 0; i < NODES * NODES; i++)
		c->delay_s[i] = 0.01 * (1 + (i * 7) % 13);
	for (int i = 0; i < NODES; i++)
		c->nodes[i].forward_s = c->nodes[i].backward_s = 0.1;
	return c;
}

/* Every microbatch visits three stages; every third one with the last two exchanged. */
static struct plan *make_plan(struct rng *rng)
{
	struct plan *p = plan_alloc(STAGES, NODES, N, 3);

	assert_non_null(p);
	for (int i = 0, s = -1; i < NODES; i++) {
		while (s < stage_of[i])
			p->stage_start[++s] = i;
		p->assigned[i] = i;
	}
	p->stage_start[STAGES] = NODES;
	p->path_length = 3;
	for (int i = 0; i < N; i++) {
		struct plan_microbatch *m = &p->microbatches[i];
		int a = 3 + (int)rng_below(rng, 3), b = 6 + (int)rng_below(rng, 3);

		m->data_node = m->path[0] = i % DATA;
		m->path[1] = i % 3 == 2 ? b : a;
		m->path[2] = i % 3 == 2 ? a : b;
	}
	return p;
}

static void setup(struct routes *r, struct plan **p, uint64_t seed)
{
	struct rng rng;
	struct error err = { "" };

	rng_init(&rng, seed);
	*p = make_plan(&rng);
	assert_int_equal(routes_init(r, N, NODES), 0);
	assert_int_equal(routes_from_plan(r, *p, shard_of, DATA, WAVES, 0, &err), 0);
}

static void data_is_dealt_once(void **state)
{
	struct routes r;
	struct plan *p;
	bool seen[DATA][WAVES] = { { false } };

	(void)state;
	setup(&r, &p, 1);
	for (int i = 0; i < N; i++) {
		const struct msg_route *m = &r.microbatches[i].route;

		assert_true(m->shard < DATA && m->wave < WAVES);
		assert_false(seen[m->shard][m->wave]);
		seen[m->shard][m->wave] = true;
		assert_int_equal(m->shard, shard_of[m->nodes[0]]);
	}
	/* Node 2 is out, the others send its microbatches: all data is still read, once. */
	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < N; i++)
		if (p->microbatches[i].path[0] == 2)
			p->microbatches[i].path[0] = i % 2;
	assert_int_equal(routes_from_plan(&r, p, shard_of, DATA, WAVES, 0, NULL), 0);
	for (int i = 0; i < N; i++) {
		const struct msg_route *m = &r.microbatches[i].route;

		assert_true(m->nodes[0] != 2 && !seen[m->shard][m->wave]);
		seen[m->shard][m->wave] = true;
	}
	routes_fini(&r);
	plan_free(p);
}

/* A node with nothing to do behind a link of ten seconds, and one without a link, are no help. */
static void who_takes_over_is_near(void **state)
{
	struct cluster *c = make_cluster();
	bool usable[NODES];
	uint32_t changed[N];
	struct routes r;
	struct plan *p;
	int n;

	(void)state;
	setup(&r, &p, 3);
	for (int i = 0; i < NODES; i++)
		usable[i] = i != 3;
	for (uint32_t i = 0; i < N; i++) {
		struct microbatch *m = &r.microbatches[i];

		m->nodes[m->stages[1] == 1 ? 1 : 2] = i % 2 ? 3 : 4; /* node 5 is idle */
	}
	c->delay_s[0 * NODES + 5] = c->delay_s[5 * NODES + 0] = 10;
	c->delay_s[1 * NODES + 5] = -1;
	n = routes_replace(&r, 3, usable, stage_of, c, changed);
	assert_int_equal(n, N / 2);
	for (int k = 0; k < n; k++) {
		const struct microbatch *m = &r.microbatches[changed[k]];
		int node = m->nodes[m->stages[1] == 1 ? 1 : 2];

		assert_int_equal(node, m->nodes[0] == 2 ? 5 : 4);
	}
	routes_fini(&r);
	plan_free(p);
	cluster_free(c);
}

/* What an agent does: counts a microbatch's gradient once, whatever the attempt. */
struct agents {
	bool loss[NODES][N], backward[NODES][N];
};

static bool all_counted(const struct agents *a, const struct microbatch *m, uint32_t id)
{
	for (uint32_t h = 0; h < m->route.n_hops; h++)
		if (!a->backward[m->nodes[h]][id])
			return false;
	return true;
}

static bool stage_counted(const struct agents *a, const struct routes *r, uint8_t stage)
{
	for (uint32_t id = 0; id < r->n; id++)
		for (uint32_t h = 0; h < r->microbatches[id].route.n_hops; h++)
			if (r->microbatches[id].stages[h] == stage &&
			    !a->backward[r->microbatches[id].nodes[h]][id])
				return false;
	return true;
}

static void run_microbatch(struct routes *r, struct agents *a, uint32_t id)
{
	struct microbatch *m = &r->microbatches[id];

	for (uint16_t node = 0; node < NODES; node++)
		for (uint8_t kind = WORK_FORWARD; kind <= WORK_WEIGHTS; kind++)
			assert_true(routes_may_count(r, node, id, kind) ==
				    ((kind == WORK_LOSS && node == m->nodes[0] &&
				      !a->loss[node][id]) ||
				     (kind == WORK_BACKWARD && routes_hop(m, node) >= 0 &&
				      !a->backward[node][id])));
	if (!a->loss[m->nodes[0]][id])
		assert_int_equal(routes_count(r, m->nodes[0], id, WORK_LOSS), 0);
	assert_true(routes_counted(r, id) == all_counted(a, m, id));
	a->loss[m->nodes[0]][id] = true;
	for (uint32_t h = m->route.n_hops; h-- > 0;) {
		assert_true(routes_lacks(r, m->nodes[h], id) == !a->backward[m->nodes[h]][id]);
		if (!a->backward[m->nodes[h]][id])
			assert_int_equal(routes_count(r, m->nodes[h], id, WORK_BACKWARD), 0);
		a->backward[m->nodes[h]][id] = true;
	}
	assert_true(routes_counted(r, id));
	for (uint8_t stage = 0; stage < STAGES; stage++)
		assert_true(routes_stage_counted(r, stage) == stage_counted(a, r, stage));
	m->done = true;
	r->done++;
}

static void every_gradient_counts_once_through_any_deaths(void **state)
{
	struct cluster *c = make_cluster();

	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct routes r;
		struct plan *p;
		struct agents *a = calloc(1, sizeof(*a));
		struct rng rng;
		struct error err = { "" };
		bool alive[NODES];
		uint32_t changed[N];

		rng_init(&rng, seed + 1000);
		setup(&r, &p, seed);
		memset(alive, true, sizeof(alive));
		while (r.done < N) {
			uint32_t id = rng_below(&rng, N);
			uint16_t gone = (uint16_t)rng_below(&rng, NODES);

			if (!r.microbatches[id].done)
				run_microbatch(&r, a, id);
			if (rng_below(&rng, 8) != 0 || !alive[gone])
				continue;
			alive[gone] = false;
			if (routes_replace(&r, gone, alive, stage_of, c, changed) == -ENOENT)
				alive[gone] = true; /* the last copy: it comes back */
		}
		if (routes_audit(&r, alive, &err) != 0)
			fail_msg("seed %u: %s", (unsigned)seed, err.text);
		for (int i = 0; i < N; i++)
			for (uint32_t h = 0; h < 3; h++) {
				uint16_t node = r.microbatches[i].nodes[h];

				assert_true(alive[node]);
				assert_int_equal(stage_of[node], r.microbatches[i].stages[h]);
			}
		routes_fini(&r);
		plan_free(p);
		free(a);
	}
	cluster_free(c);
}

static void the_audit_finds_what_is_wrong(void **state)
{
	struct routes r;
	struct plan *p;
	struct agents *a = calloc(1, sizeof(*a));
	struct error err = { "" };
	bool alive[NODES];

	(void)state;
	memset(alive, true, sizeof(alive));
	setup(&r, &p, 5);
	for (uint32_t i = 0; i < N; i++)
		run_microbatch(&r, a, i);
	assert_int_equal(routes_audit(&r, alive, &err), 0);
	r.counts[0].n--; /* one is missing */
	assert_int_equal(routes_audit(&r, alive, &err), -EPROTO);
	r.counts[0].n++;
	routes_count(&r, 4, 0, WORK_BACKWARD); /* one too many, or where it never was */
	assert_int_equal(routes_audit(&r, alive, &err), -EPROTO);
	assert_non_null(strstr(err.text, "microbatch 0"));
	routes_fini(&r);
	plan_free(p);
	free(a);
}

static void a_lost_stage_changes_nothing(void **state)
{
	struct cluster *c = make_cluster();
	struct routes r;
	struct plan *p;
	uint32_t changed[N];
	bool usable[NODES] = { true, true, true, false, false, false, true, true, true, true, true };
	uint16_t was = 0;

	(void)state;
	setup(&r, &p, 6);
	was = r.microbatches[0].nodes[1];
	assert_int_equal(routes_replace(&r, was, usable, stage_of, c, changed), -ENOENT);
	assert_int_equal(r.microbatches[0].nodes[1], was);
	assert_int_equal(r.microbatches[0].route.attempt, 0);
	assert_int_equal(r.rerun, 0);
	routes_fini(&r);
	plan_free(p);
	cluster_free(c);
}

static void unswapping_ends(void **state)
{
	struct routes r;
	struct plan *p;
	int64_t id;
	int n = 0;

	(void)state;
	setup(&r, &p, 7);
	r.microbatches[2].passed = 4; /* at its loss: past the forward pass */
	while ((id = routes_unswap(&r)) >= 0) {
		const struct microbatch *m = &r.microbatches[id];

		assert_true(m->stages[1] < m->stages[2]);
		assert_int_equal(stage_of[m->nodes[1]], m->stages[1]);
		assert_int_equal(m->route.attempt, 1);
		n++;
	}
	assert_int_equal(n, N / 3 - 1);
	assert_int_equal(r.microbatches[2].route.attempt, 0);
	routes_fini(&r);
	plan_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_is_dealt_once),
		cmocka_unit_test(who_takes_over_is_near),
		cmocka_unit_test(every_gradient_counts_once_through_any_deaths),
		cmocka_unit_test(the_audit_finds_what_is_wrong),
		cmocka_unit_test(a_lost_stage_changes_nothing), cmocka_unit_test(unswapping_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
