/* Makes the pool of allocations. Each phase of a run gets an allocation from the pool.
 *
 * Phases with the same ratio of skipped stages share their plans. For each ratio the pool has a
 * plan with the stage sizes of the cluster, and one with the best stage sizes that a sweep finds.
 * For two successive ratios the pool has allocations that differ little, so that few nodes move.
 * Each allocation is planned for every ratio.
 *
 * The batch stays constant, so it must be a multiple of the number of data nodes. Every stage has
 * a node, even a stage that no microbatch visits, because its weights must be kept and stepped by
 * AdamW in every iteration. */
#include "schedule/search/allocation_pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "schedule/search/search.h"

#define SWEEP_PART 10 /* each search of the sweep gets the request's budget divided by this */

static void find_ratios(struct allocation_pool *o)
{
	const struct skip_schedule *s = o->q->schedule;

	for (uint32_t k = 0; k < s->n && s->phases[k].from <= o->q->iterations; k++) {
		int r = 0;

		while (r < o->n_ratios &&
		       (o->skips[r] != s->phases[k].skip || o->shares[r] != s->phases[k].share))
			r++;
		o->n_ratios = r == o->n_ratios ? r + 1 : o->n_ratios;
		o->skips[r] = s->phases[k].skip;
		o->shares[r] = s->phases[k].share;
		o->ratio_of[o->n_phases++] = r;
	}
}

/* Returns the request for a plan with this ratio of skipped stages. */
static struct plan_request request_of(const struct allocation_pool *o, int ratio,
				      bool free_assignment)
{
	struct plan_request q = o->q->search;

	q.path_length = o->c->n_stages - (int)o->skips[ratio];
	q.skip_share = (int)o->shares[ratio];
	q.free_assignment = free_assignment;
	return q;
}

/* Adds the allocation of a plan to the pool, unless the pool has it. *plan is moved to the pool. */
static void add_allocation(struct allocation_pool *o, const struct cluster *c, int ratio,
			   struct plan *plan, bool has_own_sizes)
{
	struct allocation *a = &o->allocations[o->n_allocations];
	int *stage_of = alloc_array((size_t)c->n_nodes, sizeof(*stage_of));
	bool same = false;

	plan_stages(plan, c->n_nodes, stage_of);
	for (int i = 0; i < o->n_allocations && !same; i++) {
		a = &o->allocations[i];
		same = true;
		for (int v = 0; v < c->n_nodes; v++)
			same = same && a->cluster->nodes[v].stage == stage_of[v];
	}
	if (!same) {
		a = &o->allocations[o->n_allocations++];
		a->cluster = cluster_copy(c);
		a->has_own_sizes = has_own_sizes;
		for (int v = 0; v < c->n_nodes; v++)
			a->cluster->nodes[v].stage = stage_of[v];
	}
	if (allocation_seconds(plan) < allocation_seconds(a->plans[ratio])) {
		plan_free(a->plans[ratio]);
		a->plans[ratio] = plan;
	} else {
		plan_free(plan);
	}
	free(stage_of);
}

/* Returns the number of stages that a microbatch skips on average. */
static double mean_skip(const struct allocation_pool *o, int ratio)
{
	return o->skips[ratio] * (o->shares[ratio] > 0 ? o->shares[ratio] / 100.0 : 1);
}

/* Chooses the sizes of the stages for `places` nodes. Stage 0 gets `data` nodes, and each other
 * stage gets one. Each further node goes to the stage with the most visits per node. least:
 * smallest share of the microbatches that is assumed to visit a stage that may be skipped. Returns
 * false if there are too few nodes. */
static bool deal_places(const struct cluster *c, double skip, int places, int data, double least,
			int *sizes)
{
	int most = cluster_most_skipped(c);
	double visits = most > 0 ? fmax(least, 1 - skip / most) : 1;

	for (int s = 0; s < c->n_stages; s++)
		sizes[s] = s == 0 ? data : 1;
	places -= data + c->n_stages - 1;
	for (int i = 0; i < places; i++) {
		int best = 1;
		double load = -1;

		for (int s = 1; s < c->n_stages; s++) {
			double l = (stage_set_has(c->always, s) ? 1 : visits) / sizes[s];

			if (l > load) {
				load = l;
				best = s;
			}
		}
		sizes[best]++;
	}
	return places >= 0 && c->n_stages > 1;
}

/* Returns a copy of the cluster with these stage sizes and the same batch. Nodes keep their stages
 * as far as there is room; the other nodes go to stages with room. */
