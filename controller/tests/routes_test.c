/* routes_test.c - checks routes and counts with random runs and random deaths. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "controller/iteration/routes.h"

enum { NODES = 11, STAGES = 4, DATA = 3, WAVES = 4, N = DATA * WAVES };

/* The nodes of each stage: 0 to 2, 3 to 5, 6 to 8, and 9 to 10. */
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

/* Every microbatch visits three stages. In every third microbatch the last two stages are
 * exchanged. */
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
	routes_init(r, N, NODES);
	assert_int_equal(routes_from_plan(r, *p, shard_of, DATA, WAVES, 0, &err), 0);
}

TEST(data_is_dealt_once)
{
	struct routes r;
	struct plan *p;
	bool seen[DATA][WAVES] = { { false } };

	setup(&r, &p, 1);
	for (int i = 0; i < N; i++) {
		const struct route *m = &r.microbatches[i].route;

		assert_true(m->shard < DATA && m->wave < WAVES);
		assert_false(seen[m->shard][m->wave]);
		seen[m->shard][m->wave] = true;
		assert_int_equal(m->shard, shard_of[m->nodes[0]]);
	}
	/* Node 2 is absent, and the other data nodes take over its microbatches. All data must
	 * still be read exactly once. */
	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < N; i++)
		if (p->microbatches[i].path[0] == 2)
			p->microbatches[i].path[0] = i % 2;
	assert_int_equal(routes_from_plan(&r, p, shard_of, DATA, WAVES, 0, NULL), 0);
	for (int i = 0; i < N; i++) {
		const struct route *m = &r.microbatches[i].route;

		assert_true(m->nodes[0] != 2 && !seen[m->shard][m->wave]);
		seen[m->shard][m->wave] = true;
	}
	routes_fini(&r);
	plan_free(p);
}

/* Neither an idle node behind a link of ten seconds nor a node without a link is chosen. */
TEST(substitutes_are_near)
{
	struct cluster *c = make_cluster();
	bool usable[NODES];
	uint32_t changed[N];
	struct routes r;
	struct plan *p;
	int n;

	setup(&r, &p, 3);
	for (int i = 0; i < NODES; i++)
		usable[i] = i != 3;
	for (uint32_t i = 0; i < N; i++) {
		struct microbatch *m = &r.microbatches[i];

		m->route.nodes[m->route.stages[1] == 1 ? 1 : 2] =
			/* no microbatch visits node 5 */
			i % 2 ? 3 : 4;
	}
	c->delay_s[0 * NODES + 5] = c->delay_s[5 * NODES + 0] = 10;
	c->delay_s[1 * NODES + 5] = -1;
	n = routes_replace(&r, 3, usable, stage_of, c, changed);
	assert_int_equal(n, N / 2);
	for (int k = 0; k < n; k++) {
		const struct microbatch *m = &r.microbatches[changed[k]];
		int node = m->route.nodes[m->route.stages[1] == 1 ? 1 : 2];

		assert_int_equal(node, m->route.nodes[0] == 2 ? 5 : 4);
	}
	routes_fini(&r);
	plan_free(p);
	cluster_free(c);
}

/* Simulated agents. Each agent counts a microbatch's gradient only once, however often the
 * microbatch is computed again. */
struct agents {
	bool loss[NODES][N], backward[NODES][N];
};

static bool stage_counted(const struct agents *a, const struct routes *r, uint8_t stage)
{
	for (uint32_t id = 0; id < r->n; id++)
		for (uint32_t h = 0; h < r->microbatches[id].route.n_hops; h++)
			if (r->microbatches[id].route.stages[h] == stage &&
			    !a->backward[r->microbatches[id].route.nodes[h]][id])
				return false;
	return true;
}

static bool lacks(const struct agents *a, const struct routes *r, uint16_t node, uint32_t id)
{
	const struct microbatch *m = &r->microbatches[id];

	return routes_hop(m, node) >= 0 &&
	       (!a->backward[node][id] || (node == m->route.nodes[0] && !a->loss[node][id]));
}

/* Checks that the routes await exactly the counts that the agents have not made. */
static void check_awaited(const struct routes *r, const struct agents *a)
{
	for (uint8_t stage = 0; stage < STAGES; stage++)
		assert_true(routes_stage_counted(r, stage) == stage_counted(a, r, stage));
	for (uint16_t node = 0; node < NODES; node++) {
		int64_t first = -1;

		for (uint32_t id = r->n; id-- > 0;)
			first = lacks(a, r, node, id) ? id : first;
		assert_int_equal(routes_lacking(r, node), first);
	}
}

