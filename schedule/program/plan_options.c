/* Reads the command line of `plan`: single options first, then their combinations. */
#include "schedule/program/plan_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process/cgroup.h"

enum {
	SKIP = 256,
	SKIP_SHARE,
	LENGTH,
	ALGORITHM,
	BUDGET,
	EVALUATIONS,
	SEED,
	THREADS,
	ALWAYS,
	ASSIGNMENT,
	FROM,
	WITHOUT,
	KEEP_BATCH,
	NO_SWAPS,
	OVERLAP_SYNC,
	SYNC_LIMIT,
	WIRE,
	SUM_WIRE,
	SKIP_SCHEDULE,
	RECIPE,
	ITERATIONS,
	STACK,
	FORMAT
};

static const struct option plan_long[] = {
	{ "skip", required_argument, NULL, SKIP },
	{ "skip-share", required_argument, NULL, SKIP_SHARE },
	{ "path-length", required_argument, NULL, LENGTH },
	{ "algorithm", required_argument, NULL, ALGORITHM },
	{ "always", required_argument, NULL, ALWAYS },
	{ "budget", required_argument, NULL, BUDGET },
	{ "evaluations", required_argument, NULL, EVALUATIONS },
	{ "seed", required_argument, NULL, SEED },
	{ "threads", required_argument, NULL, THREADS },
	{ "assignment", required_argument, NULL, ASSIGNMENT },
	{ "from", required_argument, NULL, FROM },
	{ "without", required_argument, NULL, WITHOUT },
	{ "keep-batch", no_argument, NULL, KEEP_BATCH },
	{ "no-swaps", no_argument, NULL, NO_SWAPS },
	{ "overlap-sync", no_argument, NULL, OVERLAP_SYNC },
	{ "sync-limit", required_argument, NULL, SYNC_LIMIT },
	{ "wire", required_argument, NULL, WIRE },
	{ "sum-wire", required_argument, NULL, SUM_WIRE },
	{ "skip-schedule", required_argument, NULL, SKIP_SCHEDULE },
	{ "recipe", required_argument, NULL, RECIPE },
	{ "iterations", required_argument, NULL, ITERATIONS },
	{ "stack", no_argument, NULL, STACK },
	{ "format", required_argument, NULL, FORMAT },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int64_t read_clock(void *arg)
{
	(void)arg;
	return clock_monotonic_us();
}

static bool parse_long(const char *text, long least, long most, long *out)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < least || v > most)
		return false;
	*out = v;
	return true;
}

/* Parses K or K/STAGES. */
static bool parse_skip(struct plan_options *o, const char *text)
{
	char *end;
	long k, stages = 0;

	errno = 0;
	k = strtol(text, &end, 10);
	if (errno || end == text || (*end && *end != '/') || k < 0 || k > CLUSTER_MOST_STAGES)
		return false;
	if (*end && !parse_long(end + 1, 1, CLUSTER_MOST_STAGES, &stages))
		return false;
	o->skip = (int)k;
	o->stages = (int)stages;
	return true;
}

/* Takes an option about the phases of a run. Returns NULL, or the error. */
static const char *take_phase_option(struct plan_options *o, int option)
{
	switch (option) {
	case SKIP_SCHEDULE:
		o->schedule = optarg;
		return NULL;
	case RECIPE:
		o->recipe = optarg;
		return NULL;
	case ITERATIONS:
		return parse_long(optarg, 1, 1000000000, &o->iterations)
			? NULL : "--iterations: expected a number, 1 or more";
	case STACK:
		o->stack = true;
		return NULL;
	default:
		return program_parse_choice(optarg, "text", "json", &o->as_table)
			? NULL : "--format: expected text or json";
	}
}

/* Returns NULL, or the error if options about the phases of a run do not fit the others. */
static const char *check_phase_options(const struct plan_options *o)
{
	const struct plan_request *q = &o->request;

	if (!o->schedule && !o->recipe)
		return o->iterations > 0 || o->stack || o->as_table
			? "--iterations, --stack and --format need --skip-schedule or --recipe"
			: NULL;
	if (o->schedule && o->recipe)
		return "--skip-schedule and --recipe exclude each other";
	if (o->iterations == 0)
		return "--skip-schedule and --recipe need --iterations";
	if (o->skip >= 0 || q->path_length > 0 || o->from || o->without || q->sync_limit_s > 0 ||
	    q->algorithm != PLAN_BEST)
		return "--skip-schedule and --recipe exclude --skip, --path-length, --from, "
		       "--without, --sync-limit and other algorithms than best";
	return NULL;
}

static bool parse_seconds(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && !*end && *out > 0 && *out < 1e9;
}

