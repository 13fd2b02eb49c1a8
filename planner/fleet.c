/* skippipe plan --fleet: chooses how a fleet trains a model, and writes its cluster and plan. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/process/installed.h"
#include "base/process/output.h"
#include "model/config.h"
#include "model/shape.h"
#include "planner/commands.h"
#include "planner/fleet_options.h"
#include "schedule/fleet/choice_format.h"
#include "schedule/format/request.h"

enum { LEAST_BATCH = 48 };

static int read_facts(const struct fleet_options *o, struct cards **cards, struct regions **regions,
		      struct error *err)
{
	char path[4096];
	int rc;

	installed_path("cards.json", "deploy/cards.json", path, sizeof(path));
	rc = cards_read(o->cards ? o->cards : path, cards, err);
	if (rc != 0)
		return rc;
	installed_path("regions.json", "deploy/regions.json", path, sizeof(path));
	return regions_read(o->regions ? o->regions : path, regions, err);
}

static void show_progress(void *arg, double done, const struct candidate *best)
{
	(void)arg;
	fprintf(stderr, "\r%3.0f%%", 100 * done);
	if (best && isfinite(best->seconds))
		fprintf(stderr, "  best so far: %d stages, %.3f s an iteration ", best->n_stages,
			best->seconds);
}

/* Without --batch, an iteration has 48 microbatches of the configured size. This number is
 * doubled until there is a microbatch for each card. */
static int default_batch(const struct fleet *fleet, const struct model_shape *shape)
{
	int microbatches = LEAST_BATCH;

	while (microbatches < fleet->n_nodes)
		microbatches *= 2;
	return microbatches * shape->batch;
}

/* Writes the path of the plan's file, which is next to the cluster's file: cluster.plan.json for
 * cluster.json. */
static void name_plan(char *out, size_t room, const char *cluster)
{
	const char *name = strrchr(cluster, '/'), *dot = strrchr(name ? name : cluster, '.');
	int length = dot ? (int)(dot - cluster) : (int)strlen(cluster);

	snprintf(out, room, "%.*s.plan%s", length, cluster, dot ? dot : "");
}

/* Writes the text to a file and frees the text. If the text is NULL because memory ran out, returns
 * an error. */
static int write_text(char *text, const char *path, struct error *err)
{
	int rc = text ? file_write(path, text, strlen(text), FILE_RESULT, err)
		      : error_set(err, -ENOMEM, "out of memory");

	free(text);
	return rc;
}

static int write_best(const struct choice *c, const struct fleet_options *o, struct error *err)
{
	char path[4096];
	int rc = write_text(candidate_cluster_text(&c->list[0], &o->request.frame), o->output, err);

	if (rc != 0)
		return rc;
	name_plan(path, sizeof(path), o->output);
	return write_text(plan_format(c->list[0].plan), path, err);
}

/* Prints the command `skippipe rehearse` with which the operator can try the choice without
 * GPUs. */
static void print_use(const struct choice *c, const struct fleet_options *o)
{
	const struct candidate *best = &c->list[0];
	const struct candidate_frame *f = &o->request.frame;

	fprintf(stderr, "skippipe rehearse --cluster %s --model %s --cut ", o->output, o->model);
	for (int s = 0; s < best->n_stages; s++)
		fprintf(stderr, "%s%d", s ? "," : "", best->layers[s]);
	fprintf(stderr, " --batch %d --assignment given --skip %d --wire %s --sum-wire %s\n",
		best->sequences, candidate_skip(f, best->n_stages),
		tensor_format_name(best->formats.wire), tensor_format_name(best->formats.sum_wire));
}

static int print_and_write(const struct choice *c, const struct fleet_options *o, struct error *err)
{
	const struct choose_request *q = &o->request;
	double tokens = (double)o->iterations * q->frame.batch * q->frame.shape->tokens;
	char *text = o->as_json ? choice_json(c, q, tokens) : choice_table(c, q, tokens);
	int rc = 0;

	if (!text)
		return error_set(err, -ENOMEM, "out of memory");
	fputs(text, stdout);
	if (o->as_json)
		fputc('\n', stdout);
	free(text);
	rc = output_flush(err);
	if (rc == 0 && o->output)
		rc = write_best(c, o, err);
	if (rc == 0 && o->output)
		print_use(c, o);
	return rc;
}

static int choose_and_write(struct fleet_options *o, struct error *err)
{
	bool progress = isatty(STDERR_FILENO);
	struct choice choice;
	int rc;

	if (progress)
		o->request.on_progress = show_progress;
	rc = choose(&o->request, &choice, err);
	if (progress)
		fputc('\n', stderr);
	if (rc != 0)
		return rc;
	rc = print_and_write(&choice, o, err);
	choice_fini(&choice);
	return rc;
}

static int run(struct fleet_options *o, struct error *err)
{
	struct model_config config;
	struct hyperparameters hyper;
	struct model_shape shape;
	struct fleet_facts facts = { .shape = &shape };
	struct cards *cards = NULL;
	struct regions *regions = NULL;
	struct fleet *fleet = NULL;
	int rc = program_read_model(o->model, &config, &hyper, err);

	if (rc == 0)
		rc = read_facts(o, &cards, &regions, err);
	if (rc == 0) {
		model_shape_of(&config, &hyper, &shape);
		facts.cards = cards;
		facts.regions = regions;
		rc = fleet_read(o->fleet, &facts, &fleet, err);
	}
	if (rc == 0) {
		o->request.frame.fleet = fleet;
		o->request.frame.shape = &shape;
		o->request.frame.batch = o->batch ? o->batch : default_batch(fleet, &shape);
		o->request.frame.formats =
			(struct tensor_formats){ o->wires.activations, o->wires.sums };
		rc = choose_and_write(o, err);
	}
	fleet_free(fleet);
	regions_free(regions);
	cards_free(cards);
	return rc;
}

/* Refuses -o FILE if the output would overwrite an input: the cluster, or the plan next to the
 * cluster. */
static int refuse_inputs(const struct fleet_options *o, struct error *err)
{
	const char *const inputs[] = { o->fleet, o->model, o->cards, o->regions };
	char plan[4096];
	int rc = 0;

	name_plan(plan, sizeof(plan), o->output);
	for (size_t i = 0; rc == 0 && i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		if (!inputs[i])
			continue;
		rc = file_refuse_input("-o", o->output, inputs[i], err);
		if (rc == 0)
			rc = file_refuse_input("the plan of -o", plan, inputs[i], err);
	}
	return rc;
}

int command_fleet(int argc, char **argv)
{
	struct fleet_options o;
	struct error err = { "" };
	int status = fleet_options_parse(&o, argc, argv), rc;

	if (status != 0)
		return status < 0 ? DONE : status;
	if (o.output && refuse_inputs(&o, &err) != 0)
		return program_fail(&err, FAILED);
	rc = run(&o, &err);
	if (rc == 0)
		return DONE;
	return program_fail(&err, rc > 0 ? BROKEN : FAILED);
}
