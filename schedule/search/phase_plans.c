/* Chooses allocations for the phases of a run.
 *
 * Without moves, the run uses one allocation: of the allocations with the cluster's stage sizes,
 * the one with the least total time. With moves, a dynamic program over the phases chooses an
 * allocation for each of them.
 *
 * A move delays the run only if its transfer takes longer than the previous phase, because in the
 * execution model transfers do not slow microbatches down. */
#include "schedule/search/phase_plans.h"

#include <math.h>
#include <stdlib.h>

#include "schedule/search/allocation_pool.h"

static uint64_t length_of(const struct allocation_pool *o, int phase)
{
	const struct skip_schedule *s = o->q->schedule;
	uint64_t end = phase + 1 < o->n_phases ? s->phases[phase + 1].from : o->q->iterations + 1;

	return end - s->phases[phase].from;
}

/* Returns the seconds in which a node fetches a stage's weights and moments from the nearest node
 * that has the stage. An unknown time counts as 0. INFINITY: no such node has a link. */
static double fetch_s(const struct allocation_pool *o, const struct cluster *was, int stage,
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

/* Returns true if any microbatch in the phase visits a stage that may be skipped. */
static bool visits_more(const struct allocation_pool *o, int phase)
{
	int ratio = o->ratio_of[phase];

	return o->shares[ratio] > 0 || (int)o->skips[ratio] < cluster_most_skipped(o->c);
}

/* Returns the stages that have been trained before the phase begins */
static stage_set trained_before(const struct allocation_pool *o, int phase)
{
	stage_set all = o->c->n_stages < 64 ? ((stage_set)1 << o->c->n_stages) - 1 : ~(stage_set)0;

	for (int k = 0; k < phase; k++)
		if (visits_more(o, k))
			return all;
	return phase > 0 ? o->c->always : 0;
}

/* Returns true if every trained stage keeps one of its nodes. If not, the nodes of some stage
 * would all be fetching its weights while nodes move, and no node would have these weights. */
static bool stages_stay(const struct allocation_pool *o, stage_set trained,
			const struct allocation *was, const struct allocation *is)
{
	stage_set kept = 0;

	for (int v = 0; v < o->c->n_nodes; v++) {
		int stage = is->cluster->nodes[v].stage;

		if (stage >= 0 && was->cluster->nodes[v].stage == stage)
			kept |= (stage_set)1 << stage;
	}
	return (trained & ~kept) == 0;
}

/* Counts the nodes that change their stage before the phase. The phase must not be the first.
 * Computes the longest fetch of weights for these moves; INFINITY: a move is impossible. */
static void count_moves(const struct allocation_pool *o, int phase, const struct allocation *was,
			const struct allocation *is, struct phase_plan *out)
{
	stage_set trained = trained_before(o, phase);
	double before_s = allocation_seconds(was->plans[o->ratio_of[phase - 1]]);
	bool stacks = o->q->stack && trained == o->c->always && visits_more(o, phase);

	for (int v = 0; v < o->c->n_nodes; v++) {
		int from = was->cluster->nodes[v].stage, to = is->cluster->nodes[v].stage;

		out->moves += to != from;
		if (stacks && to >= 0)
			to = stage_set_source(trained, to);
		if (to != from && stage_set_has(trained, to))
			out->fetch_s = fmax(out->fetch_s, fetch_s(o, was->cluster, to, v));
	}
	if (!stages_stay(o, trained, was, is))
		out->fetch_s = INFINITY;
	out->delay_s = fmax(0, out->fetch_s - (double)length_of(o, phase - 1) * before_s);
}

/* Fills in a phase, and returns its seconds including the delay before it. was: the allocation of
 * the previous phase; NULL: this is the first phase. */
static double fill_phase(const struct allocation_pool *o, int phase, const struct allocation *was,
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
		.seconds = allocation_seconds(plan),
	};
	if (!plan || (was && !was->plans[o->ratio_of[phase - 1]]))
		return INFINITY;
	if (was)
		count_moves(o, phase, was, is, out);
	return (double)out->iterations * out->seconds + out->delay_s;
}

/* Chooses one allocation with the cluster's stage sizes for all phases. */
static void choose_one(const struct allocation_pool *o, struct phase_plan_list *out)
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

/* Chooses an allocation for each phase. least[k][i]: the least seconds of phases 0 to k if phase k
 * has allocation i. before[k][i]: the allocation that phase k - 1 has in that case. */
static void choose_each(const struct allocation_pool *o, struct phase_plan_list *out)
{
	double least[SKIP_SCHEDULE_MOST][MOST_ALLOCATIONS] = { { 0 } };
	int before[SKIP_SCHEDULE_MOST][MOST_ALLOCATIONS] = { { 0 } }, at = 0;
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
int phase_plans_choose(const struct cluster *c, const struct phase_plans_request *q,
		       struct phase_plans *out, struct error *err)
{
	struct phase_plans p;
	int rc = allocation_pool_new(c, q, &p.pool, err);

	if (rc != 0)
		return rc;
	choose_one(p.pool, &p.without_moves);
	choose_each(p.pool, &p.with_moves);
	if (isinf(p.without_moves.total_s)) {
		phase_plans_fini(&p);
		return error_set(err, PLAN_NOT_FOUND, "no allocation has a plan for all phases");
	}
	*out = p;
	return 0;
}

void phase_plans_fini(struct phase_plans *p)
{
	allocation_pool_free(p->pool);
	*p = (struct phase_plans){ 0 };
}
