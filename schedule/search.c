#include "schedule/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/allocate.h"
#include "schedule/anneal.h"
#include "schedule/bound.h"
#include "schedule/conflict_search.h"
#include "schedule/construct.h"
#include "schedule/engine.h"
#include "schedule/problem.h"
#include "schedule/progress.h"
#include "schedule/straight.h"

#define CONSTRUCT_ATTEMPTS 40

static const char *const names[] = { "best", "cbs", "no-tc2", "dtfm", "dtfm-skip" };

const char *plan_algorithm_name(enum plan_algorithm a)
{
	return (unsigned)a < sizeof(names) / sizeof(names[0]) ? names[a] : NULL;
}

void plan_request_init(struct plan_request *q)
{
	*q = (struct plan_request){ .algorithm = PLAN_BEST, .seed = 1, .threads = 1 };
}

static int build(struct solution *s, const struct problem *p, bool repair, struct error *err)
{
	struct rng rng;
	int rc = PLAN_INFEASIBLE;

	rng_init_stream(&rng, p->q->seed, 0);
	for (int attempt = 0; attempt < CONSTRUCT_ATTEMPTS && rc == PLAN_INFEASIBLE; attempt++)
		rc = construct_paths(s, p, attempt, repair && attempt < 2, &rng, err);
	return rc;
}

/* What a solution costs, INFINITY where it stands still. Kept paths may have exchanges in them,
 * and those can. */
static double time_of(struct engine *e, const struct solution *s)
{
	engine_set_paths(e, s);
	return engine_run(e, INFINITY) ? e->makespan_s : INFINITY;
}

/* With a plan to start from: what is left of it, mended, or a fresh one, whichever is better. */
static int mend(struct solution *s, const struct problem *p, struct error *err)
{
	struct solution kept;
	struct engine e;
	int rc = engine_init(&e, p);

	if (rc == 0 && (rc = solution_init(&kept, p)) != 0)
		engine_fini(&e);
	if (rc != 0)
		return error_set(err, rc, "out of memory");
	solution_copy(&kept, s, p);
	if (build(&kept, p, true, err) == 0) {
		double kept_s = time_of(&e, &kept);

		rc = build(s, p, false, err);
		if ((rc != 0 && kept_s < INFINITY) || (rc == 0 && kept_s <= time_of(&e, s))) {
			solution_copy(s, &kept, p);
			rc = 0;
		}
	} else {
		rc = build(s, p, false, err);
	}
	solution_fini(&kept);
	engine_fini(&e);
	return rc;
}

static int first_solution(struct solution *s, const struct problem *p, struct error *err)
{
	int rc = construct_assignment(s, p, err);

	if (rc != 0)
		return rc;
	return p->q->from ? mend(s, p, err) : build(s, p, false, err);
}

/* The bound belongs to an assignment. Where that is given, it grows while the search goes on, and
 * ends it when it is met; else it is worked out for the answer. Large clusters have many data
 * nodes: those that finish late come first, and after a while the rest is left out. */
#define BOUND_STEPS_AT_END 100
#define MET 1.000000001

static void bound_answer(struct progress *g, const struct anneal *a)
{
	struct bound *b = bound_new(g->p, &a->best, a->engine.finish_s);

	for (int i = 0; b && i < BOUND_STEPS_AT_END && bound_step(b); i++)
		;
	if (b)
		g->lower_bound_s = bound_s(b);
	bound_free(b);
}

static int anneal_until_over(struct progress *g, struct anneal *a, struct bound *b,
			     struct error *err)
{
	int small = g->p->n_mb > 500 ? 1 : 32, rc = 0;

	for (int64_t i = 0; rc == 0; i++) {
		if (b && bound_step(b))
			g->lower_bound_s = bound_s(b);
		if (i % small == 0 && progress_over(g))
			break;
		if (a->best_s <= g->lower_bound_s * MET)
			break;
		g->evaluations++;
		if (anneal_step(a))
			rc = progress_note(g, &a->best, a->best_iteration_s, err);
	}
	return rc;
}

