#include "schedule/problem/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "schedule/execution/check.h"
#include "schedule/execution/simulate.h"

#define TELL_EVERY_US 20000

void progress_init(struct progress *g, const struct problem *p, int64_t start_us)
{
	*g = (struct progress){ .p = p, .start_us = start_us };
}

void progress_fini(struct progress *g)
{
	plan_free(g->plan);
	free(g->history);
	solution_fini(&g->untold);
	*g = (struct progress){ 0 };
}

static int64_t now_us(const struct progress *g)
{
	const struct plan_request *q = g->p->q;

	return q->clock_us ? q->clock_us(q->clock_arg) : 0;
}

static bool is_cancelled(const struct progress *g)
{
	const atomic_bool *cancel = g->p->q->cancel;

	return cancel && atomic_load_explicit((atomic_bool *)cancel, memory_order_relaxed);
}

bool progress_late(const struct progress *g)
{
	const struct plan_request *q = g->p->q;

	return is_cancelled(g) ||
	       (q->budget_s > 0 && (double)(now_us(g) - g->start_us) >= q->budget_s * 1e6);
}

bool progress_over(const struct progress *g)
{
	int64_t most = g->p->q->evaluations;

	return (most > 0 && g->evaluations >= most) || progress_late(g);
}

/* Simulates and checks, and fills in what is predicted. A breach here is our own bug. */
static int predict_plan(const struct progress *g, struct plan *plan, struct error *err)
{
	const struct problem *p = g->p;
	struct check_options options = { .excluded = p->out, .pins = !p->q->free_assignment };
	struct plan_predicted *d = &plan->predicted;
	struct check_report report = { 0 };
	struct simulation *s;
	int rc = simulate(p->whole, plan, &s, err);

	if (rc != 0)
		return rc;
	if (check_plan(p->whole, plan, s, &options, &report) != 0)
		rc = error_set(err, -ENOMEM, "out of memory");
	else if (report.n_breaches > 0)
		rc = error_set(err, -EPROTO, "the search broke a rule: %s", report.breaches[0]);
	else if (s->sync_s > p->sync_limit_s)
		rc = error_set(err, -EPROTO, "the search broke the limit of the sums");
	if (rc == 0) {
		*d = (struct plan_predicted){
			.iteration_s = s->iteration_s,
			.sync_s = s->sync_s,
			.total_s = plan->overlap_sync ? s->total_s : 0,
			.collisions = s->collisions,
			.collision_wait_s = s->collision_wait_s,
			.idle_fraction = s->idle_fraction,
			.lower_bound_s = g->lower_bound_s,
			.exposure = s->exposure,
		};
		s->exposure = NULL;
	}
	check_report_fini(&report);
	simulation_free(s);
	return rc;
}

/* Copies what the search has done so far into the plan. */
static int record_search(const struct progress *g, struct plan *plan, struct error *err)
{
	struct plan_record *s = &plan->search;
	size_t size = (size_t)g->n_history * sizeof(*g->history);
	char *algorithm = strdup(plan_algorithm_name(g->p->q->algorithm));
	double (*history)[2] = malloc(size + 1);

	if (!algorithm || !history) {
		free(algorithm);
		free(history);
		return error_set(err, -ENOMEM, "out of memory");
	}
	if (size > 0)
		memcpy(history, g->history, size);
	free(s->algorithm);
	free(s->history);
	*s = (struct plan_record){
		.algorithm = algorithm,
		.seed = g->p->q->seed,
		.evaluations = g->evaluations,
		.elapsed_s = (double)(now_us(g) - g->start_us) * 1e-6,
		.n_history = g->n_history,
		.history = history,
	};
	return 0;
}

static int add_history(struct progress *g, double iteration_s, struct error *err)
{
	if (!array_grow(&g->history, &g->room, (size_t)g->n_history + 1, sizeof(g->history[0])))
		return error_set(err, -ENOMEM, "out of memory");
	g->history[g->n_history][0] = (double)(now_us(g) - g->start_us) * 1e-6;
	g->history[g->n_history][1] = iteration_s;
	g->n_history++;
	return 0;
}

/* Takes the plan over as the best so far: simulated, checked and announced. */
static int publish_plan(struct progress *g, struct plan *plan, struct error *err)
{
	const struct plan_request *q = g->p->q;
	int rc = predict_plan(g, plan, err);

	if (rc == 0)
		rc = record_search(g, plan, err);
	if (rc != 0) {
		plan_free(plan);
		return rc;
	}
	plan_free(g->plan);
	g->plan = plan;
	g->is_untold = false;
	if (q->on_improvement)
		q->on_improvement(q->on_improvement_arg, plan);
	g->told_us = now_us(g);
	return 0;
}

static int publish_solution(struct progress *g, const struct solution *s, struct error *err)
{
	struct plan *plan = solution_to_plan(s, g->p);

	return plan ? publish_plan(g, plan, err) : error_set(err, -ENOMEM, "out of memory");
}

int progress_note(struct progress *g, const struct solution *s, double iteration_s,
		  struct error *err)
{
	int rc = add_history(g, iteration_s, err);

	if (rc != 0)
		return rc;
	if (!g->plan)
		return publish_solution(g, s, err);
	if (!g->p->q->on_improvement)
		return 0;
	if (!g->untold.path && solution_init(&g->untold, g->p) != 0)
		return error_set(err, -ENOMEM, "out of memory");
	solution_copy(&g->untold, s, g->p);
	g->is_untold = true;
	return progress_tell(g, err);
}

int progress_tell(struct progress *g, struct error *err)
{
	if (!g->is_untold || now_us(g) - g->told_us < TELL_EVERY_US)
		return 0;
	return publish_solution(g, &g->untold, err);
}

int progress_finish(struct progress *g, const struct solution *s, struct error *err)
{
	return publish_solution(g, s, err);
}

int progress_take(struct progress *g, struct plan **out, struct error *err)
{
	int rc;

	if (!g->plan)
		return error_set(err, -ECANCELED, "cancelled before there was a plan");
	g->plan->predicted.lower_bound_s = g->lower_bound_s;
	rc = record_search(g, g->plan, err);
	if (rc == 0) {
		*out = g->plan;
		g->plan = NULL;
	}
	return rc;
}
