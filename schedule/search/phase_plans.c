/* Allocations for the phases of a skip schedule.
 *
 * Phases that skip equally many stages in the same share of the microbatches (a ratio) share their
 * plans. The pool has, for each ratio, a
 * plan with the cluster's own sizes of stages, and one with the best sizes that a sweep finds. Then
 * each allocation of the pool is planned for every other ratio. Without moves, the run takes the
 * one allocation of the cluster's sizes whose total is least. With moves, a dynamic program over
 * the phases chooses an allocation for each of them.
 *
 * The batch stays constant, so the number of data nodes divides it. Every stage keeps a node,
 * because AdamW steps in every iteration, visited or not, and the weights must be somewhere. A move
 * delays the run only if its transfer takes longer than the phase before: transfers do not slow
 * microbatches down in the model of execution. */
#include "schedule/search/phase_plans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "schedule/search/search.h"

#define SWEEP_PART 10 /* a search of the sweep gets this part of the budget */

/* Sizes of stages, and a node's stage */
struct allocation {
	struct cluster *cluster; /* owned: each node is pinned to its stage; without one: -1 */
	bool has_own_sizes;      /* the sizes are not those of the cluster */
	struct plan *plans[SKIP_SCHEDULE_MOST]; /* (ratios) owned; NULL: no plan */
};

struct phase_plans_owner {
	const struct cluster *c;
	const struct phase_plans_request *q;
	int n_ratios;
	/* (n_ratios) stages that a microbatch skips, and percent of the microbatches that do */
	uint32_t skips[SKIP_SCHEDULE_MOST], shares[SKIP_SCHEDULE_MOST];
	int n_phases;                       /* phases that the run reaches */
	int ratio_of[SKIP_SCHEDULE_MOST];   /* (n_phases) */
	int n_allocations;
	struct allocation allocations[2 * SKIP_SCHEDULE_MOST];
};

static uint64_t length_of(const struct phase_plans_owner *o, int phase)
{
	const struct skip_schedule *s = o->q->schedule;
	uint64_t end = phase + 1 < o->n_phases ? s->phases[phase + 1].from : o->q->iterations + 1;

	return end - s->phases[phase].from;
}

static double seconds_of(const struct plan *p)
{
	return p ? p->predicted.iteration_s + plan_visible_sync_s(p) : INFINITY;
}

static void find_ratios(struct phase_plans_owner *o)
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

/* Plans a ratio on a cluster. part: the divisor of the budget. */
static int plan_ratio(const struct phase_plans_owner *o, const struct cluster *c, int ratio,
		      bool free_assignment, int part, struct plan **out, struct error *err)
{
	struct plan_request q = o->q->search;

	q.path_length = c->n_stages - (int)o->skips[ratio];
	q.skip_share = (int)o->shares[ratio];
	q.free_assignment = free_assignment;
	q.budget_s /= part;
	q.evaluations = q.evaluations > 0 ? (q.evaluations + part - 1) / part : 0;
	return plan_search(c, &q, out, err);
}

/* Adds the allocation of a plan to the pool, unless the pool has it. *plan is moved there. */
static void add_allocation(struct phase_plans_owner *o, const struct cluster *c, int ratio,
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
		if (!a->cluster)
			alloc_failed((size_t)c->n_nodes, sizeof(double));
		a->has_own_sizes = has_own_sizes;
		for (int v = 0; v < c->n_nodes; v++)
			a->cluster->nodes[v].stage = stage_of[v];
	}
	if (seconds_of(plan) < seconds_of(a->plans[ratio])) {
		plan_free(a->plans[ratio]);
		a->plans[ratio] = plan;
	} else {
		plan_free(plan);
	}
	free(stage_of);
}

/* Returns the stages that a microbatch skips on average. */
static double mean_skip(const struct phase_plans_owner *o, int ratio)
{
	return o->skips[ratio] * (o->shares[ratio] > 0 ? o->shares[ratio] / 100.0 : 1);
}

/* Deals `places` to the stages: `data` to stage 0, and the others one by one to the stage with the
 * most visits for each of its nodes. A stage that may be skipped counts as visited by at least
 * `least` of the microbatches. Returns false if a stage would have none. */
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

/* Returns a copy of the cluster with these sizes of stages, and with the same batch. Nodes keep
 * their stages as far as these have room. */
static struct cluster *resize(const struct cluster *c, const int *sizes)
{
	struct cluster *to = cluster_copy(c);
	int room[CLUSTER_MOST_STAGES], next = 0;

	if (!to)
		alloc_failed((size_t)c->n_nodes, sizeof(double));
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
	struct cluster *best; /* owned; NULL: no sizes have a plan */
	double best_s;
};