static void run_microbatch(struct routes *r, struct agents *a, uint32_t id)
{
	struct microbatch *m = &r->microbatches[id];

	for (uint16_t node = 0; node < NODES; node++)
		for (uint8_t kind = TASK_FORWARD; kind <= TASK_EVALUATE; kind++)
			assert_true(routes_may_count(r, node, id, kind) ==
				    ((kind == TASK_LOSS && node == m->route.nodes[0] &&
				      !a->loss[node][id]) ||
				     (kind == TASK_BACKWARD && routes_hop(m, node) >= 0 &&
				      !a->backward[node][id])));
	if (!a->loss[m->route.nodes[0]][id])
		routes_count(r, m->route.nodes[0], id, TASK_LOSS);
	a->loss[m->route.nodes[0]][id] = true;
	check_awaited(r, a);
	for (uint32_t h = m->route.n_hops; h-- > 0;) {
		if (!a->backward[m->route.nodes[h]][id])
			routes_count(r, m->route.nodes[h], id, TASK_BACKWARD);
		a->backward[m->route.nodes[h]][id] = true;
		check_awaited(r, a);
	}
	m->done = true;
	r->done++;
}

TEST(every_gradient_counts_once_through_any_deaths)
{
	struct cluster *c = make_cluster();

	for (uint64_t seed = 0; seed < 300; seed++) {
		struct routes r;
		struct plan *p;
		struct agents *a = calloc(1, sizeof(*a));
		struct rng rng;
		struct error err = { "" };
		bool alive[NODES];
		int sum_of[NODES];
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
				/* the last replica of a stage cannot be replaced, so this node
				 * returns */
				alive[gone] = true;
			check_awaited(&r, a);
		}
		for (int i = 0; i < NODES; i++)
			sum_of[i] = alive[i] ? stage_of[i] : -1;
		if (routes_audit(&r, sum_of, &err) != 0)
			fail_msg("seed %u: %s", (unsigned)seed, err.text);
		for (int i = 0; i < N; i++)
			for (uint32_t h = 0; h < 3; h++) {
				uint16_t node = r.microbatches[i].route.nodes[h];

				assert_true(alive[node]);
				assert_int_equal(stage_of[node], r.microbatches[i].route.stages[h]);
			}
		routes_fini(&r);
		plan_free(p);
		free(a);
	}
	cluster_free(c);
}

TEST(the_audit_finds_what_is_wrong)
{
	struct routes r;
	struct plan *p;
	struct agents *a = calloc(1, sizeof(*a));
	struct error err = { "" };
	int sum_of[NODES];
	bool visited[NODES];

	memcpy(sum_of, stage_of, sizeof(sum_of));
	setup(&r, &p, 5);
	for (uint32_t i = 0; i < N; i++)
		run_microbatch(&r, a, i);
	assert_int_equal(routes_audit(&r, sum_of, &err), 0);
	r.counts[0].n--; /* one count is missing, so the audit must fail */
	assert_int_equal(routes_audit(&r, sum_of, &err), -EPROTO);
	r.counts[0].n++;
	routes_visited(&r, visited);
	for (uint16_t node = 0; node < NODES; node++) {
		sum_of[node] = -1; /* the node's part is in no sum, so the audit must fail */
		assert_int_equal(routes_audit(&r, sum_of, &err), visited[node] ? -EPROTO : 0);
		/* The node's part is in the sum of another stage, so the audit must fail */
		sum_of[node] = (stage_of[node] + 1) % STAGES;
		assert_int_equal(routes_audit(&r, sum_of, &err), visited[node] ? -EPROTO : 0);
		sum_of[node] = stage_of[node];
	}
	/* node 4 has counted microbatch 0 twice or never visited it, so the audit must fail */
	routes_count(&r, 4, 0, TASK_BACKWARD);
	assert_int_equal(routes_audit(&r, sum_of, &err), -EPROTO);
	assert_non_null(strstr(err.text, "microbatch 0"));
	routes_fini(&r);
	plan_free(p);
	free(a);
}

TEST(a_lost_stage_changes_nothing)
{
	struct cluster *c = make_cluster();
	struct routes r;
	struct plan *p;
	uint32_t changed[N];
	bool usable[NODES] = {
		true, true, true, false, false, false, true, true, true, true, true
	};
	uint16_t was = 0;

	setup(&r, &p, 6);
	was = r.microbatches[0].route.nodes[1];
	assert_int_equal(routes_replace(&r, was, usable, stage_of, c, changed), -ENOENT);
	assert_int_equal(r.microbatches[0].route.nodes[1], was);
	assert_int_equal(r.microbatches[0].route.attempt, 0);
	assert_int_equal(r.rerun, 0);
	routes_fini(&r);
	plan_free(p);
	cluster_free(c);
}

