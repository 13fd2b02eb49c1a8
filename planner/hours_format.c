/* Writes what recipes reach in a given time (plan --hours). */
#include "planner/hours_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/alloc.h"

static bool has_losses(const struct hours_row rows[RECIPES])
{
	return rows[0].tokens_per_weight > 0;
}

static void print_row(FILE *f, const struct hours_row *r, bool losses)
{
	char grows[24] = "-", change[16] = "-";

	if (r->grows_at > 0)
		snprintf(grows, sizeof(grows), "%" PRIu64, r->grows_at);
	if (!isnan(r->change))
		snprintf(change, sizeof(change), "%+.1f%%", 100 * r->change);
	fprintf(f, "%-12s %10" PRIu64 "  %8.2f %8.2f %10s %6d", r->recipe->name, r->iterations,
		r->first_s, r->then_s, grows, r->moves);
	if (losses)
		fprintf(f, " %14.1f %8s", r->tokens_per_weight, change);
	fputc('\n', f);
}

/* Names the recipe with the lowest loss, or says why no loss is known. */
static void print_advice(FILE *f, const struct hours_row rows[RECIPES], const struct cluster *c)
{
	const struct hours_row *best = hours_best(rows);
	char options[HOURS_OPTIONS];
	double low, high;

	if (!has_losses(rows)) {
		fputs("With --model NAME the table has losses too.\n", f);
		return;
	}
	recipe_lengths(rows[0].recipe, &low, &high);
	if (!best) {
		fprintf(f, "No loss is known; measured were %.0f to %.0f tokens a weight.\n",
			low, high);
		return;
	}
	hours_options(best, c, options);
	fprintf(f,
		"Lowest loss of the whole model: %s\n"
		"  skippipe controller %s --iterations %" PRIu64 "\n"
		"Losses are against full in the same time. A model of 0.6 million weights had\n"
		"them (docs/rates.md); another model may differ.\n",
		best->recipe->name, options, best->iterations);
}

char *hours_table(const struct hours_row rows[RECIPES], const struct cluster *c, double hours)
{
	bool losses = has_losses(rows);
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		alloc_failed(1, 1);
	fprintf(f, "%g hours on %d nodes in %d stages\n%-12s %10s  %8s %8s %10s %6s%s\n", hours,
		c->n_nodes, c->n_stages, "recipe", "iterations", "first s", "then s", "grows at",
		"moves", losses ? "  tokens/weight     loss" : "");
	for (int i = 0; i < RECIPES; i++)
		print_row(f, &rows[i], losses);
	print_advice(f, rows, c);
	fclose(f);
	return text;
}

static json_t *row_to_json(const struct hours_row *r, const struct cluster *c)
{
	char options[HOURS_OPTIONS];
	json_t *o;

	hours_options(r, c, options);
	o = json_pack("{s:s,s:s,s:I,s:I,s:f,s:f,s:i}", "recipe", r->recipe->name, "options",
		      options, "iterations", (json_int_t)r->iterations, "grows_at",
		      (json_int_t)r->grows_at, "first_s", r->first_s, "then_s", r->then_s, "moves",
		      r->moves);
	if (o && r->tokens_per_weight > 0)
		json_object_set_new(o, "tokens_per_weight", json_real(r->tokens_per_weight));
	if (o && !isnan(r->change))
		json_object_set_new(o, "loss_change", json_real(r->change));
	return o;
}

char *hours_json(const struct hours_row rows[RECIPES], const struct cluster *c, double hours)
{
	json_t *list = json_array(), *root;
	char *text;

	for (int i = 0; i < RECIPES; i++)
		json_array_append_new(list, row_to_json(&rows[i], c));
	root = json_pack("{s:s,s:f,s:o}", "format", "skippipe.hours/1", "hours", hours, "recipes",
			 list);
	text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
	json_decref(root);
	return text;
}
