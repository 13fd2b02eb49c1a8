/* The plans of a run's phases as JSON (`skippipe.phases/1`, docs/formats.md) and as a table. */
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/alloc.h"
#include "schedule/search/phase_plans.h"

static int replicas_of(const struct plan *p, int stage)
{
	return p->stage_start[stage + 1] - p->stage_start[stage];
}

/* Returns NULL if memory runs out. */
static json_t *phase_to_json(const struct phase_plan *p)
{
	char *text = plan_format(p->plan);
	json_t *plan = text ? json_loads(text, 0, NULL) : NULL, *replicas = json_array(), *o;

	for (int s = 0; s < p->plan->n_stages; s++)
		json_array_append_new(replicas, json_integer(replicas_of(p->plan, s)));
	free(text);
	o = json_pack("{s:I,s:I,s:i,s:o,s:i,s:f,s:i,s:f,s:f,s:o}", "from", (json_int_t)p->from,
		      "iterations", (json_int_t)p->iterations, "skip", (int)p->skip, "replicas",
		      replicas, "microbatches_per_data_node", p->microbatches_per_data_node,
		      "seconds", p->seconds, "moves", p->moves, "fetch_s", p->fetch_s, "delay_s",
		      p->delay_s, "plan", plan);
	if (o && p->share > 0)
		json_object_set_new(o, "skip_share", json_integer(p->share));
	return o;
}

static json_t *list_to_json(const struct phase_plan_list *l)
{
	json_t *phases = json_array();

	for (int k = 0; k < l->n; k++) {
		if (json_array_append_new(phases, phase_to_json(&l->phases[k])) != 0) {
			json_decref(phases);
			return NULL;
		}
	}
	return json_pack("{s:f,s:o}", "total_s", l->total_s, "phases", phases);
}

char *phase_plans_format(const struct phase_plans *p)
{
	json_t *root = json_pack("{s:s,s:o,s:o}", "format", "skippipe.phases/1", "without_moves",
				 list_to_json(&p->without_moves), "with_moves",
				 list_to_json(&p->with_moves));
	char *text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;

	json_decref(root);
	return text;
}

static void print_list(FILE *f, const char *title, const struct phase_plan_list *l)
{
	fprintf(f, "%s: %.1f s\n%16s %5s %12s %6s %9s %9s  nodes of each stage\n", title,
		l->total_s, "iterations", "skip", "s/iteration", "moves", "fetch s", "delay s");
	for (int k = 0; k < l->n; k++) {
		const struct phase_plan *p = &l->phases[k];
		char range[48], ratio[32];

		snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)p->from,
			 (unsigned long long)(p->from + p->iterations - 1));
		snprintf(ratio, sizeof(ratio), p->share > 0 ? "%u %u%%" : "%u", p->skip, p->share);
		fprintf(f, "%16s %5s %12.2f %6d %9.1f %9.1f ", range, ratio, p->seconds, p->moves,
			p->fetch_s, p->delay_s);
		for (int s = 0; s < p->plan->n_stages; s++)
			fprintf(f, " %d", replicas_of(p->plan, s));
		fputc('\n', f);
	}
}

char *phase_plans_table(const struct phase_plans *p)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		alloc_failed(1, 1);
	print_list(f, "one allocation for all phases", &p->without_moves);
	print_list(f, "an allocation for each phase", &p->with_moves);
	fclose(f);
	return text;
}