/* Takes an option about the search. Returns NULL, or the error if it is not valid. */
static const char *take_search_option(struct plan_options *o, int option)
{
	struct plan_request *q = &o->request;
	long v;

	switch (option) {
	case ALGORITHM:
		return plan_algorithm_named(optarg, &q->algorithm)
			? NULL : "--algorithm: expected best, cbs, no-tc2, dtfm or dtfm-skip";
	case BUDGET:
		return parse_seconds(optarg, &q->budget_s)
			? NULL : "--budget: expected seconds, more than 0";
	case EVALUATIONS:
		if (!parse_long(optarg, 1, INT64_MAX / 2, &v))
			return "--evaluations: expected a number, 1 or more";
		q->evaluations = v;
		return NULL;
	case SEED:
		if (!parse_long(optarg, 0, INT64_MAX, &v))
			return "--seed: expected a whole number, 0 or more";
		q->seed = (uint64_t)v;
		return NULL;
	case THREADS:
		if (!parse_long(optarg, 1, 1024, &v))
			return "--threads: expected a number from 1 to 1024";
		q->threads = (int)v;
		return NULL;
	default: /* SYNC_LIMIT */
		return parse_seconds(optarg, &q->sync_limit_s)
			? NULL : "--sync-limit: expected seconds, more than 0";
	}
}

/* Returns NULL, or the error if the option is not valid. */
static const char *take_plan_option(struct plan_options *o, int option)
{
	struct plan_request *q = &o->request;
	long v;

	switch (option) {
	case SKIP:
		if (q->path_length > 0 || !parse_skip(o, optarg))
			return "--skip: expected a number of stages, as 2 or 2/6, and no "
			       "--path-length";
		return NULL;
	case SKIP_SHARE:
		o->skip_share = optarg;
		return NULL;
	case LENGTH:
		if (!parse_long(optarg, 1, CLUSTER_MOST_STAGES, &v) || o->skip >= 0)
			return "--path-length: expected a number of stages, and no --skip";
		q->path_length = (int)v;
		return NULL;
	case ALWAYS:
		o->always = optarg;
		return NULL;
	case ALGORITHM:
	case BUDGET:
	case EVALUATIONS:
	case SEED:
	case THREADS:
	case SYNC_LIMIT:
		return take_search_option(o, option);
	case ASSIGNMENT:
		return program_parse_choice(optarg, "free", "given", &q->free_assignment)
			? NULL : "--assignment: expected free or given";
	case FROM:
		o->from = optarg;
		return NULL;
	case WITHOUT:
		o->without = optarg;
		return NULL;
	case KEEP_BATCH:
		q->keep_batch = true;
		return NULL;
	case NO_SWAPS:
		q->ascending = true;
		return NULL;
	case OVERLAP_SYNC:
		q->overlap_sync = true;
		return NULL;
	case WIRE:
		return wires_take_activations(&o->wires, optarg);
	case SUM_WIRE:
		return wires_take_sums(&o->wires, optarg);
	case SKIP_SCHEDULE:
	case RECIPE:
	case ITERATIONS:
	case STACK:
	case FORMAT:
		return take_phase_option(o, option);
	case 'o':
		o->output = optarg;
		return NULL;
	default:
		return "plan: an unknown option, or an option without its value";
	}
}

int plan_options_parse(struct plan_options *o, int argc, char **argv)
{
	int option;

	*o = (struct plan_options){ .skip = -1 };
	plan_request_init(&o->request);
	o->request.clock_us = read_clock;
	o->request.threads = (int)cores_usable();
	opterr = 0;
	while ((option = getopt_long(argc, argv, "o:h", plan_long, NULL)) != -1) {
		const char *why;

		if (option == 'h') {
			fputs(program_help, stdout);
			return -1;
		}
		why = take_plan_option(o, option);
		if (why)
			return program_refuse(why);
	}
	if (argc - optind != 1)
		return program_refuse("plan: expected one cluster file");
	if (o->skip_share && (o->skip >= 0 || o->request.path_length > 0))
		return program_refuse("--skip-share, --skip and --path-length exclude one another");
	if (o->request.budget_s > 0 && o->request.evaluations > 0)
		return program_refuse("--budget and --evaluations exclude each other");
	if (o->request.sync_limit_s > 0 && !o->request.free_assignment)
		return program_refuse("--sync-limit: only with --assignment free");
	if (o->request.sync_limit_s > 0 && o->request.algorithm != PLAN_BEST)
		return program_refuse("--sync-limit: only with --algorithm best");
	if (check_phase_options(o))
		return program_refuse(check_phase_options(o));
	if (o->request.evaluations <= 0 && o->request.budget_s <= 0)
		o->request.budget_s = 1;
	o->cluster = argv[optind];
	return 0;
}