TEST(unswapping_ends)
{
	struct routes r;
	struct plan *p;
	int64_t id;
	int n = 0;

	setup(&r, &p, 7);
	/* This microbatch has reached its loss, so it is past the forward pass */
	r.microbatches[2].passed = 4;
	while ((id = routes_unswap(&r)) >= 0) {
		const struct microbatch *m = &r.microbatches[id];

		assert_true(m->route.stages[1] < m->route.stages[2]);
		assert_int_equal(stage_of[m->route.nodes[1]], m->route.stages[1]);
		assert_int_equal(m->route.attempt, 1);
		n++;
	}
	assert_int_equal(n, N / 3 - 1);
	assert_int_equal(r.microbatches[2].route.attempt, 0);
	routes_fini(&r);
	plan_free(p);
}

/* ---- around a cut link ---- */

/* The tasks that each node began and ended, recorded without the help of the routes. */
struct story {
	bool began[NODES][N][3], ended[NODES][N][3]; /* TASK_FORWARD, TASK_LOSS, TASK_BACKWARD */
	bool counted[NODES][N];
	int running[N]; /* for each microbatch, the position under way; -1: none */
};

static enum task_kind kind_at(const struct microbatch *m, uint32_t t)
{
	return t < m->route.n_hops    ? TASK_FORWARD
	       : t == m->route.n_hops ? TASK_LOSS
				      : TASK_BACKWARD;
}

/* Returns the chain position that the microbatch can run next: first a position that a substitute
 * owes, then the next task of its chain. */
static uint32_t next_of(const struct microbatch *m)
{
	for (uint32_t t = 0; t < m->passed; t++)
		if (routes_owes(m, t))
			return t;
	return m->passed;
}

static void step(struct routes *r, struct story *s, uint32_t id)
{
	struct microbatch *m = &r->microbatches[id];
	uint32_t t = next_of(m);
	enum task_kind kind;
	uint16_t node;

	if (m->done)
		return;
	kind = kind_at(m, t);
	node = routes_node_at(m, t);
	if (s->running[id] != (int)t) {
		s->running[id] = (int)t;
		s->began[node][id][kind] = true;
		routes_take(m, node, m->route.attempt, WORK_STARTS, kind);
		return;
	}
	s->running[id] = -1;
	if (kind != TASK_FORWARD && routes_may_count(r, node, id, (uint8_t)kind))
		routes_count(r, node, id, (uint8_t)kind);
	s->counted[node][id] = s->counted[node][id] || kind != TASK_FORWARD;
	s->ended[node][id][kind] = true;
	routes_take(m, node, m->route.attempt, WORK_ENDS, kind);
	if (routes_chain_ended(m) && next_of(m) > 2 * m->route.n_hops) {
		m->done = true;
		r->done++;
	}
}

/* Returns true if an output still has to be sent between the two nodes, because its receiver has
 * not begun the task that needs it. */
static bool has_to_pass(const struct story *s, const struct microbatch *m, uint16_t a, uint16_t b)
{
	for (uint32_t t = 0; t < 2 * m->route.n_hops; t++) {
		uint16_t from = routes_node_at(m, t), to = routes_node_at(m, t + 1);

		if (((from == a && to == b) || (from == b && to == a)) &&
		    !s->began[to][m->route.microbatch][kind_at(m, t + 1)])
			return true;
	}
	return false;
}

/* Returns true if another node of the stage has links to the neighbours of this hop, in both
 * directions. */
static bool fits(const struct cluster *c, const struct microbatch *m, uint32_t hop, uint16_t node,
		 const bool *usable)
{
	uint32_t n = m->route.n_hops;
	const uint16_t around[] = { m->route.nodes[(hop + 1) % n],
				    m->route.nodes[(hop + n - 1) % n] };

	for (int i = 0; i < 2; i++)
		if (c->delay_s[around[i] * NODES + node] < 0 ||
		    c->delay_s[node * NODES + around[i]] < 0)
			return false;
	return usable[node] && stage_of[node] == m->route.stages[hop] && routes_hop(m, node) < 0;
}

static bool can_be_helped(const struct story *s, const struct cluster *c,
			  const struct microbatch *m, uint16_t a, uint16_t b, const bool *usable)
{
	uint32_t id = m->route.microbatch;

	for (uint32_t h = 0; h < m->route.n_hops; h++) {
		uint16_t node = m->route.nodes[h];

		if ((node != a && node != b) || s->counted[node][id] ||
		    s->began[node][id][TASK_BACKWARD] || (h == 0 && s->began[node][id][TASK_LOSS]))
			continue;
		for (uint16_t i = 0; i < NODES; i++)
			if (fits(c, m, h, i, usable))
				return true;
	}
	return false;
}

