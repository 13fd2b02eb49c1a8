/* skippipe plan: searches plans for a cluster, and writes them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/process/output.h"
#include "base/skip_schedule.h"
#include "model/shape.h"
#include "schedule/format/plan.h"
#include "planner/commands.h"
#include "planner/hours_format.h"
#include "planner/plan_options.h"
#include "schedule/search/phase_plans.h"

static bool parse_without(const char *list, int n_nodes, bool *excluded)
{
	char *end;

	for (const char *at = list;; at = end + 1) {
		long node = strtol(at, &end, 10);

		if (end == at || (*end && *end != ',') || node < 0 || node >= n_nodes)
			return false;
		excluded[node] = true;
		if (!*end)
			return true;
	}
}

/* Writes the text to the file `path`, and frees the text. If path is NULL or "-", writes to
 * standard output. If writing fails, no partial file is left. If the text is NULL because memory
 * ran out, prints an error. Returns the exit status. */
static int write_text(char *text, const char *path)
{
	struct error err = { "out of memory" };
	int rc = text ? 0 : -ENOMEM;

	if (rc == 0 && path && strcmp(path, "-") != 0) {
		rc = file_write(path, text, strlen(text), FILE_RESULT, &err);
	} else if (rc == 0) {
		puts(text);
		rc = output_flush(&err);
	}
	free(text);
	return rc == 0 ? DONE : program_fail(&err, FAILED);
}

static void show_progress(void *arg, const struct plan *plan)
{
	(void)arg;
	fprintf(stderr, "\r%8.3f s  iteration %.3f s  sync %.3f s  bound %.3f s ",
		plan->search.elapsed_s, plan->predicted.iteration_s, plan->predicted.sync_s,
		plan->predicted.lower_bound_s);
}

static void show_share(void *arg, double done)
{
	(void)arg;
	fprintf(stderr, "\r%3.0f%%", 100 * done);
}

static int report_no_plan(int rc, const struct error *err)
{
	if (rc != PLAN_INFEASIBLE && rc != PLAN_NOT_FOUND)
		return program_fail(err, FAILED);
	fprintf(stderr, "skippipe: %s: %s\n",
		rc == PLAN_INFEASIBLE ? "infeasible" : "no plan found", err->text);
	return BROKEN;
}

/* Reads the skip schedule that --skip-schedule or --recipe gives. */
static int read_schedule(struct cluster *c, struct plan_options *o, struct skip_schedule *out,
			 struct error *err)
{
	char recipe[SKIP_SCHEDULE_RECIPE];

	if (o->recipe) {
		c->always |= (stage_set)1 << (c->n_stages - 1);
		o->stack = true;
		o->request.ascending = true;
		if (skip_schedule_of_recipe(recipe, o->recipe, (uint32_t)cluster_most_skipped(c),
					    err) != 0)
			return -EINVAL;
	}
	return skip_schedule_parse(out, o->recipe ? recipe : o->schedule, (uint64_t)o->iterations,
				   (uint32_t)cluster_most_skipped(c), err);
}

/* Makes a plan for every phase of a run's skip schedule. */
static int plan_phases(struct cluster *c, struct plan_options *o)
{
	struct skip_schedule schedule;
	struct phase_plans plans;
	struct error err = { "" };
	struct phase_plans_request q = {
		.schedule = &schedule,
		.iterations = (uint64_t)o->iterations,
		.state_ratio = phase_plans_state_ratio(tensor_format_sum_share(o->wires.sums)),
	};
	int rc;

	if (read_schedule(c, o, &schedule, &err) != 0)
		return program_fail(&err, USAGE);
	q.search = o->request;
	q.stack = o->stack;
	rc = phase_plans_choose(c, &q, &plans, &err);
	if (rc != 0)
		return report_no_plan(rc, &err);
	rc = write_text(o->as_table ? phase_plans_table(&plans) : phase_plans_format(&plans),
			o->output);
	phase_plans_fini(&plans);
	return rc;
}

