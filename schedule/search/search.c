/* The steps of a search.
 *
 * plan_search makes the problem. first_solution finds any legal paths, repaired or fresh.
 * improve_first finds a better start in large clusters. anneal_and_finish then anneals, as long
 * as the limits allow: first several starts in turn, then one chain, then all chains. Meanwhile
 * the lower bound grows, and the search ends when the plan's time meets it. strategy.h decides
 * everything that depends on the cluster's size. The published methods use the same first and
 * last steps (search_baseline). */
#include "schedule/search/search.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schedule/published/allocate.h"
#include "schedule/improve/anneal.h"
#include "schedule/bound/bound.h"
#include "schedule/search/parallel_anneal.h"
#include "schedule/published/conflict_search.h"
#include "schedule/start/construct.h"
#include "schedule/improve/fast_simulate.h"
#include "schedule/start/feasible.h"
#include "schedule/start/place.h"
#include "schedule/problem/problem.h"
#include "schedule/problem/progress.h"
#include "schedule/search/multi_start.h"
#include "schedule/search/spread.h"
#include "schedule/published/straight.h"

#define CONSTRUCT_ATTEMPTS 40
#define DEALS 20 /* number of assignments that are tried */

/* Builds paths with the greedy construction. If this fails because links are missing, a complete
 * search finds legal paths or proves that there are none. */
static int build_paths(struct solution *s, const struct problem *p, bool repair, struct error *err)
{
	struct rng rng;
	int rc = PLAN_INFEASIBLE;

	rng_init_stream(&rng, p->q->seed, 0);
	for (int attempt = 0; attempt < 2 && rc == PLAN_INFEASIBLE; attempt++)
		rc = construct_paths(s, p, attempt, repair, &rng, err);
	if (rc == PLAN_INFEASIBLE)
		rc = feasible_paths(s, p, err);
	for (int attempt = 2; attempt < CONSTRUCT_ATTEMPTS && rc == PLAN_NOT_FOUND; attempt++) {
		if (construct_paths(s, p, attempt, false, &rng, NULL) == 0)
			rc = 0;
	}
	return rc;
}

/* Returns the iteration time of a solution. INFINITY: the solution comes to a standstill, which is
 * possible only with exchanged stages. */
static double time_solution(const struct problem *p, const struct solution *s)
{
	struct fast_simulate e;
	double seconds;

	fast_simulate_init(&e, p);
	fast_simulate_set_paths(&e, s);
	seconds = fast_simulate_run(&e, INFINITY) ? e.makespan_s : INFINITY;
	fast_simulate_fini(&e);
	return seconds;
}

static int report_standstill(struct error *err)
{
	return error_set(err, PLAN_NOT_FOUND, "the paths found come to a standstill");
}

/* Builds paths in two ways: by repairing the start plan (q->from), and from nothing. Keeps the
 * better paths. */
static int repair_plan(struct solution *s, const struct problem *p, struct error *err)
{
	struct solution kept;
	double kept_s = INFINITY, fresh_s = INFINITY;
	int rc = 0;

	solution_init(&kept, p);
	solution_copy(&kept, s, p);
	if (build_paths(&kept, p, true, err) == 0)
		kept_s = time_solution(p, &kept);
	if (isinf(kept_s) || problem_is(p, REGIME_FRESH_TOO)) {
		rc = build_paths(s, p, false, err);
		if (rc == 0)
			fresh_s = time_solution(p, s);
	}
	if (kept_s < INFINITY && kept_s <= fresh_s) {
		solution_copy(s, &kept, p);
		rc = 0;
	}
	solution_fini(&kept);
	return rc;
}

/* Distributes the movable nodes over the stages at random. */
static void deal_again(struct solution *s, const struct problem *p, struct rng *rng)
{
	for (int i = p->n_nodes - 1; i > 0; i--) {
		int j = (int)rng_below(rng, (uint32_t)i + 1), was = s->stage_of[i];

		while (j >= 0 && !p->movable[j])
			j--;
		if (!p->movable[i] || j < 0)
			continue;
		s->stage_of[i] = s->stage_of[j];
		s->stage_of[j] = was;
	}
	solution_index(s, p);
}

/* Error code: the search found no placement within the limit of the sums. It differs from
 * PLAN_NOT_FOUND because another path length would not help. */
#define OVER_LIMIT (PLAN_NOT_FOUND + 1)

static int keep_limit(struct solution *s, const struct problem *p, struct error *err)
{
	double sync_s;

	if (isinf(p->sync_limit_s))
		return 0;
	place_within(s, p, p->sync_limit_s);
	sync_s = solution_sync_s(s, p, NULL);
	if (sync_s > p->sync_limit_s)
		return error_set(err, OVER_LIMIT,
				 "no placement whose sums take %g s; %.2f s would be possible",
				 p->sync_limit_s, ceil(sync_s * 100) / 100);
	return 0;
}

