/* Compares recipes by the loss that they reach in a given time.
 *
 * Plans only three runs: all stages in every iteration, and the two recipes of --recipe. The other
 * recipes differ from these only in the lengths of their phases, so the seconds of an iteration are
 * the same. A run is delayed only if nodes take longer to fetch their new stages than the first
 * phase lasts. */
#include "schedule/recipes/hours.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schedule/search/phase_plans.h"

/* Length of the planned runs. Their phases are so long that no fetch of stages outlasts a phase. */
enum { PLANNED_ITERATIONS = 100000 };

/* The times of a recipe's two phases, and of the fetch between them. A recipe without growth has
 * only then_s. */
struct phases {
	double first_s, then_s, fetch_s;
	int moves;
};

static int plan_phases(const struct cluster *c, const struct hours_request *q, const char *text,
		       struct phases *out, struct error *err)
{
	struct skip_schedule schedule;
	struct phase_plans_request p = {
		.search = q->search,
		.schedule = &schedule,
		.iterations = PLANNED_ITERATIONS,
		.stack = true,
		.state_ratio = q->state_ratio,
	};
	const struct phase_plan_list *list;
	struct phase_plans plans;
	int rc = skip_schedule_parse(&schedule, text, PLANNED_ITERATIONS,
				     (uint32_t)cluster_most_skipped(c), err);

	p.search.ascending = true;
	if (rc == 0)
		rc = phase_plans_choose(c, &p, &plans, err);
	if (rc != 0)
		return rc;
	list = &plans.with_moves;
	*out = (struct phases){
		.first_s = list->phases[0].seconds,
		.then_s = list->phases[list->n - 1].seconds,
		.fetch_s = list->phases[list->n - 1].fetch_s,
		.moves = list->phases[list->n - 1].moves,
	};
	phase_plans_fini(&plans);
	return 0;
}

static void report_progress(const struct hours_request *q, double done)
{
	if (q->on_progress)
		q->on_progress(q->progress_arg, done);
}

static int plan_kinds(const struct cluster *c, const struct hours_request *q,
		      struct phases of[RECIPE_ENDS + 1], struct error *err)
{
	static const char *const names[] = { [RECIPE_GROWS] = "speed", [RECIPE_ROBUST] = "robust" };
	char text[SKIP_SCHEDULE_RECIPE] = "0@0";
	int rc = 0;

	for (int kind = RECIPE_WHOLE; rc == 0 && kind <= RECIPE_ROBUST; kind++) {
		report_progress(q, kind / (double)RECIPE_ENDS);
		if (names[kind])
			rc = skip_schedule_of_recipe(text, names[kind],
						     (uint32_t)cluster_most_skipped(c), err);
		if (rc == 0)
			rc = plan_phases(c, q, text, &of[kind], err);
	}
	if (rc != 0)
		return rc;
	of[RECIPE_ENDS] = (struct phases){ .first_s = of[RECIPE_GROWS].first_s,
					   .then_s = of[RECIPE_GROWS].first_s };
	report_progress(q, 1);
	return 0;
}

/* Returns the number of iterations of the first phase: first_percent of the run, rounded as in a
 * skip schedule. */
static uint64_t first_iterations(const struct recipe *r, uint64_t iterations)
{
	bool has_two = r->kind == RECIPE_GROWS || r->kind == RECIPE_ROBUST;

	return has_two ? (uint64_t)(r->first_percent / 100.0 * (double)iterations + 0.5) : 0;
}

static double run_seconds(const struct recipe *r, const struct phases *p, uint64_t iterations)
{
	uint64_t first = first_iterations(r, iterations);
	double first_s = (double)first * p->first_s;

	return first_s + (double)(iterations - first) * p->then_s +
	       (first > 0 ? fmax(0, p->fetch_s - first_s) : 0);
}