static int try_sizes(struct phase_plans_owner *o, struct sweep *w, const int *sizes)
{
	struct cluster *c = resize(o->c, sizes);
	struct plan *plan = NULL;
	int rc = plan_ratio(o, c, w->ratio, true, SWEEP_PART, &plan, NULL);

	if (rc == 0 && seconds_of(plan) < w->best_s) {
		w->best_s = seconds_of(plan);
		cluster_free(w->best);
		w->best = c;
		c = NULL;
	}
	cluster_free(c);
	plan_free(plan);
	return rc < 0 ? rc : 0;
}

/* Tries numbers of data nodes that divide the batch. For each, the other sizes lie between sizes
 * that follow the visits and equal ones. */
static int sweep_sizes(struct phase_plans_owner *o, struct sweep *w)
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

/* Adds the allocations that suit a ratio. */
static int add_ratio(struct phase_plans_owner *o, int ratio, struct error *err)
{
	struct sweep w = { .ratio = ratio, .best_s = INFINITY };
	struct plan *plan = NULL;
	int rc = plan_ratio(o, o->c, ratio, o->q->search.free_assignment, 1, &plan, err);

	if (rc != 0)
		return rc;
	add_allocation(o, o->c, ratio, plan, false);
	rc = sweep_sizes(o, &w);
	if (rc != 0)
		error_set(err, rc, "the search for sizes of stages was ended");
	if (rc == 0 && w.best && plan_ratio(o, w.best, ratio, true, 1, &plan, NULL) == 0)
		add_allocation(o, w.best, ratio, plan, true);
	cluster_free(w.best);
	return rc;
}