static int improve(struct progress *g, const struct solution *first, struct error *err)
{
	bool given = g->p->n_movable == 0;
	struct bound *b = NULL;
	struct anneal a;
	int rc = anneal_init(&a, g->p, first, g->p->q->seed, 1);

	if (rc != 0)
		return error_set(err, rc, rc == -ENOMEM ? "out of memory" : "standstill");
	g->evaluations += a.evaluations;
	rc = progress_note(g, &a.best, a.best_iteration_s, err);
	if (rc == 0 && given) {
		b = bound_new(g->p, &a.best, a.engine.finish_s);
		rc = b ? 0 : error_set(err, -ENOMEM, "out of memory");
	}
	if (rc == 0)
		rc = anneal_until_over(g, &a, b, err);
	if (rc == 0 && !given)
		bound_answer(g, &a);
	if (rc == 0)
		rc = progress_finish(g, &a.best, err);
	bound_free(b);
	anneal_fini(&a);
	return rc;
}

/* The published methods. dtfm goes through all stages, whatever the request says. */
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
		return build(s, p, false, err);
	}
}

static int baseline(struct progress *g, struct solution *s, struct error *err)
{
	const struct problem *p = g->p;
	enum plan_algorithm algorithm = p->q->algorithm;
	struct engine e;
	struct bound *b;
	int64_t most = p->q->evaluations;
	int trials = most > 0 && most < GENETIC_TRIALS ? (int)most : GENETIC_TRIALS;
	int rc = construct_assignment(s, p, err);

	if (rc == 0 && p->n_movable > 1 && allocate_genetic(s, p, g, trials) != 0)
		rc = error_set(err, -ENOMEM, "out of memory");
	if (rc == 0)
		rc = baseline_paths(g, s, err);
	if (rc == 0 && (algorithm == PLAN_CBS || algorithm == PLAN_NO_TC2)) {
		rc = conflict_search(s, p, algorithm == PLAN_CBS, g, err);
	} else if (rc == 0) {
		rc = engine_init(&e, p);
		if (rc != 0)
			return error_set(err, rc, "out of memory");
		rc = progress_note(g, s, time_of(&e, s), err);
		g->evaluations++;
		engine_fini(&e);
	}
	if (rc != 0)
		return rc;
	b = bound_new(p, s, NULL);
	for (int i = 0; b && i < BOUND_STEPS_AT_END && bound_step(b); i++)
		;
	g->lower_bound_s = b ? bound_s(b) : 0;
	bound_free(b);
	return progress_finish(g, s, err);
}

static int search_best(struct progress *g, struct solution *s, struct error *err)
{
	int rc = first_solution(s, g->p, err);

	return rc == 0 ? improve(g, s, err) : rc;
}

int plan_search(const struct cluster *c, const struct plan_request *request, struct plan **out,
		struct error *err)
{
	struct plan_request q = *request;
	int64_t start_us = q.clock_us ? q.clock_us(q.clock_arg) : 0;
	struct solution s = { 0 };
	struct progress g;
	struct problem p;
	int rc;

	if (q.algorithm == PLAN_DTFM)
		q.path_length = c->n_stages;
	if (q.budget_s <= 0 && q.evaluations <= 0 && q.clock_us)
		q.budget_s = 1;
	rc = problem_init(&p, c, &q, err);
	if (rc != 0)
		return rc;
	progress_init(&g, &p, start_us);
	if (solution_init(&s, &p) != 0)
		rc = error_set(err, -ENOMEM, "out of memory");
	else if (q.algorithm == PLAN_BEST)
		rc = search_best(&g, &s, err);
	else
		rc = baseline(&g, &s, err);
	if (rc == 0)
		rc = progress_take(&g, out, err);
	solution_fini(&s);
	progress_fini(&g);
	problem_fini(&p);
	return rc;
}
