/* options.c - the command line: every option, its limits, and the options that contradict one
 * another.
 *
 * One table describes all options, so that a new option needs one row. Strings are borrowed from
 * argv. Contradictions between options are checked when all options are known. */
#include "controller/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/options.h"
#include "base/skip_schedule.h"
#include "model/rehearsal/rehearsal.h"

/* Reads "N" or "MIN..MAX". With "N" alone, the run may begin with any number of agents after
 * --gather-s. */
static int parse_agents(void *options, const char *text, struct error *err)
{
	struct options *o = options;
	int rc = options_parse_range("agents", text, 2, MSG_NODES, &o->cluster.least_agents,
				     &o->cluster.agents, err);

	if (rc == 0 && o->cluster.least_agents == 0)
		o->cluster.least_agents = 1;
	return rc;
}

static int parse_stages(void *options, const char *text, struct error *err)
{
	struct options *o = options;
	const char *at = text;

	o->cluster.n_stages = 0;
	for (;;) {
		char *end;
		long v = strtol(at, &end, 10);

		if (end == at || v < 1 || v > MSG_NODES || o->cluster.n_stages == MSG_STAGES)
			return error_set(err, -EINVAL,
					 "--stages: expected counts like 5,3,3, got \"%s\"", text);
		o->cluster.stages[o->cluster.n_stages++] = (int)v;
		if (*end == '\0')
			return 0;
		if (*end != ',')
			return error_set(err, -EINVAL,
					 "--stages: expected counts like 5,3,3, got \"%s\"", text);
		at = end + 1;
	}
}

static int parse_cut(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	return stage_layers_parse(&o->training.cut, "--cut", text, err);
}

static int parse_skip(void *options, const char *text, struct error *err)
{
	struct options *o = options;
	char *end;
	long k = strtol(text, &end, 10);

	if (end == text || k < 0 || k >= MSG_STAGES || (*end && *end != '/'))
		return error_set(err, -EINVAL, "--skip: expected K or K/S, got \"%s\"", text);
	if (*end == '/') {
		const char *of = end + 1;
		long s = strtol(of, &end, 10);

		if (end == of || *end || s < 1 || s > MSG_STAGES)
			return error_set(err, -EINVAL, "--skip: expected K or K/S, got \"%s\"",
					 text);
		if (o->cluster.n_stages && s != o->cluster.n_stages)
			return error_set(err, -EINVAL, "--skip %s: there are %d stages", text,
					 o->cluster.n_stages);
	}
	o->skip = (uint32_t)k;
	o->skip_share = 0;
	return 0;
}

static int parse_skip_share(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	return skip_share_parse("--skip-share", text, MSG_STAGES - 1, &o->skip_share, &o->skip,
				err);
}

/* Reads the number after an act's name, or the ratio of skipped stages after `skip`. */
static int parse_act_number(enum command_verb verb, const char *text, double *v, struct error *err)
{
	uint32_t share, skip;
	const char *at = text;
	uint64_t n = 0;
	const struct options_row number = { "at", OPTIONS_U64,
					    .most = verb == COMMAND_FINISH  ? 1 << 24
						    : verb == COMMAND_HOURS ? 1000000
									    : MSG_NODES };

	if (verb != COMMAND_SKIP && options_take(&number, &n, text, err) != 0)
		return -EINVAL;
	*v = (double)n;
	if (verb != COMMAND_SKIP)
		return 0;
	if (skip_share_read(&at, MSG_STAGES - 1, &share, &skip, err) != 0 || *at != '\0')
		return error_set(
			err, -EINVAL,
			"--at: skip:%s: expected a number of stages, as 2, or 30%%:2 for a "
			"share of the microbatches",
			text);
	*v = (double)skip_share_pack(share, skip);
	return 0;
}

/* Returns the act of that name: a fault, or a verb that --at allows. -1: there is no such act. */
static int named_act(const char *word, enum fault_kind *fault)
{
	static const enum command_verb scripted[] = { COMMAND_SKIP,     COMMAND_FAIL,
						      COMMAND_RECOVER,  COMMAND_PAUSE,
						      COMMAND_STOP,     COMMAND_WIRE,
						      COMMAND_SUM_WIRE, COMMAND_FINISH,
						      COMMAND_STAGES,   COMMAND_CUT,
						      COMMAND_HOURS };
	int kind = fault_named(word);

	*fault = kind > FAULT_NONE ? (enum fault_kind)kind : FAULT_NONE;
	if (kind > FAULT_NONE)
		return COMMAND_INJECT;
	for (size_t i = 0; i < sizeof(scripted) / sizeof(scripted[0]); i++)
		if (strcmp(verb_name(scripted[i]), word) == 0)
			return (int)scripted[i];
	return -1;
}