static int first_solution(struct solution *s, const struct problem *p, struct error *err)
{
	struct rng rng;
	int rc = construct_assignment(s, p, err);

	if (rc == 0)
		rc = keep_limit(s, p, err);
	if (rc != 0)
		return rc;
	rc = p->q->from ? repair_plan(s, p, err) : build_paths(s, p, false, err);
	rng_init_stream(&rng, p->q->seed, 4);
	for (int deal = 1; rc > 0 && p->n_movable > 0 && deal < DEALS; deal++) {
		deal_again(s, p, &rng);
		rc = keep_limit(s, p, err);
		if (rc == 0)
			rc = build_paths(s, p, false, err);
	}
	if (rc > 0 && p->n_movable > 0) /* another assignment may have legal paths */
		return error_prefix(err, PLAN_NOT_FOUND,
				    "none of %d assignments has paths; the last", DEALS);
	return rc;
}

/* Computes the lower bound for the final assignment, if the search has computed none. A bound
 * holds for one assignment only. With a given assignment, the bound grows during the search, and
 * the search ends when a plan meets it. In large clusters, the limit of the bound's work is
 * reached before the data nodes that finish early are examined. */
static void bound_plan(struct progress *g, const struct solution *s, const double *finish_s)
{
	struct bound *b = bound_new(g->p, s, finish_s);

	g->lower_bound_s = bound_answer(b);
	bound_free(b);
}

static int anneal_until_over(struct progress *g, struct anneal *a, struct bound *b,
			     int64_t most, struct error *err)
{
	int small = problem_is(g->p, REGIME_LOOK_OFTEN) ? 1 : 32, rc = 0;

	if (g->p->q->evaluations > 0 && most > g->p->q->evaluations - g->evaluations)
		most = g->p->q->evaluations - g->evaluations;
	for (int64_t i = 0; rc == 0 && i < most; i++) {
		if (b)
			g->lower_bound_s = bound_beside(b, 1);
		if (i % small == 0 && (progress_over(g) || (rc = progress_announce(g, err)) != 0))
			break;
		if (a->best_s <= g->lower_bound_s * BOUND_MET)
			break;
		g->evaluations++;
		if (anneal_step(a))
			rc = progress_note(g, &a->best, a->best_iteration_s, err);
	}
	return rc;
}

/* The first chain anneals alone until it has simulated about this many tasks. */
#define ALONE 3000000

static bool is_placing(const struct problem *p)
{
	return p->n_movable > 1 && !p->q->from;
}

/* In large clusters, tries a placement in which sums are quick and successive stages are near
 * each other. Adopts the placement if its plan is better even without annealing. */
static int try_placed(struct progress *g, struct anneal *a, struct error *err)
{
	const struct problem *p = g->p;
	struct solution placed;
	struct anneal other;
	int rc = 0;

	if (problem_is(p, REGIME_SHORT_ROUNDS) || !is_placing(p) || progress_late(g))
		return 0;
	solution_init(&placed, p);
	solution_copy(&placed, &a->best, p);
	if (p->weigh_sync)
		place_by_sync(&placed, p, g);
	place_in_order(&placed, p);
	rc = build_paths(&placed, p, false, NULL);
	if (rc == 0)
		rc = anneal_init(&other, p, &placed, p->q->seed, 2);
	solution_fini(&placed);
	if (rc != 0)
		return 0;
	if (other.best_s < a->best_s) {
		anneal_adopt(a, &other);
		rc = progress_note(g, &a->best, a->best_iteration_s, err);
	}
	anneal_fini(&other);
	return rc;
}

/* In large clusters, a sketch (paths annealed by an estimate, sketch.h) is mostly a better start
 * than constructed paths. If lanes are planned, a sketch is seldom better. The search then makes
 * a shorter sketch, and anneals the sketch and the constructed paths for LANES_TRIED steps each. It
 * uses the sketch only if the sketch is then the better one. If lanes are planned and there are
 * very many microbatches, no sketch is made. */
#define SKETCH_STEPS 300000
#define LANES_SKETCH_STEPS 30000
#define LANES_TRIED 300

static int try_sketch(struct progress *g, struct anneal *a, struct error *err)
{
	const struct problem *p = g->p;

	if (problem_is(p, REGIME_SHORT_ROUNDS) || p->q->from || progress_late(g))
		return 0;
	if (!a->plans_lanes)
		return multi_start_sketched(g, a, SKETCH_STEPS, 0, err);
	if (!problem_is(p, REGIME_LANES_SKETCH))
		return 0;
	return multi_start_sketched(g, a, LANES_SKETCH_STEPS, LANES_TRIED, err);
}