/* Compares how many iterations and which loss each recipe reaches in a given time. */
static int compare_hours(const struct cluster *c, struct plan_options *o)
{
	bool as_json = o->has_format && !o->as_table, progress = isatty(STDERR_FILENO);
	struct hours_request q = {
		.search = o->request,
		.seconds = o->hours * 3600,
		.state_ratio = phase_plans_state_ratio(tensor_format_sum_share(o->wires.sums)),
		.on_progress = progress ? show_share : NULL,
	};
	struct hours_row rows[RECIPES];
	struct hyperparameters hyper;
	struct model_config model;
	struct model_shape shape;
	struct error err = { "" };
	int rc;

	if (o->model) {
		if (program_read_model(o->model, &model, &hyper, &err) != 0)
			return program_fail(&err, FAILED);
		model_shape_of(&model, &hyper, &shape);
		q.shape = &shape;
	}
	rc = hours_compare(c, &q, rows, &err);
	if (progress)
		fputc('\n', stderr);
	if (rc != 0)
		return report_no_plan(rc, &err);
	return write_text(as_json ? hours_json(rows, c, o->hours) : hours_table(rows, c, o->hours),
			  o->output);
}

/* Checks the options about stages against the cluster, and searches. */
static int search_and_write(struct cluster *c, struct plan_options *o)
{
	struct plan_request *q = &o->request;
	struct plan *plan = NULL;
	struct error err = { "" };
	bool progress = isatty(STDERR_FILENO);
	uint32_t share, skip;
	int rc;

	if (o->stages && o->stages != c->n_stages) {
		error_set(&err, 0, "--skip %d/%d: the cluster has %d stages", o->skip, o->stages,
			  c->n_stages);
		return program_fail(&err, USAGE);
	}
	if (o->always && !stage_set_parse(o->always, c->n_stages, &c->always)) {
		error_set(&err, 0, "--always %s: expected stages below %d, as 0,%d", o->always,
			  c->n_stages, c->n_stages - 1);
		return program_fail(&err, USAGE);
	}
	if (o->skip > cluster_most_skipped(c)) {
		error_set(&err, 0, "--skip %d: only %d of the cluster's %d stages may be skipped",
			  o->skip, cluster_most_skipped(c), c->n_stages);
		return program_fail(&err, USAGE);
	}
	if (q->path_length > c->n_stages) {
		error_set(&err, 0, "--path-length %d: the cluster has only %d stages",
			  q->path_length, c->n_stages);
		return program_fail(&err, USAGE);
	}
	if (o->skip_share) {
		if (skip_share_parse("--skip-share", o->skip_share,
				     (uint32_t)cluster_most_skipped(c), &share, &skip, &err) != 0)
			return program_fail(&err, USAGE);
		o->skip = (int)skip;
		q->skip_share = (int)share;
	}
	if (o->hours > 0)
		return compare_hours(c, o);
	if (o->schedule || o->recipe)
		return plan_phases(c, o);
	if (o->skip >= 0)
		q->path_length = c->n_stages - o->skip;
	if (progress)
		q->on_improvement = show_progress;
	rc = plan_search(c, q, &plan, &err);
	if (progress)
		fputc('\n', stderr);
	if (rc != 0)
		return report_no_plan(rc, &err);
	rc = write_text(plan_format(plan), o->output);
	plan_free(plan);
	return rc;
}

int command_plan(int argc, char **argv)
{
	struct plan_options o;
	struct cluster *c = NULL;
	struct plan *from = NULL;
	bool *excluded = NULL;
	struct error err = { "" };
	int status = plan_options_parse(&o, argc, argv);

	if (status != 0)
		return status < 0 ? DONE : status;
	if ((o.output && file_refuse_input("-o", o.output, o.cluster, &err) != 0) ||
	    program_read_cluster(o.cluster, &o.wires, &c, &err) != 0)
		return program_fail(&err, FAILED);
	if (o.from && plan_read(o.from, &from, &err) != 0) {
		status = program_fail(&err, FAILED);
		goto free_cluster;
	}
	if (o.without) {
		excluded = alloc_array((size_t)c->n_nodes, sizeof(*excluded));
		if (!parse_without(o.without, c->n_nodes, excluded)) {
			error_set(&err, 0,
				  "--without %.60s: expected node ids below %d, with commas",
				  o.without, c->n_nodes);
			status = program_fail(&err, USAGE);
			goto free_excluded;
		}
	}
	o.request.from = from;
	o.request.excluded = excluded;
	status = search_and_write(c, &o);
free_excluded:
	free(excluded);
	plan_free(from);
free_cluster:
	cluster_free(c);
	return status;
}