/* Reads the tensor format after an act's name. */
static int parse_act_format(int verb, const char *text, double *v, struct error *err)
{
	enum tensor_format format;

	if (tensor_format_parse(text, &format) != 0 ||
	    !(verb == COMMAND_SUM_WIRE ? tensor_format_suits_sums(format)
				       : tensor_format_suits_activations(format)))
		return error_set(err, -EINVAL, "--at: %s in \"%s\": expected %s",
				 verb_name((unsigned)verb), text,
				 verb == COMMAND_SUM_WIRE ? "fp32, q8, q6 or q4"
							  : "fp32, bf16, q8 or q6");
	*v = (double)format;
	return 0;
}

static bool has_argument(int verb)
{
	return verb != COMMAND_PAUSE && verb != COMMAND_STOP && verb != COMMAND_STAGES;
}

/* Reads the argument after an act's name: a number, a format, or the layers of each stage. */
static int parse_act_argument(int verb, const char *text, double *v, struct error *err)
{
	struct stage_layers layers;

	if (verb == COMMAND_CUT)
		return stage_layers_parse(&layers, "--at: cut", text, err);
	if (verb == COMMAND_WIRE || verb == COMMAND_SUM_WIRE)
		return parse_act_format(verb, text, v, err);
	return parse_act_number((enum command_verb)verb, text, v, err);
}

/* Parses ITERATION:ACT[:ARGUMENT]. All acts except pause, stop and stages have an argument. */
static int parse_act(void *options, const char *text, struct error *err)
{
	struct options *o = options;
	struct scripted_act *a = &o->acts[o->n_acts];
	enum fault_kind fault;
	char *end, word[24];
	unsigned long long iteration = strtoull(text, &end, 10);
	const char *number;
	double v = 0;
	int verb;

	if (o->n_acts == OPTIONS_MOST_ACTS)
		return error_set(err, -E2BIG, "--at: at most %d acts", OPTIONS_MOST_ACTS);
	if (*text < '0' || *text > '9' || *end != ':')
		return error_set(err, -EINVAL, "--at: expected ITERATION:ACT[:NUMBER], got \"%s\"",
				 text);
	number = strchr(end + 1, ':');
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(end + 1, ":"), end + 1);
	verb = named_act(word, &fault);
	if (verb < 0 || has_argument(verb) != (number != NULL))
		return error_set(err, -EINVAL, "--at: unknown act or missing number in \"%s\"",
				 text);
	if (number && parse_act_argument(verb, number + 1, &v, err) != 0)
		return -EINVAL;
	*a = (struct scripted_act){ .iteration = iteration,
				    .verb = (enum command_verb)verb,
				    .fault = fault,
				    .node = verb == COMMAND_FINISH || verb == COMMAND_CUT ? -1
											  : (int)v,
				    .value = (int64_t)v,
				    .argument = number ? number + 1 : NULL };
	o->n_acts++;
	return 0;
}

static int parse_algorithm(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	if (plan_algorithm_named(text, &o->planning.algorithm))
		return 0;
	return error_set(err, -EINVAL,
			 "--algorithm: expected best, cbs, no-tc2, dtfm or dtfm-skip, got \"%s\"",
			 text);
}

static int parse_wire(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	if (tensor_format_parse(text, &o->training.formats.wire) == 0 &&
	    tensor_format_suits_activations(o->training.formats.wire))
		return 0;
	return error_set(err, -EINVAL, "--wire: expected fp32, bf16, q8 or q6, got \"%s\"", text);
}

static int parse_sum_wire(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	if (tensor_format_parse(text, &o->training.formats.sum_wire) == 0 &&
	    tensor_format_suits_sums(o->training.formats.sum_wire))
		return 0;
	return error_set(err, -EINVAL, "--sum-wire: expected fp32, q8, q6 or q4, got \"%s\"",
			 text);
}

static int take_corpus(void *options, const char *path, struct error *err)
{
	struct options *o = options;

	if (o->training.n_corpus == OPTIONS_MOST_CORPUS)
		return error_set(err, -EINVAL, "--corpus: more than %d files", OPTIONS_MOST_CORPUS);
	o->training.corpus[o->training.n_corpus++] = path;
	return 0;
}