/* If lanes can be planned and nodes may change their stage, the search first exchanges nodes for
 * this many evaluations. Then it fixes the placement and plans lanes. */
#define ROLES_UNTIL 10000

static int settle_and_plan_lanes(struct progress *g, struct anneal *a, struct error *err)
{
	struct problem settled = *g->p;
	struct anneal lanes;
	struct bound *b;
	int rc;

	settled.n_movable = 0;
	anneal_init(&lanes, &settled, &a->best, g->p->q->seed, 3);
	b = bound_new(&settled, &lanes.best, lanes.simulation.finish_s);
	rc = parallel_anneal_run(g, &lanes, b, INT64_MAX, err);
	g->lower_bound_s = bound_answer(b);
	bound_free(b);
	if (lanes.best_s < a->best_s)
		anneal_adopt(a, &lanes);
	anneal_fini(&lanes);
	return rc;
}

static int anneal_in_chains(struct progress *g, struct anneal *a, struct bound *b,
			    struct error *err)
{
	bool roles_first = g->p->n_movable > 1 && anneal_knows_lanes(g->p);
	int rc = parallel_anneal_run(g, a, b, roles_first ? ROLES_UNTIL : INT64_MAX, err);

	return rc == 0 && roles_first && !progress_over(g) ? settle_and_plan_lanes(g, a, err) : rc;
}

static int anneal_and_finish(struct progress *g, struct anneal *a, struct error *err)
{
	const struct problem *p = g->p;
	int64_t tasks = (int64_t)p->n_mb * a->simulation.steps;
	bool given = p->n_movable == 0, short_rounds = problem_is(p, REGIME_SHORT_ROUNDS);
	struct bound *b = NULL;
	int rc = 0;

	if (given)
		b = bound_new(p, &a->best, a->simulation.finish_s);
	if (short_rounds)
		rc = is_placing(p) ? multi_start_run(g, a, err) : multi_start_tied(g, a, b, err);
	if (rc == 0 && !(is_placing(p) && short_rounds)) /* one chain improves fastest at first */
		rc = anneal_until_over(g, a, b, ALONE / tasks + 1, err);
	if (rc == 0 && !progress_over(g) && a->best_s > g->lower_bound_s * BOUND_MET)
		rc = anneal_in_chains(g, a, b, err);
	if (rc == 0 && g->lower_bound_s <= 0)
		bound_plan(g, &a->best, a->simulation.finish_s);
	/* With a given assignment, the last announced plan is kept if its iteration is as short as
	 * the new plan's iteration. */
	if (rc == 0 && !(given && g->plan->predicted.iteration_s <= a->best_iteration_s))
		rc = progress_finish(g, &a->best, err);
	bound_free(b);
	return rc;
}

/* Simulates the first solution and announces it. The solution can come to a standstill only if its
 * paths exchange stages. The search uses such paths only if it has found no others. */
static int note_first(struct progress *g, const struct solution *first, struct error *err)
{
	double first_s = time_solution(g->p, first);

	return isinf(first_s) ? report_standstill(err) : progress_note(g, first, first_s, err);
}

static int improve_first(struct progress *g, const struct solution *first, struct error *err)
{
	struct anneal a;
	int rc = note_first(g, first, err);

	if (rc != 0)
		return rc;
	anneal_init(&a, g->p, first, g->p->q->seed, 1);
	g->evaluations++;
	rc = try_placed(g, &a, err);
	if (rc == 0)
		rc = try_sketch(g, &a, err);
	if (rc == 0)
		rc = anneal_and_finish(g, &a, err);
	anneal_fini(&a);
	return rc;
}

/* The published methods. dtfm visits all stages, whatever the request says. */
#define GENETIC_TRIALS 8000

static int baseline_paths(struct progress *g, struct solution *s, struct error *err)
{
	const struct problem *p = g->p;
	struct rng rng;

	rng_init_stream(&rng, p->q->seed, 3);
	switch (p->q->algorithm) {
	case PLAN_DTFM:
		return straight_paths(s, p, err);
	case PLAN_DTFM_SKIP:
		return random_paths(s, p, &rng, err);
	default:
		return build_paths(s, p, false, err);
	}
}

/* Finds the assignment and the paths of a published method. If a method finds no paths, uses any
 * legal paths. The methods cbs and no-tc2 improve legal paths that are built first. */