static void check_move(const struct story *s, const struct cluster *c, const struct microbatch *was,
		       const struct microbatch *m, uint16_t a, uint16_t b, const bool *usable)
{
	uint32_t id = m->route.microbatch, h = m->replaced;
	uint16_t old = was->route.nodes[h];

	for (uint32_t k = 0; k < m->route.n_hops; k++)
		assert_true(k == h || m->route.nodes[k] == was->route.nodes[k]);
	assert_true(old == a || old == b);
	assert_true(fits(c, was, h, m->route.nodes[h], usable));
	assert_false(s->counted[old][id] || s->began[old][id][TASK_BACKWARD] ||
		     s->began[old][id][TASK_LOSS]);
	assert_int_equal(m->route.attempt, was->route.attempt + 1);
	assert_true(m->moved);
	if (m->route.since != was->route.since) /* the microbatch started over */
		assert_true(m->route.since == m->route.attempt && m->passed == 0);
	else
		assert_true(routes_owes(m, h));
}

/* Forgets the microbatch's events, because it starts over. Counts are kept. */
static void forget_story(struct story *s, uint32_t id)
{
	for (int node = 0; node < NODES; node++)
		for (int kind = 0; kind < 3; kind++)
			s->began[node][id][kind] = s->ended[node][id][kind] = false;
	s->running[id] = -1;
}

/* Cuts the link as the controller does. Returns true if the routes can avoid the link. */
static bool cut(struct routes *r, struct story *s, struct cluster *c, uint16_t a, uint16_t b,
		const bool *usable)
{
	struct microbatch was[N];
	uint32_t changed[N];
	bool wanted[N], possible = true;
	int n, k = 0;

	c->delay_s[a * NODES + b] = c->delay_s[b * NODES + a] = -1;
	memcpy(was, r->microbatches, sizeof(was));
	for (uint32_t i = 0; i < N; i++) {
		wanted[i] = !was[i].done && has_to_pass(s, &r->microbatches[i], a, b);
		assert_true(wanted[i] == routes_need(&r->microbatches[i], a, b));
		possible = possible &&
			   (!wanted[i] || can_be_helped(s, c, &r->microbatches[i], a, b, usable));
	}
	n = routes_around(r, a, b, usable, stage_of, c, changed);
	assert_int_equal(n == -ENOENT, !possible);
	if (n < 0)
		assert_memory_equal(was, r->microbatches, sizeof(was));
	for (uint32_t i = 0; n >= 0 && i < N; i++) {
		struct microbatch *m = &r->microbatches[i];

		assert_false(routes_need(m, a, b));
		if (!wanted[i])
			continue;
		assert_true(k < n && changed[k++] == i);
		check_move(s, c, &was[i], m, a, b, usable);
		if (m->route.since == m->route.attempt)
			forget_story(s, i);
		if (s->running[i] >= 0 && routes_node_at(&was[i], (uint32_t)s->running[i]) !=
						  routes_node_at(m, (uint32_t)s->running[i]))
			s->running[i] = -1; /* the work that this node has begun is useless */
		for (int kind = 0; kind < 3; kind++)
			s->began[m->route.nodes[m->replaced]][i][kind] =
				s->ended[m->route.nodes[m->replaced]][i][kind] = false;
	}
	return n >= 0;
}

TEST(any_links_may_be_cut)
{
	uint32_t cuts = 0, none = 0;

	for (uint64_t seed = 0; seed < 400; seed++) {
		struct cluster *c = make_cluster();
		struct story *s = calloc(1, sizeof(*s));
		struct error err = { "" };
		bool all[NODES];
		struct routes r;
		struct plan *p;
		struct rng rng;

		rng_init(&rng, seed + 77);
		setup(&r, &p, seed);
		memset(all, true, sizeof(all));
		for (int i = 0; i < N; i++)
			s->running[i] = -1;
		while (r.done < N) {
			uint16_t a = (uint16_t)rng_below(&rng, NODES),
				 b = (uint16_t)rng_below(&rng, NODES);

			step(&r, s, rng_below(&rng, N));
			if (rng_below(&rng, 40) != 0 || stage_of[a] == stage_of[b] ||
			    c->delay_s[a * NODES + b] < 0)
				continue;
			cuts++;
			if (cut(&r, s, c, a, b, all))
				continue;
			none++;
			/* the link is restored */
			c->delay_s[a * NODES + b] = c->delay_s[b * NODES + a] = 0.1;
		}
		if (routes_audit(&r, stage_of, &err) != 0)
			fail_msg("seed %u: %s", (unsigned)seed, err.text);
		routes_fini(&r);
		plan_free(p);
		cluster_free(c);
		free(s);
	}
	/* Both outcomes must have occurred often enough to be tested */
	assert_true(cuts > 1000 && none > 10 && none < cuts / 2);
}
