/* Reads the command line of `plan`: single options first, then their combinations. */
#include "planner/plan_options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process/cgroup.h"
#include "base/process/options.h"

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

/* Returns true if the command line has an option that --hours, --skip-schedule and --recipe
 * exclude. */
static bool has_plain_options(const struct plan_options *o)
{
	const struct plan_request *q = &o->request;

	return o->skip >= 0 || o->skip_share || q->path_length > 0 || o->from || o->without ||
	       q->sync_limit_s > 0 || q->algorithm != PLAN_BEST;
}

static const char *check_hours_options(const struct plan_options *o)
{
	if (o->schedule || o->recipe || o->iterations > 0 || o->stack || has_plain_options(o))
		return "--hours excludes --skip-schedule, --recipe, --iterations, --stack, --skip, "
		       "--skip-share, --path-length, --from, --without, --sync-limit and other "
		       "algorithms than best";
	return NULL;
}

/* Returns NULL, or the error if options for the phases of a run do not fit the other options. */
static const char *check_phase_options(const struct plan_options *o)
{
	if (o->hours > 0)
		return check_hours_options(o);
	if (o->model)
		return "--model needs --hours or --fleet";
	if (!o->schedule && !o->recipe)
		return o->iterations > 0 || o->stack || o->has_format
			? "--iterations, --stack and --format need --skip-schedule or --recipe"
			: NULL;
	if (o->schedule && o->recipe)
		return "--skip-schedule and --recipe exclude each other";
	if (o->iterations == 0)
		return "--skip-schedule and --recipe need --iterations";
	if (has_plain_options(o))
		return "--skip-schedule and --recipe exclude --skip, --skip-share, --path-length, "
		       "--from, --without, --sync-limit and other algorithms than best";
	return NULL;
}

static int take_seconds(double *to, const char *name, const char *text, struct error *err)
{
	char *end;

	*to = strtod(text, &end);
	if (end != text && !*end && *to > 0 && *to < 1e9)
		return 0;
	return error_set(err, -EINVAL, "--%s: expected seconds, more than 0, got \"%s\"", name,
			 text);
}

static int take_budget(void *options, const char *text, struct error *err)
{
	struct plan_options *o = options;

	return take_seconds(&o->request.budget_s, "budget", text, err);
}

static int take_sync_limit(void *options, const char *text, struct error *err)
{
	struct plan_options *o = options;

	return take_seconds(&o->request.sync_limit_s, "sync-limit", text, err);
}

static int take_skip(void *options, const char *text, struct error *err)
{
	return parse_skip(options, text)
		       ? 0
		       : error_set(err, -EINVAL,
				   "--skip: expected a number of stages, as 2 or 2/6, got \"%s\"",
				   text);
}

static int take_algorithm(void *options, const char *text, struct error *err)
{
	struct plan_options *o = options;

	return plan_algorithm_named(text, &o->request.algorithm)
		       ? 0
		       : error_set(err, -EINVAL,
				   "--algorithm: expected best, cbs, no-tc2, dtfm or dtfm-skip, "
				   "got \"%s\"",
				   text);
}

static int take_activations(void *options, const char *text, struct error *err)
{
	struct plan_options *o = options;

	return wires_take_activations(&o->wires, text, err);
}

static int take_sums(void *options, const char *text, struct error *err)
{
	struct plan_options *o = options;

	return wires_take_sums(&o->wires, text, err);
}

static const char *const assignments[] = { "given", "free", NULL };
static const char *const formats[] = { "json", "text", NULL };