static int search_baseline(struct progress *g, struct solution *s, struct error *err)
{
	const struct problem *p = g->p;
	enum plan_algorithm algorithm = p->q->algorithm;
	double first_s;
	int64_t most = p->q->evaluations;
	int trials = most > 0 && most < GENETIC_TRIALS ? (int)most : GENETIC_TRIALS;
	int rc = construct_assignment(s, p, err);
	bool own;

	if (rc == 0 && p->n_movable > 1)
		allocate_genetic(s, p, g, trials);
	if (rc == 0)
		rc = baseline_paths(g, s, err);
	own = rc == 0;
	if (rc == PLAN_INFEASIBLE)
		rc = feasible_paths(s, p, err);
	if (rc != 0)
		return rc;
	first_s = time_solution(p, s);
	if (isinf(first_s))
		return report_standstill(err);
	if (algorithm == PLAN_CBS || algorithm == PLAN_NO_TC2) {
		rc = conflict_search(s, p, algorithm == PLAN_CBS, g, err);
	} else {
		rc = progress_note(g, s, first_s, err);
		g->evaluations += own;
	}
	if (rc != 0)
		return rc;
	bound_plan(g, s, NULL);
	return progress_finish(g, s, err);
}

static int search_best(struct progress *g, struct solution *s, struct error *err)
{
	int rc = first_solution(s, g->p, err);

	return rc == 0 ? improve_first(g, s, err) : rc;
}

static int search_once(const struct cluster *c, const struct plan_request *q, int64_t start_us,
		       struct plan **out, struct error *err)
{
	struct solution s = { 0 };
	struct progress g;
	struct problem p;
	int rc = problem_init(&p, c, q, err);

	if (rc != 0)
		return rc;
	progress_init(&g, &p, start_us);
	solution_init(&s, &p);
	if (q->algorithm == PLAN_BEST)
		rc = search_best(&g, &s, err);
	else
		rc = search_baseline(&g, &s, err);
	if (rc == 0)
		rc = progress_take(&g, out, err);
	solution_fini(&s);
	progress_fini(&g);
	problem_fini(&p);
	return rc;
}

static bool has_plan(const struct cluster *c, const struct plan_request *q, int length)
{
	struct plan_request once = *q;
	struct plan *plan = NULL;
	int rc;

	once.algorithm = PLAN_BEST;
	once.path_length = length;
	once.evaluations = 1;
	once.on_improvement = NULL;
	rc = search_once(c, &once, 0, &plan, NULL);
	plan_free(plan);
	return rc == 0;
}

/* Adds to the message the nearest number of skipped stages that has a plan. Ends early when time
 * runs out or the caller cancels. */
static void suggest_skip(const struct cluster *c, const struct plan_request *q,
			 int64_t start_us, struct error *err)
{
	int length = q->path_length ? q->path_length : plan_default_path_length(c);
	char why[sizeof(err->text)];

	for (int by = 1; err && by < c->n_stages; by++) {
		for (int sign = 1; sign >= -1; sign -= 2) {
			int near = length + sign * by;
			bool late = q->budget_s > 0 && (double)(q->clock_us(q->clock_arg) -
								start_us) >= q->budget_s * 1e6;

			if (late || (q->cancel && atomic_load((atomic_bool *)q->cancel)))
				return;
			if (near < stage_set_count(c->always) || near > c->n_stages ||
			    !has_plan(c, q, near))
				continue;
			snprintf(why, sizeof(why), "%s", err->text);
			error_set(err, 0, "%s; a skip of %d/%d would be possible", why,
				  c->n_stages - near, c->n_stages);
			return;
		}
	}
}

int plan_search(const struct cluster *c, const struct plan_request *request, struct plan **out,
		struct error *err)
{
	struct plan_request q = *request;
	int64_t start_us = q.clock_us ? q.clock_us(q.clock_arg) : 0;
	bool spreads;
	int rc;

	if (q.algorithm == PLAN_DTFM) {
		q.path_length = c->n_stages;
		q.skip_share = 0;
	}
	if (q.budget_s <= 0 && q.evaluations <= 0 && q.clock_us)
		q.budget_s = 1;
	spreads = q.skip_share > 0 && q.path_length < c->n_stages;
	if (spreads) { /* spread_plan gets the other half of the budget */
		q.budget_s /= 2;
		q.evaluations = (q.evaluations + 1) / 2;
	}
	rc = search_once(c, &q, start_us, out, err);
	if (rc == OVER_LIMIT)
		return PLAN_NOT_FOUND;
	if (rc > 0 && q.algorithm != PLAN_DTFM)
		suggest_skip(c, &q, start_us, err);
	if (rc == 0 && spreads)
		spread_plan(c, &q, out);
	return rc;
}
