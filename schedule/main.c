/* skippipe-plan: the commands `plan`, which makes a plan for a cluster, and `simulate`, which
 * predicts and checks one.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/output.h"
#include "base/skip_schedule.h"
#include "base/tensor_format.h"
#include "schedule/execution/check.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/search/phase_plans.h"
#include "schedule/search/search.h"
#include "schedule/search/turn_plans.h"
#include "schedule/execution/simulate.h"

enum { DONE = 0, FAILED = 1, USAGE = 2, BROKEN = 3 };

static const char usage_text[] =
	"usage: skippipe plan CLUSTER [--skip K[/S] | --skip-share S%:K | --path-length L]\n"
	"           [--always STAGE,...]\n"
	"           [--algorithm best|cbs|no-tc2|dtfm|dtfm-skip]\n"
	"           [--budget SECONDS | --evaluations N] [--seed N] [--threads N]\n"
	"           [--assignment free|given] [--sync-limit SECONDS]\n"
	"           [--overlap-sync] [--from PLAN] [--without NODE,...] [--keep-batch]\n"
	"           [--wire FORMAT] [--sum-wire FORMAT] [-o plan.json [--turns N]]\n"
	"       skippipe plan CLUSTER (--skip-schedule K,... | --recipe speed|robust)\n"
	"           --iterations N [--stack] [--format json|text] [options as above]\n"
	"       skippipe simulate CLUSTER PLAN [--trace trace.json] [--format json|text]\n"
	"           [--wire FORMAT] [--sum-wire FORMAT]\n"
	"\n"
	"plan writes a plan as JSON to standard output, or to the file given with -o. A file\n"
	"named - is read from standard input. Without a budget the search takes one second;\n"
	"without --skip a third of the stages is skipped. --skip-share 30%:2 lets 30% of each\n"
	"data node's microbatches, rounded to the nearest number, skip 2 stages; the others\n"
	"visit all of them. Every microbatch visits stage 0 and\n"
	"the stages of --always, which adds to those that CLUSTER names (always_visited). Nodes\n"
	"with a stage in CLUSTER keep it, unless --assignment free is given. A free assignment\n"
	"has the least sum of iteration and sum of gradients; with --sync-limit it has the\n"
	"shortest iteration of those whose sums take at most that long. --overlap-sync lets\n"
	"each stage sum its gradients after its own last task. simulate predicts the times of a\n"
	"plan on a cluster and checks the rules.\n"
	"--turns N, 2 to 16, also writes plan.2.json to plan.N.json: plans that skippipe train\n"
	"uses in turn. Their nodes keep their stages, their iterations take at most 2% longer,\n"
	"and at least a quarter of their microbatches visit other sets of stages. Each has a\n"
	"search with the budget of the first. Fewer are written if there are no more.\n"
	"With --skip-schedule or --recipe, plan writes a plan for each phase of a run of N\n"
	"iterations, twice: with one allocation of nodes to stages for all phases, and with an\n"
	"allocation for each phase, between which nodes move. --recipe adds the last stage to\n"
	"--always and sets --stack: stages start from their trained neighbours. The budget is\n"
	"that of each search. --format text prints a table.\n"
	"CLUSTER gives sizes and times in fp32. --wire fp32|bf16|q8|q6 makes activations and\n"
	"their gradients shorter, --sum-wire fp32|q8|q6|q4 the sums. --wire needs links and\n"
	"activation_bytes in CLUSTER; the times of a sync_pair_s shrink as a whole.\n"
	"Exit status: 0 done, 1 failed, 2 usage, 3 infeasible or a rule is broken.\n";

static int print_usage(const char *why)
{
	if (why)
		fprintf(stderr, "skippipe: %s\n", why);
	fputs(usage_text, stderr);
	return USAGE;
}

static int report_error(const struct error *err, int status)
{
	fprintf(stderr, "skippipe: %s\n", err->text);
	return status;
}

struct wires {
	enum tensor_format activations, sums;
};

struct plan_options {
	const char *cluster, *from, *without, *output, *always, *skip_share;
	const char *schedule, *recipe; /* of a run; NULL: not given */
	long iterations;               /* of the run; 0: not given */
	bool stack, as_table;
	int turns;  /* number of plans that take turns */
	int skip;   /* number of skipped stages; -1: not given */
	int stages; /* number S of --skip K/S; 0: not given */
	struct wires wires;
	struct plan_request request;
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