#define AT(field) .at = offsetof(struct plan_options, field)
#define LIMITS(least_, most_) .least = (least_), .most = (most_)
static const struct options_row rows[] = {
	{ "skip", OPTIONS_PARSED, "K[/S]", .parse = take_skip,
	  .help = "every microbatch skips K stages [a third of the stages]" },
	{ "skip-share", OPTIONS_TEXT, "S%:K", AT(skip_share),
	  .help = "as 30%:2: 30% of each data node's microbatches, rounded to the nearest number, "
		  "skip 2 stages; the rest visit all stages" },
	{ "path-length", OPTIONS_INT, "L", AT(request.path_length), LIMITS(1, CLUSTER_MOST_STAGES),
	  .help = "every microbatch visits L stages" },
	{ "always", OPTIONS_TEXT, "STAGE,...", AT(always),
	  .help = "stages that every microbatch visits, beside stage 0 and those that CLUSTER "
		  "names (always_visited)" },
	{ "no-swaps", OPTIONS_FLAG, AT(request.ascending),
	  .help = "paths visit stages in ascending order" },
	{ "assignment", OPTIONS_SECOND, "free|given", AT(request.free_assignment),
	  .words = assignments,
	  .help = "given: nodes with a stage in CLUSTER keep it. A free assignment minimises the "
		  "iteration plus its sums of gradients [given]" },
	{ "sync-limit", OPTIONS_PARSED, "SECONDS", .parse = take_sync_limit,
	  .help = "a free assignment minimises the iteration, among assignments whose sums take at "
		  "most this long" },
	{ "overlap-sync", OPTIONS_FLAG, AT(request.overlap_sync),
	  .help = "each stage sums its gradients after its own last task" },
	{ "wire", OPTIONS_PARSED, "fp32|bf16|q8|q6", .parse = take_activations,
	  .help = "format of activations and their gradients. CLUSTER gives sizes and times in "
		  "fp32; this option needs links and activation_bytes in it [fp32]" },
	{ "sum-wire", OPTIONS_PARSED, "fp32|q8|q6|q4", .parse = take_sums,
	  .help = "format of the sums; the times of a sync_pair_s shrink as a whole [fp32]" },
	{ NULL, .help = "The search" },
	{ "algorithm", OPTIONS_PARSED, "NAME", .parse = take_algorithm,
	  .help = "best, or a published baseline: cbs, no-tc2, dtfm or dtfm-skip [best]" },
	{ "budget", OPTIONS_PARSED, "SECONDS", .parse = take_budget,
	  .help = "time of the search [1, without --evaluations]" },
	{ "evaluations", OPTIONS_U64, "N", AT(request.evaluations), LIMITS(1, 4e18),
	  .help = "length of the search, in place of --budget" },
	{ "seed", OPTIONS_U64, "N", AT(request.seed), LIMITS(0, (double)INT64_MAX),
	  .help = "seed of the random numbers [1]" },
	{ "threads", OPTIONS_INT, "N", AT(request.threads), LIMITS(1, 1024),
	  .help = "[the cores of this machine]" },
	{ "from", OPTIONS_TEXT, "PLAN", AT(from), .help = "repair this plan" },
	{ "without", OPTIONS_TEXT, "NODE,...", AT(without), .help = "nodes that are lost" },
	{ "keep-batch", OPTIONS_FLAG, AT(request.keep_batch),
	  .help = "the other data nodes take the microbatches of a lost one" },
	{ "output", OPTIONS_TEXT, "plan.json", AT(output), .letter = 'o',
	  .help = "write the plan to this file [standard output]" },
	{ NULL, .help = "The phases of a run" },
	{ "skip-schedule", OPTIONS_TEXT, "K,...", AT(schedule),
	  .help = "write a plan for each phase of a run, twice: with one allocation of nodes to "
		  "stages for all phases, and with an allocation for each phase, between which "
		  "nodes move. Each search has the whole budget" },
	{ "recipe", OPTIONS_TEXT, "speed|robust", AT(recipe),
	  .help = "write such plans for the phases of a recipe. Adds the last stage to --always, "
		  "and sets --stack and --no-swaps" },
	{ "iterations", OPTIONS_INT, "N", AT(iterations), LIMITS(1, 1000000000),
	  .help = "iterations of the run" },
	{ "stack", OPTIONS_FLAG, AT(stack),
	  .help = "stages that a phase begins to visit start as copies of trained stages" },
	{ "hours", OPTIONS_REAL, "H", AT(hours), LIMITS(0.001, 1e6),
	  .help = "print what each recipe reaches in this time: iterations, when nodes move, and "
		  "with --model the loss. Needs no --iterations" },
	{ "model", OPTIONS_TEXT, "NAME|FILE", AT(model),
	  .help = "model of --hours: a preset, or skippipe.model/1" },
	{ "format", OPTIONS_SECOND, "json|text", AT(as_table), .words = formats,
	  .given = offsetof(struct plan_options, has_format),
	  .help = "text: print a table of the phases, or of --hours [json; text with --hours]" },
	{ "help", OPTIONS_HELP, .help = "print this help" },
};
#undef AT
#undef LIMITS

const struct options_table options_of_plan = {
	rows,
	sizeof(rows) / sizeof(rows[0]),
	.only_word_expected = "one cluster file",
	.only_word = offsetof(struct plan_options, cluster),
	.intro = "usage: skippipe plan CLUSTER [options]\n"
		 "       skippipe plan --fleet FILE --help\n"
		 "\n"
		 "Writes a plan as JSON. A file named - is read from standard input.\n"
		 "\n",
	.end = PROGRAM_EXIT_STATUS
};

/* Returns NULL, or the error if options exclude each other. */
static const char *check_combination(const struct plan_options *o)
{
	const struct plan_request *q = &o->request;

	if (!o->cluster)
		return "plan: expected one cluster file";
	if ((o->skip_share != NULL) + (o->skip >= 0) + (q->path_length > 0) > 1)
		return "--skip-share, --skip and --path-length exclude one another";
	if (q->budget_s > 0 && q->evaluations > 0)
		return "--budget and --evaluations exclude each other";
	if (q->sync_limit_s > 0 && !q->free_assignment)
		return "--sync-limit: only with --assignment free";
	if (q->sync_limit_s > 0 && q->algorithm != PLAN_BEST)
		return "--sync-limit: only with --algorithm best";
	return check_phase_options(o);
}

int plan_options_parse(struct plan_options *o, int argc, char **argv)
{
	struct error err = { "" };
	const char *why;
	int rc;

	*o = (struct plan_options){ .skip = -1 };
	plan_request_init(&o->request);
	o->request.clock_us = read_clock;
	o->request.threads = (int)cores_usable();
	rc = options_read(&options_of_plan, o, argc, argv, NULL, &err);
	if (rc > 0) {
		options_help(&options_of_plan, stdout);
		return -1;
	}
	if (rc < 0)
		return program_refuse(&options_of_plan, err.text);
	why = check_combination(o);
	if (why)
		return program_refuse(&options_of_plan, why);
	if (o->request.evaluations <= 0 && o->request.budget_s <= 0)
		o->request.budget_s = 1;
	return 0;
}