static int take_set(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	if (o->training.n_set == OPTIONS_MOST_SET)
		return error_set(err, -EINVAL, "--set: more than %d fields", OPTIONS_MOST_SET);
	o->training.set[o->training.n_set++] = text;
	return 0;
}

static int take_resumed(void *options, const char *folder, struct error *err)
{
	struct options *o = options;

	(void)err;
	o->run_dir = folder;
	o->mode.resume = true;
	return 0;
}

static int take_replayed(void *options, const char *folder, struct error *err)
{
	struct options *o = options;

	(void)err;
	o->run_dir = folder;
	o->mode.replay = true;
	return 0;
}

/* ---- the table of options ---- */

/* Flag of an option that belongs to the run. The option is recorded when the run begins, and
 * refused with --resume. */
enum { KEPT = 1 };

static const char *const assignments[] = { "free", "given", NULL };
static const char *const sums[] = { "late", "early", NULL };
static const char *const divisors[] = { "microbatches", "visits", NULL };
static const char *const formats[] = { "text", "jsonl", NULL };
static const char *const levels[] = { "debug", "info", "warn", "error", NULL };

static const struct options_row rows[] = {
#define AT(field) .at = offsetof(struct options, field)
#define GIVEN(change) .given = offsetof(struct options, changed[CHANGE_##change])
#define LIMITS(least_, most_) .least = (least_), .most = (most_)
#define FIXED .mark = KEPT
	{ "run-dir", OPTIONS_TEXT, "DIR", AT(run_dir),
	  .help = "the folder that records the run; it must not contain a run" },
	{ "resume", OPTIONS_PARSED, "DIR", .parse = take_resumed,
	  .help = "continue the run recorded there, with its options; its agents return by "
		  "themselves. --iterations, --eval-every, --eval-batches, --checkpoint-every, "
		  "--skip-bad-steps, --keep-tasks, --silence-ms, --overdue-s, --gather-s, --budget "
		  "and --ahead may be changed, and so may the stages (--cut, --stages): it then "
		  "goes on from its last commit. Not recorded, so give them again: --key, "
		  "--admitted, --listen, --checkpoint-to, --metrics, --on-alert, --alert-url, "
		  "--format, --at and --log" },
	{ "replay", OPTIONS_PARSED, "DIR", .parse = take_replayed,
	  .help = "serve the run recorded there to consoles" },
	{ "speed", OPTIONS_REAL, "X", "1",
	  "speed of a replay, as a multiple of real time; 0: stopped", AT(mode.speed),
	  LIMITS(0, 10000) },
	{ "key", OPTIONS_TEXT, "FILE", AT(key),
	  .help = "this controller's key (skippipe invite or keygen makes it) "
		  "[~/.local/state/skippipe/controller.key]" },
	{ "admitted", OPTIONS_TEXT, "FILE", AT(admitted),
	  .help = "list of the keys and invitations (skippipe invite or admit) "
		  "[~/.local/state/skippipe/admitted]" },
	{ "listen", OPTIONS_TEXT, "ADDRESS", "tcp://127.0.0.1:0", "tcp://HOST:PORT or ipc://PATH",
	  AT(listen) },
	{ NULL, .help = "The cluster" },
	{ "cluster", OPTIONS_TEXT, "FILE", AT(cluster.file), FIXED,
	  .help = "skippipe.cluster/1; its nodes are the agents. Links and compute are measured "
		  "before the first plan and replace the file's" },
	{ "agents", OPTIONS_PARSED, "N|MIN..MAX", "20",
	  "number of agents without a file; the run begins when all are there, or after --gather-s "
	  "with MIN of them (N: with any), and others join later",
	  .parse = parse_agents, FIXED },
	{ "stages", OPTIONS_PARSED, "A,B,...", .parse = parse_stages,
	  .help = "nodes per stage [chosen by the controller, with the layers of each stage, when "
		  "the agents are measured; 5,3,3,3,3,3 with --emulate regions, and for 20 agents "
		  "with an option that needs to know the stages]" },
	{ "cut", OPTIONS_PARSED, "A,B,...", .parse = parse_cut,
	  .help = "layers of each stage, as 0,7,5; only stage 0 may have none [equally, or as the "
		  "checkpoint of --from]" },
	{ "assignment", OPTIONS_SECOND, "free|given", "free",
	  "given: each node keeps its `stage` in the file", AT(cluster.assignment_given),
	  .words = assignments, FIXED },
	{ "measure-only", OPTIONS_FLAG, AT(mode.measure_only),
	  .help = "measure all links and nodes, write RUN-DIR/cluster.json and exit" },
	{ "emulate", OPTIONS_TEXT, "regions|FILE", AT(cluster.emulate), FIXED,
	  .help = "network and compute to emulate: 12 cloud regions, or a cluster file "
		  "[nothing is emulated]" },
	{ "time-scale", OPTIONS_REAL, "X", AT(cluster.time_scale), LIMITS(0, 1e6), FIXED,
	  .help = "real seconds per emulated second; 0: no emulation "
		  "[an iteration takes 2.5 s]" },
	{ "regions", OPTIONS_TEXT, "FILE", AT(cluster.regions), FIXED,
	  .help = "delays and bandwidths of regions, in place of the shipped ones" },
	{ "serialise", OPTIONS_FLAG, AT(cluster.serialise), FIXED,
	  .help = "an emulated link carries one tensor at a time" },
	{ "sums", OPTIONS_SECOND, "early|late", "early",
	  "each stage sums its gradients as soon as it has counted all, or after the last task of "
	  "the iteration",
	  AT(planning.overlap_sync), .words = sums, FIXED },
	{ "rehearse", OPTIONS_FLAG, AT(training.rehearse), FIXED,
	  .help = "agents compute nothing, but sleep for the times of the cluster file, and need "
		  "--device pretend; nothing is trained" },
	{ "scale-bytes", OPTIONS_U32, "K", AT(training.scale_bytes), LIMITS(1, REHEARSAL_MOST),
	  FIXED, .help = "in a rehearsal tensors have 1/K of their bytes [1000]" },
	{ "algorithm", OPTIONS_PARSED, "NAME", "best",
	  "the planner: best, or a published baseline: dtfm (every stage, straight pipelines), "
	  "dtfm-skip (random skips), no-tc2 (ignores collisions), cbs (collision-based search)",
	  .parse = parse_algorithm, FIXED },
	{ NULL, .help = "The training" },
	{ "model", OPTIONS_TEXT, "NAME|FILE", AT(training.model), FIXED,
	  .help = "preset or skippipe.model/1 [tiny]" },
	{ "from", OPTIONS_TEXT, "FOLDER", AT(training.from), FIXED,
	  .help = "begin with the weights of a checkpoint, or of a Hugging Face folder; --model "
		  "then gives the hyperparameters only" },
	{ "set", OPTIONS_PARSED, "FIELD=VALUE", .parse = take_set, FIXED,
	  .help = "change the hyperparameters: lr, warmup, schedule (cosine, linear, wsd or "
		  "wsd-sqrt), decay, final_lr, ... (docs/rates.md)" },
	{ "new-corpus", OPTIONS_FLAG, AT(training.new_corpus), FIXED,
	  .help = "with --from: train on another corpus than the checkpoint did" },
	{ "skip", OPTIONS_PARSED, "K[/S]", .parse = parse_skip, FIXED,
	  .help = "stages that every microbatch skips [0]" },
	{ "skip-share", OPTIONS_PARSED, "S%:K", .parse = parse_skip_share, FIXED,
	  .help = "S percent of each data node's microbatches, rounded to the nearest number, "
		  "skip K stages; the rest skip none" },
	{ "skip-schedule", OPTIONS_TEXT, "LIST", AT(skip_schedule), FIXED,
	  .help = "stages skipped in each phase of the run: 4,3,1,0 (equal parts of --iterations) "
		  "or 4@0,3@25%,1@50%,0@800, or 4@0,30%:2@30% with a share of the microbatches; "
		  "replaces --skip and --skip-share" },
	{ "recipe", OPTIONS_TEXT, "speed|robust", AT(recipe), FIXED,
	  .help = SKIP_SCHEDULE_RECIPE_HELP ". Replaces --skip" },
	{ "stack", OPTIONS_FLAG, AT(stack), FIXED,
	  .help = "stages that the schedule begins to visit start as copies of trained stages; "
		  "the first phase must skip all stages that may be skipped" },
	{ "no-swaps", OPTIONS_FLAG, AT(planning.no_swaps), FIXED,
	  .help = "microbatches visit stages in ascending order; --recipe sets it" },
	{ "phase-moves", OPTIONS_FLAG, AT(planning.phase_moves), FIXED,
	  .help = "each phase of the schedule has its own allocation: nodes move to the stages "
		  "that the phase visits most" },
	{ "always", OPTIONS_TEXT, "STAGE,...", AT(always), FIXED,
	  .help = "stages that every microbatch visits, beside stage 0 and those of the cluster "
		  "file" },
	{ "microbatches", OPTIONS_U32, "N", AT(training.microbatches), LIMITS(1, 4096), FIXED,
	  .help = "microbatches of a data node in an iteration [the cluster's; 6]" },
	{ "batch", OPTIONS_U32, "B", AT(training.batch), LIMITS(1, HYPER_BATCH_MOST),
	  FIXED,
	  .help = "sequences of a microbatch [the model's; chosen without --stages]" },
	{ "sequence", OPTIONS_U32, "T", AT(training.sequence), LIMITS(1, 1 << 20), FIXED,
	  .help = "tokens of a sequence [the model's]" },
	{ "iterations", OPTIONS_U64, "N", "0", "stop after N iterations; 0: never", AT(iterations),
	  GIVEN(ITERATIONS), LIMITS(0, 1e15) },
	{ "corpus", OPTIONS_PARSED, "FILE...", .parse = take_corpus, .many = true, FIXED,
	  .help = "text to train on [Debian's fortunes]" },
	{ "seed", OPTIONS_U64, "N", "1", "seed of the run's random numbers", AT(seed),
	  offsetof(struct options, seed_is_given), LIMITS(0, 9e15), FIXED },
	{ "skip-bad-steps", OPTIONS_U32, "N", "0",
	  "if a loss or gradient is not finite, repeat the iteration with the next text, at most N "
	  "times in a row",
	  AT(skip_bad_steps), GIVEN(SKIP_BAD_STEPS), LIMITS(0, 1e9) },
	{ "eval-every", OPTIONS_U32, "N", "5", "iterations between validations; 0: never",
	  AT(eval_every), GIVEN(EVAL_EVERY), LIMITS(0, 1e9) },
	{ "eval-batches", OPTIONS_U32, "N", "8", "microbatches of a validation", AT(eval_batches),
	  GIVEN(EVAL_BATCHES), LIMITS(1, 4096) },
	{ "checkpoint-every", OPTIONS_U32, "N", "50",
	  "commits between checkpoints on the agents' disks, with one at the end; 0: none",
	  AT(checkpoint_every), GIVEN(CHECKPOINT_EVERY), LIMITS(0, 1e9) },
	{ "checkpoint-to", OPTIONS_TEXT, "STORE", AT(checkpoint_to),
	  .help = "copy each checkpoint to a store off the machines, and fetch missing files from "
		  "it: rclone:REMOTE:PATH, or a command for \"put NAME\" and \"get NAME\" "
		  "(docs/reliability.md)" },
	{ "keep-tasks", OPTIONS_U64, "N", "10000",
	  "newest iterations whose tasks the record keeps; of earlier iterations it keeps every "
	  "100th",
	  AT(keep_tasks), GIVEN(KEEP_TASKS), LIMITS(1, 1e9) },
	{ "grad-norm", OPTIONS_SECOND, "microbatches|visits", "microbatches",
	  "divisor of a stage's summed gradient: the number of all microbatches, or of those that "
	  "visited the stage; --recipe chooses visits",
	  AT(training.by_visits), .words = divisors, FIXED },
	{ "threads", OPTIONS_U32, "N", "1", "threads with which an agent computes",
	  AT(training.threads), LIMITS(1, 1024), FIXED },
	{ "wire", OPTIONS_PARSED, "fp32|bf16|q8|q6", "q8",
	  "format of activations and their gradients between stages; all but fp32 round to 1/2, "
	  "1/4 "
	  "or 1/5 of the bytes",
	  .parse = parse_wire, FIXED },
	{ "sum-wire", OPTIONS_PARSED, "fp32|q8|q6|q4", "q6",
	  "format of the sums of gradients over replicas; all but fp32 round to 1/4, 1/5 or 1/8 of "
	  "the bytes",
	  .parse = parse_sum_wire, FIXED },
	{ NULL, .help = "Running" },
	{ "format", OPTIONS_SECOND, "text|jsonl", "text", "jsonl: events as JSON lines on stdout",
	  AT(mode.jsonl), .words = formats },
	{ "metrics", OPTIONS_TEXT, "ADDRESS", AT(mode.monitor.metrics),
	  .help = "serve metrics for Prometheus, the run as JSON and a health check over HTTP: "
		  "PORT, on the loopback address, or HOST:PORT (docs/monitoring.md)" },
	{ "on-alert", OPTIONS_TEXT, "CMD", AT(mode.monitor.on_alert),
	  .help = "for each alert, run this line with sh; SKIPPIPE_ALERT_TEXT and other variables "
		  "describe the alert" },
	{ "alert-url", OPTIONS_TEXT, "URL", AT(mode.monitor.alert_url),
	  .help = "post each alert as JSON with the program curl; @FILE: the URL is the first "
		  "line of FILE" },
	{ "at", OPTIONS_PARSED, "N:ACT", .parse = parse_act,
	  .help = "before iteration N: skip:K, skip:S%:K, wire:FORMAT, sum-wire:FORMAT, finish:N "
		  "(the learning rate falls over N iterations, then the run ends), stages (the "
		  "journal says which stages would be chosen now), cut:0,7,5 (the layers of each "
		  "stage from now on), pause, stop, or ACT:NODE with "
		  "one of fail, recover" FAULT_NAMES_FOLLOW
		  " (a fault other than kill lasts 10 s: 4 times slower, 20% lost, all links)" },
	{ "silence-ms", OPTIONS_MILLISECONDS, "N", "450",
	  "an agent that is silent for this long is dead", AT(limits.silence_us), GIVEN(SILENCE),
	  LIMITS(50, 1e7) },
	{ "overdue-s", OPTIONS_SECONDS, "N", "10",
	  "if no task ends for this long plus 20 times the longest task, the agents that report "
	  "work count as dead",
	  AT(limits.overdue_us), GIVEN(OVERDUE), LIMITS(0.5, 1e7) },
	{ "gather-s", OPTIONS_SECONDS, "N", "30", "wait this long for all agents",
	  AT(limits.gather_us), GIVEN(GATHER), LIMITS(0, 1e7) },
	{ "budget", OPTIONS_REAL, "S", "0.5",
	  "seconds for the first plan; with a baseline, for every plan", AT(planning.budget_s),
	  GIVEN(BUDGET), LIMITS(0, 3600) },
	{ "ahead", OPTIONS_REAL, "S", "1",
	  "idle seconds for each plan made in advance: for the loss of a node, and for other skip "
	  "ratios; 0: no such plans",
	  AT(planning.ahead_s), GIVEN(AHEAD), LIMITS(0, 3600) },
	{ "name", OPTIONS_TEXT, "TEXT", "skippipe", "the run's name", AT(name), FIXED },
	{ "log", OPTIONS_CHOICE, "LEVEL", "info", "debug, info, warn or error", AT(level),
	  .words = levels },
	{ "embedded", OPTIONS_FLAG, AT(mode.embedded), .help = "used by skippipe demo" },
	{ "supervisor-fd", OPTIONS_INT, "N", AT(supervisor), LIMITS(0, 1 << 20),
	  .help = "used by skippipe demo" },
	{ "help", OPTIONS_HELP, .help = "print this help" },
#undef AT
#undef GIVEN
#undef LIMITS
#undef FIXED
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const struct options_table table = {
	rows, ROWS,
	.intro = "usage: skippipe controller --run-dir DIR [options]\n"
		 "\n"
		 "Plans a training run, commands its agents, records it and serves consoles.\n"
		 "\n"
};

/* With --emulate and a cluster file, that file is also the cluster of the run. Without --emulate
 * there is no time scale. */
static void settle_emulation(struct options *o)
{
	if (o->cluster.emulate && strcmp(o->cluster.emulate, "regions") != 0)
		o->cluster.file = o->cluster.emulate;
	if (!o->cluster.emulate && !o->mode.resume)
		o->cluster.time_scale = 0;
}

/* Refuses options that the chosen baseline algorithm, as published, does not have. */
static int check_algorithm(const struct options *o, struct error *err)
{
	if (o->planning.algorithm != PLAN_DTFM)
		return 0;
	if (o->skip > 0)
		return error_set(
			err, -EINVAL,
			"--skip %u: --algorithm dtfm visits every stage, dtfm-skip skips some",
			o->skip);
	for (uint32_t i = 0; i < o->n_acts; i++)
		if (o->acts[i].verb == COMMAND_SKIP && o->acts[i].value > 0)
			return error_set(err, -EINVAL,
					 "--at %llu:skip:%lld: --algorithm dtfm visits every stage",
					 (unsigned long long)o->acts[i].iteration,
					 (long long)o->acts[i].value);
	return 0;
}

/* A rehearsal has no loss, so it validates nothing. */
static int check_rehearsal(struct options *o, struct error *err)
{
	if (!o->training.rehearse && o->training.scale_bytes)
		return error_set(err, -EINVAL, "--scale-bytes %u: needs --rehearse",
				 o->training.scale_bytes);
	if (!o->training.rehearse)
		return 0;
	if (!o->training.scale_bytes)
		o->training.scale_bytes = 1000;
	if (!o->cluster.file && !o->cluster.emulate)
		return error_set(err, -EINVAL,
				 "--rehearse: needs --cluster FILE or --emulate: its agents "
				 "take the times of a cluster file");
	if (o->cluster.time_scale == 0 && o->cluster.emulate)
		return error_set(err, -EINVAL,
				 "--time-scale 0: a rehearsal consists of delays only");
	if (o->training.from)
		return error_set(err, -EINVAL,
				 "--from %s: a rehearsal trains nothing, and begins with "
				 "weights of its own",
				 o->training.from);
	if (o->changed[CHANGE_EVAL_EVERY] && o->eval_every > 0)
		return error_set(err, -EINVAL, "--eval-every %u: a rehearsal has no loss",
				 o->eval_every);
	o->eval_every = 0;
	return 0;
}

/* Checks for contradictions between options. */
static int check_options(struct options *o, struct error *err)
{
	stage_set always = 1;
	uint32_t sum = 0;

	if (!o->run_dir)
		return error_set(err, -EINVAL, "--run-dir is required");
	if (o->training.new_corpus && !o->training.from)
		return error_set(err, -EINVAL, "--new-corpus: needs --from FOLDER");
	if (o->cluster.emulate && o->cluster.file)
		return error_set(err, -EINVAL,
				 "--emulate %s: not with --cluster, which describes real machines",
				 o->cluster.emulate);
	if (o->cluster.time_scale > 0 && !o->cluster.emulate && !o->mode.resume && !o->mode.replay)
		return error_set(err, -EINVAL,
				 "--time-scale %g: needs --emulate regions or --emulate FILE",
				 o->cluster.time_scale);
	if (o->mode.measure_only &&
	    (o->cluster.emulate || o->mode.resume || o->mode.replay || o->mode.embedded))
		return error_set(err, -EINVAL,
				 "--measure-only measures real machines: not with --%s",
				 o->cluster.emulate ? "emulate"
				 : o->mode.resume   ? "resume"
				 : o->mode.replay   ? "replay"
						    : "embedded");
	if (o->mode.replay &&
	    (o->mode.monitor.metrics || o->mode.monitor.on_alert || o->mode.monitor.alert_url))
		return error_set(err, -EINVAL,
				 "--replay: not with --metrics, --on-alert or --alert-url, which "
				 "watch a run that is under way");
	if (o->mode.replay && o->mode.resume)
		return error_set(err, -EINVAL,
				 "--replay shows a run, --resume continues it: choose one");
	if (o->recipe && (o->skip_schedule || o->stack))
		return error_set(err, -EINVAL, "--recipe %s: not with --skip-schedule or --stack",
				 o->recipe);
	if (check_rehearsal(o, err) != 0)
		return -EINVAL;
	settle_emulation(o);
	if (check_algorithm(o, err) != 0)
		return -EINVAL;
	if (o->cluster.file || o->mode.resume || o->mode.replay)
		return 0;
	for (int s = 0; s < o->cluster.n_stages; s++)
		sum += (uint32_t)o->cluster.stages[s];
	if (sum != o->cluster.agents)
		return error_set(err, -EINVAL, "--stages adds up to %u nodes, --agents is %u", sum,
				 o->cluster.agents);
	if (o->always && !stage_set_parse(o->always, o->cluster.n_stages, &always))
		return error_set(err, -EINVAL, "--always %s: expected stages below %d, as 0,%d",
				 o->always, o->cluster.n_stages, o->cluster.n_stages - 1);
	if ((int)o->skip > o->cluster.n_stages - stage_set_count(always))
		return error_set(err, -EINVAL, "--skip %u: of %d stages only %d may be skipped",
				 o->skip, o->cluster.n_stages,
				 o->cluster.n_stages - stage_set_count(always));
	return 0;
}

/* Returns the first given option that a resumed run may not change; NULL: none. */
static const char *first_kept(const bool *given)
{
	for (int i = 0; i < ROWS; i++)
		if (given[i] && rows[i].mark == KEPT)
			return rows[i].name;
	return NULL;
}

/* Returns a given option that requires the stages to be known when the controller starts; NULL:
 * there is none. */
static const char *option_with_stages(const struct options *o)
{
	const struct {
		bool is_given;
		const char *name;
	} options[] = {
		{ o->skip || o->skip_share, "--skip" },
		{ o->skip_schedule, "--skip-schedule" },
		{ o->recipe, "--recipe" },
		{ o->stack, "--stack" },
		{ o->always, "--always" },
		{ o->planning.phase_moves, "--phase-moves" },
		{ o->planning.algorithm != PLAN_BEST, "--algorithm" },
		{ o->training.cut.n > 0, "--cut" },
		{ o->training.from, "--from" },
		{ o->training.microbatches > 0, "--microbatches" },
		{ o->cluster.assignment_given, "--assignment" },
		{ o->mode.measure_only, "--measure-only" },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i].is_given)
			return options[i].name;
	for (uint32_t i = 0; i < o->n_acts; i++)
		if (o->acts[i].verb == COMMAND_SKIP && o->acts[i].value > 0)
			return "--at N:skip";
	return NULL;
}