/* Returns true if the text is one of the two words. */
static bool parse_choice(const char *text, const char *yes, const char *no, bool *out)
{
	*out = strcmp(text, yes) == 0;
	return *out || strcmp(text, no) == 0;
}

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
	OVERLAP_SYNC,
	SYNC_LIMIT,
	WIRE,
	SUM_WIRE,
	SKIP_SCHEDULE,
	RECIPE,
	ITERATIONS,
	STACK,
	TURNS,
	TRACE,
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
	{ "overlap-sync", no_argument, NULL, OVERLAP_SYNC },
	{ "sync-limit", required_argument, NULL, SYNC_LIMIT },
	{ "wire", required_argument, NULL, WIRE },
	{ "sum-wire", required_argument, NULL, SUM_WIRE },
	{ "skip-schedule", required_argument, NULL, SKIP_SCHEDULE },
	{ "recipe", required_argument, NULL, RECIPE },
	{ "iterations", required_argument, NULL, ITERATIONS },
	{ "stack", no_argument, NULL, STACK },
	{ "turns", required_argument, NULL, TURNS },
	{ "format", required_argument, NULL, FORMAT },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* Takes --wire and --sum-wire. Returns NULL, or the error. */
static const char *take_wire(struct wires *w, int option)
{
	if (option == WIRE)
		return tensor_format_parse(optarg, &w->activations) == 0 &&
				       tensor_format_suits_activations(w->activations)
			? NULL : "--wire: expected fp32, bf16, q8 or q6";
	return tensor_format_parse(optarg, &w->sums) == 0 && tensor_format_suits_sums(w->sums)
		? NULL : "--sum-wire: expected fp32, q8, q6 or q4";
}

/* Reads a cluster whose tensors travel in these formats. */
static int read_cluster(const char *path, const struct wires *w, struct cluster **c,
			struct error *err)
{
	const struct cluster_share share = {
		.activations = tensor_format_activation_share(w->activations),
		.sums = tensor_format_sum_share(w->sums),
		.refuse_delays = true,
	};

	int rc = cluster_read_share(path, &share, c, err);

	if (rc == 0)
		(*c)->formats = (struct tensor_formats){ w->activations, w->sums };
	return rc;
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
		return parse_choice(optarg, "text", "json", &o->as_table)
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
	case TURNS:
		if (!parse_long(optarg, 1, TURN_PLANS_MOST, &v))
			return "--turns: expected a number from 1 to 16";
		o->turns = (int)v;
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
	case TURNS:
		return take_search_option(o, option);
	case ASSIGNMENT:
		return parse_choice(optarg, "free", "given", &q->free_assignment)
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
	case OVERLAP_SYNC:
		q->overlap_sync = true;
		return NULL;
	case WIRE:
	case SUM_WIRE:
		return take_wire(&o->wires, option);
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

/* Returns -1 after printing the help. Checks combinations of options; take_plan_option checks
 * single ones. */
static int parse_plan_options(int argc, char **argv, struct plan_options *o)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int option;

	*o = (struct plan_options){ .skip = -1, .turns = 1 };
	plan_request_init(&o->request);
	o->request.clock_us = read_clock;
	o->request.threads = cores > 0 ? (int)cores : 1;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "o:h", plan_long, NULL)) != -1) {
		const char *why;

		if (option == 'h') {
			fputs(usage_text, stdout);
			return -1;
		}
		why = take_plan_option(o, option);
		if (why)
			return print_usage(why);
	}
	if (argc - optind != 1)
		return print_usage("plan: expected one cluster file");
	if (o->skip_share && (o->skip >= 0 || o->request.path_length > 0))
		return print_usage("--skip-share, --skip and --path-length exclude one another");
	if (o->request.budget_s > 0 && o->request.evaluations > 0)
		return print_usage("--budget and --evaluations exclude each other");
	if (o->request.sync_limit_s > 0 && !o->request.free_assignment)
		return print_usage("--sync-limit: only with --assignment free");
	if (o->request.sync_limit_s > 0 && o->request.algorithm != PLAN_BEST)
		return print_usage("--sync-limit: only with --algorithm best");
	if (o->turns > 1 && (!o->output || strcmp(o->output, "-") == 0))
		return print_usage("--turns writes several files and needs -o");
	if (o->turns > 1 && (o->schedule || o->recipe || o->request.algorithm != PLAN_BEST))
		return print_usage("--turns excludes --skip-schedule, --recipe and other "
				   "algorithms than best");
	if (check_phase_options(o))
		return print_usage(check_phase_options(o));
	if (o->request.evaluations <= 0 && o->request.budget_s <= 0)
		o->request.budget_s = 1;
	o->cluster = argv[optind];
	return 0;
}

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

