/* Reads the command line of `plan --fleet`. */
#include "planner/fleet_options.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process/cgroup.h"

bool fleet_options_given(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--fleet") == 0 || strncmp(argv[i], "--fleet=", 8) == 0)
			return true;
	return false;
}

static int64_t read_clock(void *arg)
{
	(void)arg;
	return clock_monotonic_us();
}

static int take_positive(double *to, const char *name, const char *text, struct error *err)
{
	char *end;

	*to = strtod(text, &end);
	if (end != text && !*end && *to > 0 && *to < 1e12)
		return 0;
	return error_set(err, -EINVAL, "--%s: expected a number, more than 0, got \"%s\"", name,
			 text);
}

static int take_budget(void *options, const char *text, struct error *err)
{
	struct fleet_options *o = options;

	return take_positive(&o->request.budget_s, "budget", text, err);
}

static int take_most_per_hour(void *options, const char *text, struct error *err)
{
	struct fleet_options *o = options;

	return take_positive(&o->request.aim.most_per_hour, "most-per-hour", text, err);
}

/* Parses K/S: microbatches skip K of every S stages. */
static int take_skip(void *options, const char *text, struct error *err)
{
	struct candidate_frame *f = &((struct fleet_options *)options)->request.frame;
	char *slash, *end = NULL;
	long k = strtol(text, &slash, 10), s = *slash == '/' ? strtol(slash + 1, &end, 10) : 0;

	if (slash == text || !end || *end || s < 1 || s > CLUSTER_MOST_STAGES || k < 0 || k >= s)
		return error_set(err, -EINVAL,
				 "--skip: with --fleet expected a share of the stages, as 1/3, got "
				 "\"%s\"",
				 text);
	f->skip = (int)k;
	f->of_stages = (int)s;
	return 0;
}

static int take_activations(void *options, const char *text, struct error *err)
{
	return wires_take_activations(&((struct fleet_options *)options)->wires, text, err);
}

static int take_sums(void *options, const char *text, struct error *err)
{
	return wires_take_sums(&((struct fleet_options *)options)->wires, text, err);
}

static const char *const aims[] = { "time", "cost", NULL };
static const char *const formats[] = { "text", "json", NULL };

#define AT(field) .at = offsetof(struct fleet_options, field)
#define LIMITS(least_, most_) .least = (least_), .most = (most_)
static const struct options_row rows[] = {
	{ "fleet", OPTIONS_TEXT, "FILE", AT(fleet),
	  .help = "machines: skippipe.fleet/1, or the cluster.json of a measurement" },
	{ "model", OPTIONS_TEXT, "NAME|FILE", AT(model), .help = "preset or skippipe.model/1" },
	{ "minimise", OPTIONS_SECOND, "time|cost", AT(request.aim.by_price), .words = aims,
	  .help = "least time, or least price of a token [time]" },
	{ "most-per-hour", OPTIONS_PARSED, "PRICE", .parse = take_most_per_hour,
	  .help = "limit of the price of all machines in use" },
	{ "batch", OPTIONS_INT, "SEQUENCES", AT(batch), LIMITS(1, 1000000),
	  .help = "sequences of an iteration [48 microbatches, doubled until each card has one]" },
	{ "stages", OPTIONS_INT, "N", AT(request.n_stages), LIMITS(1, CLUSTER_MOST_STAGES),
	  .help = "number of stages [the best]" },
	{ "skip", OPTIONS_PARSED, "K/S", .parse = take_skip,
	  .help = "of every S stages a microbatch skips K [none]" },
	{ "wire", OPTIONS_PARSED, "fp32|bf16|q8|q6", .parse = take_activations,
	  .help = "coarsest format that activations may have; a more exact one is chosen if it "
		  "costs at most 1% [q8]" },
	{ "sum-wire", OPTIONS_PARSED, "fp32|q8|q6|q4", .parse = take_sums,
	  .help = "coarsest format that sums of gradients may have [q6]" },
	{ "baselines", OPTIONS_FLAG, AT(request.has_baselines),
	  .help = "also plan equal cuts, and equal cuts allocated by DT-FM" },
	{ "iterations", OPTIONS_INT, "N", AT(iterations), LIMITS(1, 1000000000),
	  .help = "iterations of the run, for its price" },
	{ "budget", OPTIONS_PARSED, "SECONDS", .parse = take_budget,
	  .help = "end the search after this time [by the size of the fleet]" },
	{ "seed", OPTIONS_U64, "N", AT(request.frame.seed), LIMITS(0, (double)INT64_MAX),
	  .help = "seed of the random numbers [1]" },
	{ "threads", OPTIONS_INT, "N", AT(request.threads), LIMITS(1, 1024),
	  .help = "[the cores of this machine]" },
	{ "cards", OPTIONS_TEXT, "FILE", AT(cards), .help = "another table of cards" },
	{ "regions", OPTIONS_TEXT, "FILE", AT(regions), .help = "other measured regions" },
	{ "format", OPTIONS_SECOND, "text|json", AT(as_json), .words = formats,
	  .help = "format of the answer on standard output [text]" },
	{ "output", OPTIONS_TEXT, "cluster.json", AT(output), .letter = 'o',
	  .help = "write the best candidate's cluster to this file, and its plan to "
		  "cluster.plan.json beside it" },
	{ "help", OPTIONS_HELP, .help = "print this help" },
};
#undef AT
#undef LIMITS

const struct options_table options_of_fleet = {
	rows, sizeof(rows) / sizeof(rows[0]),
	.intro = "usage: skippipe plan --fleet FILE --model NAME|FILE [options]\n"
		 "\n"
		 "Chooses how machines train a model: the number of stages, the layers and nodes\n"
		 "of each, the nodes that are left out, the microbatches, and where blocks are\n"
		 "recomputed. Prints the candidates (docs/fleets.md).\n"
		 "\n",
	.end = PROGRAM_EXIT_STATUS
};

int fleet_options_parse(struct fleet_options *o, int argc, char **argv)
{
	struct error err = { "" };
	int rc;

	*o = (struct fleet_options){ .wires = { FORMAT_Q8, FORMAT_Q6 } };
	o->request = (struct choose_request){
		.frame = { .of_stages = 1, .seed = 1 },
		.aim = { .most_per_hour = INFINITY },
		.threads = (int)cores_usable(),
		.clock_us = read_clock,
	};
	rc = options_read(&options_of_fleet, o, argc, argv, NULL, &err);
	if (rc > 0) {
		options_help(&options_of_fleet, stdout);
		return -1;
	}
	if (rc == 0 && !o->model)
		rc = error_set(&err, -EINVAL, "plan --fleet: expected --model NAME");
	return rc == 0 ? 0 : program_refuse(&options_of_fleet, err.text);
}