static struct cluster *resize(const struct cluster *c, const int *sizes)
{
	struct cluster *to = cluster_copy(c);
	int room[CLUSTER_MOST_STAGES], next = 0;

	to->microbatches_per_data_node = c->microbatches_per_data_node * c->stages[0] / sizes[0];
	memcpy(to->stages, sizes, (size_t)c->n_stages * sizeof(*sizes));
	memcpy(room, sizes, (size_t)c->n_stages * sizeof(*sizes));
	for (int v = 0; v < c->n_nodes; v++) {
		int s = c->nodes[v].stage;

		if (s >= 0 && room[s] > 0)
			room[s]--;
		else if (s >= 0)
			to->nodes[v].stage = -1;
	}
	for (int v = 0; v < c->n_nodes; v++) {
		if (c->nodes[v].stage < 0 || to->nodes[v].stage >= 0)
			continue;
		while (room[next] == 0)
			next++;
		room[next]--;
		to->nodes[v].stage = next;
	}
	return to;
}

struct sweep {
	int ratio;
	/* The cluster with the best sizes, owned; NULL: no sizes have a plan */
	struct cluster *best;
	double best_s;
};

static int try_sizes(struct allocation_pool *o, struct sweep *w, const int *sizes)
{
	struct cluster *c = resize(o->c, sizes);
	struct plan_request q = request_of(o, w->ratio, true);
	struct plan *plan = NULL;
	int rc;

	q.budget_s /= SWEEP_PART;
	q.evaluations = q.evaluations > 0 ? q.evaluations / SWEEP_PART + 1 : 0;
	rc = plan_search(c, &q, &plan, NULL);
	if (rc == 0 && allocation_seconds(plan) < w->best_s) {
		w->best_s = allocation_seconds(plan);
		cluster_free(w->best);
		w->best = c;
		c = NULL;
	}
	cluster_free(c);
	plan_free(plan);
	return rc < 0 ? rc : 0;
}

/* Tries stage sizes, and keeps the best in w. Tries each number of data nodes that divides the
 * batch. For each, the other stages have sizes in proportion to their visits (least = 0), equal
 * sizes (least = 1), or sizes between these two. */
static int sweep_sizes(struct allocation_pool *o, struct sweep *w)
{
	static const double least[] = { 0, 0.25, 0.5, 1 };
	const struct cluster *c = o->c;
	int batch = c->microbatches_per_data_node * c->stages[0], places = 0, rc = 0;

	for (int s = 0; s < c->n_stages; s++)
		places += c->stages[s];
	for (int data = (c->stages[0] + 1) / 2; data <= places && rc == 0; data++) {
		int sizes[CLUSTER_MOST_STAGES], last[CLUSTER_MOST_STAGES] = { 0 };

		for (size_t i = 0; i < sizeof(least) / sizeof(least[0]) && rc == 0; i++) {
			if (batch % data != 0 ||
			    !deal_places(c, mean_skip(o, w->ratio), places, data, least[i],
					 sizes) ||
			    memcmp(sizes, last, (size_t)c->n_stages * sizeof(*sizes)) == 0)
				continue;
			memcpy(last, sizes, sizeof(last));
			rc = try_sizes(o, w, sizes);
		}
	}
	return rc;
}

/* Adds two allocations for a ratio: the best one with the cluster's stage sizes, and the best one
 * with the stage sizes that the sweep finds. */
static int add_ratio(struct allocation_pool *o, int ratio, struct error *err)
{
	struct sweep w = { .ratio = ratio, .best_s = INFINITY };
	struct plan_request q = request_of(o, ratio, o->q->search.free_assignment);
	struct plan *plan = NULL;
	int rc = plan_search(o->c, &q, &plan, err);

	if (rc != 0)
		return rc;
	add_allocation(o, o->c, ratio, plan, false);
	rc = sweep_sizes(o, &w);
	if (rc != 0)
		error_set(err, rc, "the search for sizes of stages was ended");
	q = request_of(o, ratio, true);
	if (rc == 0 && w.best && plan_search(w.best, &q, &plan, NULL) == 0)
		add_allocation(o, w.best, ratio, plan, true);
	cluster_free(w.best);
	return rc;
}

/* Returns the seconds in which a node exchanges gradients with all other nodes of its stage. */
static double apart_s(const struct cluster *c, int node)
{
	double sum = 0;

	for (int v = 0; c->sync_pair_s && v < c->n_nodes; v++)
		if (v != node && c->nodes[v].stage == c->nodes[node].stage)
			sum += fmax(0, c->sync_pair_s[(size_t)v * (size_t)c->n_nodes +
						      (size_t)node]);
	return sum;
}