/* Writes the whole text, which it frees, or nothing. text: NULL: out of memory. */
static int write_text(char *text, const char *path)
{
	struct error err = { "out of memory" };
	int rc = text ? 0 : -ENOMEM;

	if (rc == 0 && path && strcmp(path, "-") != 0) {
		rc = file_write(path, text, strlen(text), 0644, &err);
	} else if (rc == 0) {
		puts(text);
		rc = output_flush(&err);
	}
	free(text);
	return rc == 0 ? DONE : report_error(&err, FAILED);
}

static void show_progress(void *arg, const struct plan *plan)
{
	(void)arg;
	fprintf(stderr, "\r%8.3f s  iteration %.3f s  sync %.3f s  bound %.3f s ",
		plan->search.elapsed_s, plan->predicted.iteration_s, plan->predicted.sync_s,
		plan->predicted.lower_bound_s);
}

static int report_no_plan(int rc, const struct error *err)
{
	if (rc != PLAN_INFEASIBLE && rc != PLAN_NOT_FOUND)
		return report_error(err, FAILED);
	fprintf(stderr, "skippipe: %s: %s\n",
		rc == PLAN_INFEASIBLE ? "infeasible" : "no plan found", err->text);
	return BROKEN;
}

/* Reads the schedule of a run, of --skip-schedule or --recipe. */
static int read_schedule(struct cluster *c, struct plan_options *o, struct skip_schedule *out,
			 struct error *err)
{
	char recipe[SKIP_SCHEDULE_RECIPE];

	if (o->recipe) {
		c->always |= (stage_set)1 << (c->n_stages - 1);
		o->stack = true;
		if (skip_schedule_of_recipe(recipe, o->recipe, (uint32_t)cluster_most_skipped(c),
					    err) != 0)
			return -EINVAL;
	}
	return skip_schedule_parse(out, o->recipe ? recipe : o->schedule, (uint64_t)o->iterations,
				   (uint32_t)cluster_most_skipped(c), err);
}

/* Plans every phase of a run. */
static int plan_phases(struct cluster *c, struct plan_options *o)
{
	struct skip_schedule schedule;
	struct phase_plans plans;
	struct error err = { "" };
	struct phase_plans_request q = {
		.search = o->request,
		.schedule = &schedule,
		.iterations = (uint64_t)o->iterations,
		.state_ratio = phase_plans_state_ratio(tensor_format_sum_share(o->wires.sums)),
	};
	int rc;

	if (read_schedule(c, o, &schedule, &err) != 0)
		return report_error(&err, USAGE);
	q.stack = o->stack;
	rc = phase_plans_choose(c, &q, &plans, &err);
	if (rc != 0)
		return report_no_plan(rc, &err);
	rc = write_text(o->as_table ? phase_plans_table(&plans) : phase_plans_format(&plans),
			o->output);
	phase_plans_fini(&plans);
	return rc;
}

/* Writes the name of plan k's file: plan.k.json beside plan.json. */
static void name_turn(char *out, size_t room, const char *first, int k)
{
	const char *name = strrchr(first, '/'), *dot = strrchr(name ? name : first, '.');
	int length = dot ? (int)(dot - first) : (int)strlen(first);

	snprintf(out, room, "%.*s.%d%s", length, first, k, dot ? dot : "");
}

