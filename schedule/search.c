#include "schedule/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/check.h"
#include "schedule/construct.h"
#include "schedule/problem.h"
#include "schedule/simulate.h"

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

/* Simulates and checks, and fills in what is predicted. A breach here is our own bug. */
static int predict(const struct problem *p, struct plan *plan, struct error *err)
{
	struct check_options options = { .excluded = p->q->excluded,
					 .pins = !p->q->free_assignment };
	struct plan_predicted *d = &plan->predicted;
	struct check_report report;
	struct simulation *s;
	int rc = simulate(p->c, plan, &s, err);

	if (rc != 0)
		return rc;
	rc = check_plan(p->c, plan, s, &options, &report);
	if (rc == 0 && report.n_breaches > 0)
		rc = error_set(err, -EPROTO, "the search broke a rule: %s", report.breaches[0]);
	if (rc == 0) {
		d->iteration_s = s->iteration_s;
		d->sync_s = s->sync_s;
		d->collisions = s->collisions;
		d->collision_wait_s = s->collision_wait_s;
		d->idle_fraction = s->idle_fraction;
		free(d->exposure);
		d->exposure = s->exposure;
		s->exposure = NULL;
	}
	check_report_fini(&report);
	simulation_free(s);
	return rc;
}

static int first_solution(struct solution *s, const struct problem *p, struct error *err)
{
	struct rng rng;
	int rc = construct_assignment(s, p, err);

	rng_init_stream(&rng, p->q->seed, 0);
	if (rc != 0)
		return rc;
	for (int attempt = 0; attempt < CONSTRUCT_ATTEMPTS; attempt++) {
		rc = construct_paths(s, p, attempt, &rng, err);
		if (rc != PLAN_INFEASIBLE)
			break;
	}
	return rc;
}

static double elapsed_s(const struct plan_request *q, int64_t start_us)
{
	return q->clock_us ? (double)(q->clock_us(q->clock_arg) - start_us) * 1e-6 : 0;
}

int plan_search(const struct cluster *c, const struct plan_request *q, struct plan **out,
		struct error *err)
{
	int64_t start_us = q->clock_us ? q->clock_us(q->clock_arg) : 0;
	struct plan *plan = NULL;
	struct problem p;
	struct solution s;
	int rc = problem_init(&p, c, q, err);

	if (rc != 0)
		return rc;
	rc = solution_init(&s, &p);
	if (rc == 0)
		rc = first_solution(&s, &p, err);
	if (rc == 0) {
		plan = solution_to_plan(&s, &p);
		rc = plan ? predict(&p, plan, err) : error_set(err, -ENOMEM, "out of memory");
	}
	if (rc == 0) {
		plan->search.algorithm = strdup(plan_algorithm_name(q->algorithm));
		plan->search.seed = q->seed;
		plan->search.evaluations = 1;
		plan->search.elapsed_s = elapsed_s(q, start_us);
		plan->search.history = malloc(sizeof(*plan->search.history));
		if (!plan->search.algorithm || !plan->search.history)
			rc = error_set(err, -ENOMEM, "out of memory");
	}
	if (rc == 0) {
		plan->search.history[0][0] = plan->search.elapsed_s;
		plan->search.history[0][1] = plan->predicted.iteration_s;
		plan->search.n_history = 1;
		if (q->on_improvement)
			q->on_improvement(q->on_improvement_arg, plan);
		*out = plan;
	} else {
		plan_free(plan);
	}
	solution_fini(&s);
	problem_fini(&p);
	return rc;
}