/* Pins nodes of `to` to their stages in `from`: in each stage at most `most` nodes, and not more
 * than the stage has room for. Nodes with the quickest sums (apart_s) come first. The other nodes
 * have no pin. */
static void pin_stayers(struct cluster *to, const struct cluster *from, int most)
{
	for (int v = 0; v < to->n_nodes; v++)
		to->nodes[v].stage = -1;
	for (int s = 0; s < to->n_stages; s++) {
		for (int k = 0; k < most && k < to->stages[s]; k++) {
			int best = -1;

			for (int v = 0; v < to->n_nodes; v++)
				if (from->nodes[v].stage == s && to->nodes[v].stage < 0 &&
				    (best < 0 || apart_s(from, v) < apart_s(from, best)))
					best = v;
			if (best >= 0)
				to->nodes[best].stage = s;
		}
	}
}

/* Adds two allocations for a ratio. Both keep nodes in the stages that they have in the best
 * allocation for the ratio `other`, so that few nodes move between the two ratios. The first keeps
 * one node of each stage, the second as many as possible. */
static void add_near(struct allocation_pool *o, int ratio, int other)
{
	static const int most[] = { 1, CLUSTER_MOST_NODES };
	const struct allocation *is = &o->allocations[o->best[ratio]];
	struct plan_request q = request_of(o, ratio, false);

	for (int i = 0; i < 2; i++) {
		struct cluster *c = cluster_copy(is->cluster);
		struct plan *plan = NULL;

		pin_stayers(c, o->allocations[o->best[other]].cluster, most[i]);
		if (plan_search(c, &q, &plan, NULL) == 0)
			add_allocation(o, c, ratio, plan, is->has_own_sizes);
		cluster_free(c);
	}
}

/* Adds allocations that differ little, for each pair of successive phases with different
 * ratios. */
static void add_neighbours(struct allocation_pool *o)
{
	bool done[SKIP_SCHEDULE_MOST][SKIP_SCHEDULE_MOST] = { { false } };

	for (int r = 0; r < o->n_ratios; r++)
		for (int i = 1; i < o->n_allocations; i++)
			if (allocation_seconds(o->allocations[i].plans[r]) <
			    allocation_seconds(o->allocations[o->best[r]].plans[r]))
				o->best[r] = i;
	for (int k = 1; k < o->n_phases; k++) {
		int a = o->ratio_of[k - 1], b = o->ratio_of[k];

		if (a == b || done[a][b])
			continue;
		done[a][b] = done[b][a] = true;
		add_near(o, a, b);
		add_near(o, b, a);
	}
}

/* Plans every allocation for the ratios that it was not made for. */
static int plan_others(struct allocation_pool *o)
{
	for (int i = 0; i < o->n_allocations; i++) {
		struct allocation *a = &o->allocations[i];

		for (int r = 0; r < o->n_ratios; r++) {
			struct plan_request q = request_of(o, r, false);
			int rc = a->plans[r] ? 0
					     : plan_search(a->cluster, &q, &a->plans[r], NULL);

			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

static int fill(struct allocation_pool *o, struct error *err)
{
	int rc;

	for (int r = 0; r < o->n_ratios; r++) {
		rc = add_ratio(o, r, err);
		if (rc != 0)
			return error_prefix(err, rc, "skipping %u of %d stages", o->skips[r],
					    o->c->n_stages);
	}
	add_neighbours(o);
	rc = plan_others(o);
	return rc == 0 ? 0 : error_set(err, rc, "the search for plans of all phases was ended");
}

int allocation_pool_new(const struct cluster *c, const struct phase_plans_request *q,
			struct allocation_pool **out, struct error *err)
{
	struct allocation_pool *o = alloc_new(sizeof(*o));
	int rc;

	o->c = c;
	o->q = q;
	find_ratios(o);
	rc = fill(o, err);
	if (rc == 0)
		*out = o;
	else
		allocation_pool_free(o);
	return rc;
}

void allocation_pool_free(struct allocation_pool *o)
{
	for (int i = 0; o && i < o->n_allocations; i++) {
		cluster_free(o->allocations[i].cluster);
		for (int r = 0; r < o->n_ratios; r++)
			plan_free(o->allocations[i].plans[r]);
	}
	free(o);
}
