/* The best plan so far, and its announcement to the caller.
 *
 * Every plan is simulated and checked before it leaves the search. This takes longer than an
 * evaluation. If better solutions follow one another quickly, only the newest of them becomes a
 * plan. */
#include "schedule/problem/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "schedule/execution/check.h"
#include "schedule/execution/simulate.h"

#define ANNOUNCE_EVERY_US 20000

void progress_init(struct progress *g, const struct problem *p, int64_t start_us)
{
	*g = (struct progress){ .p = p, .start_us = start_us };
}

void progress_fini(struct progress *g)
{
	plan_free(g->plan);
	free(g->history);
	solution_fini(&g->waiting);
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

/* Simulates and checks the plan, and fills in the predictions. If the plan breaks a rule, the
 * search has a bug. */
static int predict_plan(const struct progress *g, struct plan *plan, struct error *err)
{
	const struct problem *p = g->p;
	struct check_options options = { .excluded = p->out, .pins = !p->q->free_assignment };
	struct plan_predicted *d = &plan->predicted;
	struct check_report report = { 0 };
	struct simulation *s;
	int rc = simulate(p->c, plan, &s, err);

	if (rc != 0)
		return rc;
	check_plan(p->c, plan, s, &options, &report);
	if (report.n_breaches > 0)
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

/* Copies the history of the search so far to the plan. */
static void record_search(const struct progress *g, struct plan *plan)
{
	struct plan_record *s = &plan->search;

	free(s->algorithm);
	free(s->history);
	*s = (struct plan_record){
		.algorithm = alloc_string(plan_algorithm_name(g->p->q->algorithm)),
		.seed = g->p->q->seed,
		.evaluations = g->evaluations,
		.elapsed_s = (double)(now_us(g) - g->start_us) * 1e-6,
		.n_history = g->n_history,
		.history = alloc_array((size_t)g->n_history, sizeof(*g->history)),
	};
	if (g->n_history > 0)
		memcpy(s->history, g->history, (size_t)g->n_history * sizeof(*g->history));
}

static void add_history(struct progress *g, double iteration_s)
{
	array_reserve(&g->history, &g->room, (size_t)g->n_history + 1, sizeof(g->history[0]));
	g->history[g->n_history][0] = (double)(now_us(g) - g->start_us) * 1e-6;
	g->history[g->n_history][1] = iteration_s;
	g->n_history++;
}

static int publish_solution(struct progress *g, const struct solution *s, struct error *err)
{
	const struct plan_request *q = g->p->q;
	struct plan *plan = solution_to_plan(s, g->p);
	int rc = predict_plan(g, plan, err);

	if (rc != 0) {
		plan_free(plan);
		return rc;
	}
	record_search(g, plan);
	plan_free(g->plan);
	g->plan = plan;
	g->is_waiting = false;
	if (q->on_improvement)
		q->on_improvement(q->on_improvement_arg, plan);
	g->announced_us = now_us(g);
	return 0;
}

int progress_note(struct progress *g, const struct solution *s, double iteration_s,
		  struct error *err)
{
	add_history(g, iteration_s);
	if (!g->plan)
		return publish_solution(g, s, err);
	if (!g->p->q->on_improvement)
		return 0;
	if (!g->waiting.path)
		solution_init(&g->waiting, g->p);
	solution_copy(&g->waiting, s, g->p);
	g->is_waiting = true;
	return progress_announce(g, err);
}

int progress_announce(struct progress *g, struct error *err)
{
	if (!g->is_waiting || now_us(g) - g->announced_us < ANNOUNCE_EVERY_US)
		return 0;
	return publish_solution(g, &g->waiting, err);
}

int progress_finish(struct progress *g, const struct solution *s, struct error *err)
{
	return publish_solution(g, s, err);
}

int progress_take(struct progress *g, struct plan **out, struct error *err)
{
	if (!g->plan)
		return error_set(err, -ECANCELED, "cancelled before there was a plan");
	g->plan->predicted.lower_bound_s = g->lower_bound_s;
	record_search(g, g->plan);
	*out = g->plan;
	g->plan = NULL;
	return 0;
}