/* Finds and writes the plans that take turns with the first, and reports their times. */
static int write_turns(const struct cluster *c, const struct plan_options *o, struct plan *first)
{
	struct plan *plans[TURN_PLANS_MOST] = { first };
	struct error err = { "" };
	int n = turn_plans_search(c, &o->request, o->turns, plans, &err), status = DONE;

	if (n < 0)
		return report_error(&err, FAILED);
	for (int k = 1; k < n; k++) {
		double s = turn_plans_seconds(plans[k]), first_s = turn_plans_seconds(first);
		char path[4096];

		name_turn(path, sizeof(path), o->output, k + 1);
		fprintf(stderr, "%s: %.3f s for an iteration with its sums (%+.2f%%)\n", path, s,
			100 * (s / first_s - 1));
		if (status == DONE)
			status = write_text(plan_format(plans[k]), path);
		plan_free(plans[k]);
	}
	if (n < o->turns)
		fprintf(stderr,
			"skippipe: %d of %d plans: no other within 2%% of the time visits other "
			"sets of stages in a quarter of its microbatches\n",
			n, o->turns);
	return status;
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
		return report_error(&err, USAGE);
	}
	if (o->always && !stage_set_parse(o->always, c->n_stages, &c->always)) {
		error_set(&err, 0, "--always %s: expected stages below %d, as 0,%d", o->always,
			  c->n_stages, c->n_stages - 1);
		return report_error(&err, USAGE);
	}
	if (o->skip > cluster_most_skipped(c)) {
		error_set(&err, 0, "--skip %d: only %d of the cluster's %d stages may be skipped",
			  o->skip, cluster_most_skipped(c), c->n_stages);
		return report_error(&err, USAGE);
	}
	if (q->path_length > c->n_stages) {
		error_set(&err, 0, "--path-length %d: the cluster has only %d stages",
			  q->path_length, c->n_stages);
		return report_error(&err, USAGE);
	}
	if (o->skip_share) {
		if (skip_share_parse("--skip-share", o->skip_share,
				     (uint32_t)cluster_most_skipped(c), &share, &skip, &err) != 0)
			return report_error(&err, USAGE);
		o->skip = (int)skip;
		q->skip_share = (int)share;
	}
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
	if (rc == DONE && o->turns > 1)
		rc = write_turns(c, o, plan);
	plan_free(plan);
	return rc;
}

static int plan_command(int argc, char **argv)
{
	struct plan_options o;
	struct cluster *c = NULL;
	struct plan *from = NULL;
	bool *excluded = NULL;
	struct error err = { "" };
	int status = parse_plan_options(argc, argv, &o);

	if (status != 0)
		return status < 0 ? DONE : status;
	if (read_cluster(o.cluster, &o.wires, &c, &err) != 0)
		return report_error(&err, FAILED);
	if (o.from && plan_read(o.from, &from, &err) != 0) {
		status = report_error(&err, FAILED);
		goto free_cluster;
	}
	if (o.without) {
		excluded = alloc_array((size_t)c->n_nodes, sizeof(*excluded));
		if (!parse_without(o.without, c->n_nodes, excluded)) {
			error_set(&err, 0,
				  "--without %.60s: expected node ids below %d, with commas",
				  o.without, c->n_nodes);
			status = report_error(&err, USAGE);
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

static void print_text(const struct simulation *s, const struct check_report *r, const char *stop)
{
	if (s) {
		printf("iteration_s %.6f\nsync_s %.6f\ncollisions %d\ncollision_wait_s %.6f\n",
		       s->iteration_s, s->sync_s, s->collisions, s->collision_wait_s);
		printf("idle_fraction %.4f\nexposure", s->idle_fraction);
		for (int i = 0; i < s->n_stages; i++)
			printf(" %d", s->exposure[i]);
		putchar('\n');
	}
	if (stop)
		printf("broken TC1: %s\n", stop);
	for (int i = 0; i < r->n_breaches; i++)
		printf("broken %s\n", r->breaches[i]);
}

static void print_json_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text < ' ' ? ' ' : *text);
	}
	putchar('"');
}