/* Plans every allocation for the ratios that it was not made for. */
static int fill_pool(struct phase_plans_owner *o)
{
	for (int i = 0; i < o->n_allocations; i++) {
		struct allocation *a = &o->allocations[i];

		for (int r = 0; r < o->n_ratios; r++) {
			int rc = 0;

			if (!a->plans[r])
				rc = plan_ratio(o, a->cluster, r, false, 1, &a->plans[r], NULL);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* Returns the seconds in which a node fetches a stage's weights and moments from the nearest node
 * that has the stage. An unknown time counts as 0. INFINITY: no such node has a link. */
static double fetch_s(const struct phase_plans_owner *o, const struct cluster *was, int stage,
		      int node)
{
	double best = INFINITY;

	for (int v = 0; v < was->n_nodes; v++) {
		size_t at = (size_t)v * (size_t)was->n_nodes + (size_t)node;
		double sum_s = was->sync_pair_s ? was->sync_pair_s[at] : 0;

		if (v != node && was->nodes[v].stage == stage && was->delay_s[at] >= 0)
			best = fmin(best, fmax(sum_s, 0) * o->q->state_ratio);
	}
	return best;
}

/* Returns true if some microbatch of a phase visits a stage that may be skipped. */
static bool visits_more(const struct phase_plans_owner *o, int phase)
{
	int ratio = o->ratio_of[phase];

	return o->shares[ratio] > 0 || (int)o->skips[ratio] < cluster_most_skipped(o->c);
}

/* The stages that have been trained before a phase begins */
static stage_set trained_before(const struct phase_plans_owner *o, int phase)
{
	stage_set all = o->c->n_stages < 64 ? ((stage_set)1 << o->c->n_stages) - 1 : ~(stage_set)0;

	for (int k = 0; k < phase; k++)
		if (visits_more(o, k))
			return all;
	return phase > 0 ? o->c->always : 0;
}

/* Fills in the moves of a phase and what they take, from the allocation of the phase before. */
static void count_moves(const struct phase_plans_owner *o, int phase, const struct allocation *was,
			const struct allocation *is, struct phase_plan *out)
{
	stage_set trained = trained_before(o, phase);
	bool stacks = o->q->stack && trained == o->c->always && visits_more(o, phase);

	out->moves = 0;
	out->fetch_s = 0;
	for (int v = 0; phase > 0 && v < o->c->n_nodes; v++) {
		int from = was->cluster->nodes[v].stage, to = is->cluster->nodes[v].stage;

		out->moves += to != from;
		if (stacks && to >= 0)
			to = stage_set_nearest(trained, to);
		if (to != from && stage_set_has(trained, to))
			out->fetch_s = fmax(out->fetch_s, fetch_s(o, was->cluster, to, v));
	}
	out->delay_s = phase == 0 ? 0
				  : fmax(0, out->fetch_s - (double)length_of(o, phase - 1) *
						    seconds_of(was->plans[o->ratio_of[phase - 1]]));
}

/* Fills in a phase, and returns its seconds with the delay before it. was: the allocation of the
 * phase before; NULL: the first phase. */
static double fill_phase(const struct phase_plans_owner *o, int phase, const struct allocation *was,
			 const struct allocation *is, struct phase_plan *out)
{
	const struct plan *plan = is->plans[o->ratio_of[phase]];

	*out = (struct phase_plan){
		.from = o->q->schedule->phases[phase].from,
		.iterations = length_of(o, phase),
		.skip = o->skips[o->ratio_of[phase]],
		.share = o->shares[o->ratio_of[phase]],
		.microbatches_per_data_node = is->cluster->microbatches_per_data_node,
		.plan = plan,
		.seconds = seconds_of(plan),
	};
	if (!plan || (was && !was->plans[o->ratio_of[phase - 1]]))
		return INFINITY;
	count_moves(o, phase, was, is, out);
	return (double)out->iterations * out->seconds + out->delay_s;
}

/* Chooses one allocation of the cluster's sizes for all phases. */
static void choose_one(const struct phase_plans_owner *o, struct phase_plan_list *out)
{
	out->total_s = INFINITY;
	for (int i = 0; i < o->n_allocations; i++) {
		const struct allocation *a = &o->allocations[i];
		struct phase_plan_list l = { .n = o->n_phases };

		for (int k = 0; k < l.n && !a->has_own_sizes; k++)
			l.total_s += fill_phase(o, k, k > 0 ? a : NULL, a, &l.phases[k]);
		if (!a->has_own_sizes && l.total_s < out->total_s)
			*out = l;
	}
}

/* Chooses an allocation for each phase. least[k][i]: the seconds of phases 0 to k if phase k has
 * allocation i; before[k][i]: the allocation of phase k - 1 then. */
static void choose_each(const struct phase_plans_owner *o, struct phase_plan_list *out)
{
	double least[SKIP_SCHEDULE_MOST][2 * SKIP_SCHEDULE_MOST] = { { 0 } };
	int before[SKIP_SCHEDULE_MOST][2 * SKIP_SCHEDULE_MOST] = { { 0 } }, at = 0;
	const struct allocation *all = o->allocations;
	struct phase_plan tried;

	*out = (struct phase_plan_list){ .n = o->n_phases };
	for (int i = 0; i < o->n_allocations; i++)
		least[0][i] = fill_phase(o, 0, NULL, &all[i], &tried);
	for (int k = 1; k < o->n_phases; k++) {
		for (int i = 0; i < o->n_allocations; i++) {
			least[k][i] = INFINITY;
			for (int j = 0; j < o->n_allocations; j++) {
				double s = least[k - 1][j] +
					   fill_phase(o, k, &all[j], &all[i], &tried);

				if (s < least[k][i]) {
					least[k][i] = s;
					before[k][i] = j;
				}
			}
		}
	}
	for (int i = 1; i < o->n_allocations; i++)
		at = least[out->n - 1][i] < least[out->n - 1][at] ? i : at;
	out->total_s = least[out->n - 1][at];
	for (int k = out->n - 1; k >= 0; k--) {
		int was = before[k][at];

		fill_phase(o, k, k > 0 ? &all[was] : NULL, &all[at], &out->phases[k]);
		at = was;
	}
}

static int choose(struct phase_plans_owner *o, struct phase_plans *out, struct error *err)
{
	int rc;

	for (int r = 0; r < o->n_ratios; r++) {
		rc = add_ratio(o, r, err);
		if (rc != 0)
			return error_prefix(err, rc, "skipping %u of %d stages", o->skips[r],
					    o->c->n_stages);
	}
	rc = fill_pool(o);
	if (rc != 0)
		return error_set(err, rc, "the search for plans of all phases was ended");
	choose_one(o, &out->without_moves);
	choose_each(o, &out->with_moves);
	if (isinf(out->without_moves.total_s))
		return error_set(err, PLAN_NOT_FOUND, "no allocation has a plan for all phases");
	return 0;
}

int phase_plans_choose(const struct cluster *c, const struct phase_plans_request *q,
		       struct phase_plans *out, struct error *err)
{
	struct phase_plans p = { .owner = alloc_new(sizeof(*p.owner)) };
	int rc;

	*p.owner = (struct phase_plans_owner){ .c = c, .q = q };
	find_ratios(p.owner);
	rc = choose(p.owner, &p, err);
	if (rc == 0)
		*out = p;
	else
		phase_plans_fini(&p);
	return rc;
}

void phase_plans_fini(struct phase_plans *p)
{
	struct phase_plans_owner *o = p->owner;

	for (int i = 0; i < o->n_allocations; i++) {
		cluster_free(o->allocations[i].cluster);
		for (int r = 0; r < o->n_ratios; r++)
			plan_free(o->allocations[i].plans[r]);
	}
	free(o);
	*p = (struct phase_plans){ 0 };
}