/* Returns the largest number of iterations that take at most `seconds`. */
static uint64_t fitting_iterations(const struct recipe *r, const struct phases *p, double seconds)
{
	uint64_t low = 0, high = 1;

	while (high < UINT64_C(1) << 40 && run_seconds(r, p, high) <= seconds)
		high *= 2;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (run_seconds(r, p, middle) <= seconds)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Returns the tokens of an iteration divided by the model's weights; 0: the model is unknown. */
static double tokens_per_weight(const struct cluster *c, const struct model_shape *s)
{
	return s ? (double)c->stages[0] * c->microbatches_per_data_node * s->batch * s->tokens /
			   (s->n_layers * s->layer_weights + s->end_weights)
		 : 0;
}

static void fill_row(const struct recipe *r, const struct phases *p, double seconds,
		     double tokens_per_weight, struct hours_row *out)
{
	uint64_t n = fitting_iterations(r, p, seconds), first = first_iterations(r, n);

	*out = (struct hours_row){
		.recipe = r,
		.iterations = n,
		.grows_at = first > 0 ? first + 1 : 0,
		.first_s = p->first_s,
		.then_s = p->then_s,
		.moves = first > 0 ? p->moves : 0,
		.tokens_per_weight = (double)n * tokens_per_weight,
		.change = NAN,
	};
}

/* Returns the stages that no microbatch skips. For a recipe, these include the first and the
 * last. */
static stage_set visited_always(const struct cluster *c)
{
	return c->always | (stage_set)1 << (c->n_stages - 1) | 1;
}

int hours_compare(const struct cluster *given, const struct hours_request *q,
		  struct hours_row rows[RECIPES], struct error *err)
{
	struct cluster *c = cluster_copy(given);
	double of_iteration = tokens_per_weight(c, q->shape), full;
	struct phases of[RECIPE_ENDS + 1];
	int rc;

	c->always = visited_always(c);
	rc = plan_kinds(c, q, of, err);
	cluster_free(c);
	if (rc != 0)
		return rc;
	for (int i = 0; i < RECIPES; i++)
		fill_row(&recipes[i], &of[recipes[i].kind], q->seconds, of_iteration, &rows[i]);
	if (!q->shape)
		return 0;
	full = recipe_loss(&recipes[0], rows[0].tokens_per_weight);
	for (int i = 0; i < RECIPES; i++)
		rows[i].change =
			recipe_loss(&recipes[i], rows[i].tokens_per_weight) / full - 1;
	return 0;
}

const struct hours_row *hours_best(const struct hours_row rows[RECIPES])
{
	const struct hours_row *best = NULL;

	for (int i = 0; i < RECIPES; i++)
		if (rows[i].recipe->kind != RECIPE_ENDS && !isnan(rows[i].change) &&
		    (!best || rows[i].change < best->change))
			best = &rows[i];
	return best;
}

/* Writes " --always LIST". of_recipe: the options contain --recipe, which adds the first and the
 * last stage itself; if LIST has only these two stages, writes "" instead. */
static void write_always(const struct cluster *c, bool of_recipe, char out[STAGE_SET_TEXT + 16])
{
	stage_set all = visited_always(c);
	char list[STAGE_SET_TEXT];

	stage_set_format(all, list);
	if (of_recipe && stage_set_count(all) == 2)
		out[0] = '\0';
	else
		snprintf(out, STAGE_SET_TEXT + 16, " --always %s", list);
}

void hours_options(const struct hours_row *row, const struct cluster *c, char out[HOURS_OPTIONS])
{
	const struct recipe *r = row->recipe;
	bool of_recipe = r->kind == RECIPE_ROBUST ||
			 (r->kind == RECIPE_GROWS && strcmp(r->name, "speed") == 0);
	int droppable = c->n_stages - stage_set_count(visited_always(c));
	const char *moves = row->moves > 0 ? " --phase-moves" : "";
	char always[STAGE_SET_TEXT + 16];

	write_always(c, of_recipe, always);
	if (r->kind == RECIPE_WHOLE)
		snprintf(out, HOURS_OPTIONS, "--skip 0 --no-swaps");
	else if (r->kind == RECIPE_ENDS)
		snprintf(out, HOURS_OPTIONS, "--skip %d%s", droppable, always);
	else if (of_recipe)
		snprintf(out, HOURS_OPTIONS, "--recipe %s%s%s", r->name, always, moves);
	else
		snprintf(out, HOURS_OPTIONS,
			 "--skip-schedule %d@0,0@%d%% --stack%s --no-swaps --grad-norm visits%s",
			 droppable, r->first_percent, always, moves);
}