/* Sets the stages of a run without --stages and without a cluster file. If the controller chooses
 * the stages, the run gets provisional stages. Otherwise it gets the stages of the published
 * cluster. */
static int default_stages(struct options *o, struct error *err)
{
	static const int published[] = { 5, 3, 3, 3, 3, 3 };
	const char *needs = option_with_stages(o);

	o->cluster.chooses_stages = !o->cluster.emulate && !o->mode.resume && !o->mode.replay &&
				    !o->mode.embedded && !needs;
	if (o->cluster.chooses_stages) {
		o->cluster.n_stages = 2;
		o->cluster.stages[0] = (int)o->cluster.agents - 1;
		o->cluster.stages[1] = 1;
		return 0;
	}
	if (needs && o->cluster.agents != 20 && !o->cluster.emulate && !o->mode.resume &&
	    !o->mode.replay && !o->mode.embedded)
		return error_set(err, -EINVAL,
				 "%s: needs --stages A,B,...: without both, the controller "
				 "chooses the stages of %u agents",
				 needs, o->cluster.agents);
	memcpy(o->cluster.stages, published, sizeof(published));
	o->cluster.n_stages = 6;
	return 0;
}

/* Sets the defaults, then each option in turn, and checks the combination last. */
int options_parse(struct options *o, int argc, char **argv, struct error *err)
{
	bool given[ROWS] = { false };
	int rc;

	*o = (struct options){ .supervisor = -1, .cluster.time_scale = -1 };
	rc = options_read(&table, o, argc, argv, given, err);
	if (rc > 0)
		options_help(&table, stdout);
	if (rc != 0)
		return rc;
	if (o->mode.resume && first_kept(given))
		return error_set(err, -EINVAL, "--%s: a resumed run keeps the value it began with",
				 first_kept(given));
	if (o->cluster.n_stages == 0 && !o->cluster.file && !o->mode.resume &&
	    (!o->cluster.emulate || strcmp(o->cluster.emulate, "regions") == 0) &&
	    default_stages(o, err) != 0)
		return -EINVAL;
	return check_options(o, err);
}

int options_again(struct options *o, const struct options *was, const char *listen,
		  struct error *err)
{
	char *argv[] = { "controller", "--resume", (char *)(uintptr_t)was->run_dir };
	int rc = options_parse(o, sizeof(argv) / sizeof(argv[0]), argv, err);

	if (rc != 0)
		return rc;
	o->key = was->key;
	o->admitted = was->admitted;
	o->listen = listen;
	o->supervisor = was->supervisor;
	o->level = was->level;
	o->checkpoint_to = was->checkpoint_to;
	o->mode.embedded = was->mode.embedded;
	o->mode.jsonl = was->mode.jsonl;
	o->mode.monitor = was->mode.monitor;
	memcpy(o->acts, was->acts, sizeof(o->acts));
	o->n_acts = was->n_acts;
	return 0;
}