/* Without a complete run (s NULL) only the breaches and the standstill are printed. */
static void print_json(const struct simulation *s, const struct check_report *r, const char *stop)
{
	bool comma = false;

	putchar('{');
	if (s) {
		printf("\"iteration_s\":%.17g,\"sync_s\":%.17g,\"collisions\":%d,"
		       "\"collision_wait_s\":%.17g,\"idle_fraction\":%.17g,\"exposure\":[",
		       s->iteration_s, s->sync_s, s->collisions, s->collision_wait_s,
		       s->idle_fraction);
		for (int i = 0; i < s->n_stages; i++)
			printf("%s%d", i ? "," : "", s->exposure[i]);
		printf("],\"peak_slots\":[");
		for (int i = 0; i < s->n_nodes; i++)
			printf("%s%d", i ? "," : "", s->peak_slots[i]);
		printf("],");
	}
	printf("\"valid\":%s,\"broken\":[", r->n_breaches == 0 && !stop ? "true" : "false");
	if (stop) {
		char text[600];

		snprintf(text, sizeof(text), "TC1: %s", stop);
		print_json_text(text);
		comma = true;
	}
	for (int i = 0; i < r->n_breaches; i++) {
		if (comma || i > 0)
			putchar(',');
		print_json_text(r->breaches[i]);
	}
	printf("]}\n");
}

struct simulate_options {
	const char *trace;
	bool text;
	struct wires wires;
};

/* Simulates and checks the plan, prints the result and writes the trace. A standstill is a breach
 * of TC1; a plan that cannot be run at all and breaks no rule is an error. */
static int judge_plan(const struct cluster *c, const struct plan *p,
		 const struct simulate_options *options)
{
	struct simulation *s = NULL;
	struct check_report report;
	struct error err = { "" };
	int rc = simulate(c, p, &s, &err), status;
	bool standstill = rc == -EDEADLK;

	check_plan(c, p, s, NULL, &report);
	if (rc != 0 && report.n_breaches == 0 && !standstill) {
		status = report_error(&err, FAILED);
		goto fini_report;
	}
	if (options->text)
		print_text(s, &report, standstill ? err.text : NULL);
	else
		print_json(s, &report, standstill ? err.text : NULL);
	for (int i = 0; i < report.n_breaches; i++)
		fprintf(stderr, "skippipe: %s\n", report.breaches[i]);
	if (standstill)
		fprintf(stderr, "skippipe: TC1: %s\n", err.text);
	status = standstill || report.n_breaches > 0 ? BROKEN : DONE;
	if (options->trace && s) {
		char *json = simulation_trace(c, p, s);

		if (!json || file_write(options->trace, json, strlen(json), 0644, &err) != 0)
			status = report_error(&err, FAILED);
		free(json);
	}
	if (output_flush(&err) != 0)
		status = report_error(&err, FAILED);
fini_report:
	check_report_fini(&report);
	simulation_free(s);
	return status;
}

/* Returns NULL, or the error if the option is not valid. */
static const char *take_simulate_option(struct simulate_options *o, int option)
{
	switch (option) {
	case TRACE:
		o->trace = optarg;
		return NULL;
	case FORMAT:
		return parse_choice(optarg, "text", "json", &o->text)
			? NULL : "--format: expected text or json";
	case WIRE:
	case SUM_WIRE:
		return take_wire(&o->wires, option);
	default:
		return "simulate: an unknown option, or an option without its value";
	}
}

static int simulate_command(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "trace", required_argument, NULL, TRACE },
		{ "format", required_argument, NULL, FORMAT },
		{ "wire", required_argument, NULL, WIRE },
		{ "sum-wire", required_argument, NULL, SUM_WIRE },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct simulate_options options = { .text = true };
	struct cluster *c = NULL;
	struct plan *p = NULL;
	struct error err = { "" };
	int option, status;
	const char *why;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage_text, stdout);
			return DONE;
		}
		why = take_simulate_option(&options, option);
		if (why)
			return print_usage(why);
	}
	if (argc - optind != 2)
		return print_usage("simulate: expected a cluster file and a plan file");
	if (read_cluster(argv[optind], &options.wires, &c, &err) != 0)
		return report_error(&err, FAILED);
	if (plan_read(argv[optind + 1], &p, &err) != 0) {
		cluster_free(c);
		return report_error(&err, FAILED);
	}
	status = judge_plan(c, p, &options);
	plan_free(p);
	cluster_free(c);
	return status;
}

int main(int argc, char **argv)
{
	output_check_at_exit("skippipe-plan");
	if (argc >= 2 && strcmp(argv[1], "plan") == 0)
		return plan_command(argc - 1, argv + 1);
	if (argc >= 2 && strcmp(argv[1], "simulate") == 0)
		return simulate_command(argc - 1, argv + 1);
	if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(usage_text, stdout);
		return DONE;
	}
	return print_usage(argc < 2 ? NULL : "expected plan or simulate");
}
