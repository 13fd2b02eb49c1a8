/* options.c - the command line: every option, its limits, and the options that contradict it.
 *
 * One table describes all options, so that a new option needs one row. Strings are borrowed from
 * argv. Contradictions between options are checked last, when all are known. */
#include "base/skip_schedule.h"
#include "controller/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/rehearsal/rehearsal.h"

static const char help[] =
	"usage: skippipe controller --run-dir DIR --key FILE --admitted FILE [options]\n"
	"\n"
	"Plans a training run, commands its agents, records it and serves consoles.\n"
	"\n"
	"  --run-dir DIR         the folder that records the run; it must not contain a run\n"
	"  --resume DIR          continue the run recorded there, with its options; its agents\n"
	"                        return by themselves. --iterations, --eval-every,\n"
	"                        --eval-batches, --checkpoint-every, --skip-bad-steps,\n"
	"                        --keep-tasks, --silence-ms, --overdue-s, --gather-s, --budget\n"
	"                        and --ahead may be changed. Not recorded, so give them again:\n"
	"                        --key, --admitted, --listen, --checkpoint-to, --format, --at\n"
	"                        and --log\n"
	"  --replay DIR          serve the run recorded there to consoles\n"
	"  --speed X             speed of a replay; 0: stopped  [1, real time]\n"
	"  --key FILE            this controller's key (skippipe keygen)\n"
	"  --admitted FILE       list of the keys that may join (skippipe admit)\n"
	"  --listen ADDRESS      tcp://HOST:PORT or ipc://PATH   [tcp://127.0.0.1:0]\n"
	"\n"
	"The cluster\n"
	"  --cluster FILE        skippipe.cluster/1; its nodes are the agents. Links and compute\n"
	"                        are measured before the first plan and replace the file's\n"
	"  --agents N            number of agents without a file  [20]\n"
	"  --stages A,B,...      nodes per stage  [5,3,3,3,3,3]\n"
	"  --assignment free|given  given: each node keeps its `stage` in the file  [free]\n"
	"  --measure-only        measure all links and nodes, write RUN-DIR/cluster.json and exit\n"
	"  --emulate regions|FILE  network and compute to emulate: 12 cloud regions, or a\n"
	"                        cluster file  [nothing is emulated]\n"
	"  --time-scale X        real seconds per emulated second; 0: no emulation\n"
	"                        [an iteration takes 2.5 s]\n"
	"  --serialise           an emulated link carries one tensor at a time\n"
	"  --sums early|late     each stage sums its gradients as soon as it has counted all, or\n"
	"                        after the last task of the iteration  [early]\n"
	"  --rehearse            agents compute nothing, but sleep for the times of the cluster\n"
	"                        file, and need --device pretend; nothing is trained\n"
	"  --scale-bytes K       in a rehearsal tensors have 1/K of their bytes  [1000]\n"
	"  --algorithm NAME      the planner: best, or a published baseline: dtfm (every stage,\n"
	"                        straight pipelines), dtfm-skip (random skips), no-tc2 (ignores\n"
	"                        collisions), cbs (collision-based search)  [best]\n"
	"\n"
	"The training\n"
	"  --model NAME|FILE     preset or skippipe.model/1  [tiny]\n"
	"  --from FOLDER         begin with the weights of a checkpoint, or of a Hugging Face\n"
	"                        folder; --model then gives the recipe only\n"
	"  --set FIELD=VALUE     change the recipe: lr, warmup, schedule (cosine, linear, wsd or\n"
	"                        wsd-sqrt), decay, final_lr, ... (docs/rates.md)\n"
	"  --new-corpus          with --from: train on another corpus than the checkpoint did\n"
	"  --skip K[/S]          stages that every microbatch skips  [0]\n"
	"  --skip-share S%:K     S percent of each data node's microbatches, rounded to the\n"
	"                        nearest number, skip K stages; the rest skip none\n"
	"  --skip-schedule LIST  stages skipped in each phase of the run: 4,3,1,0 (equal parts of\n"
	"                        --iterations) or 4@0,3@25%,1@50%,0@800, or 4@0,30%:2@30% with\n"
	"                        a share of the microbatches; replaces --skip and --skip-share\n"
	"  --recipe NAME         grow the model from its ends: first train only the first and the\n"
	"                        last stage, then start the middle stages as copies of them.\n"
	"                        speed: microbatches make 80% of the visits to stages, and the\n"
	"                        loss ends 1.0% lower. robust: later on, 30% of the microbatches\n"
	"                        skip half of the middle stages. In all, microbatches make 77% of\n"
	"                        the visits, and the loss ends 2.4% higher. If half of the middle\n"
	"                        stages are then skipped, the loss rises by 5%. Replaces --skip\n"
	"  --stack               stages that the schedule begins to visit start as copies of\n"
	"                        trained stages; the first phase must skip all stages that may\n"
	"                        be skipped\n"
	"  --no-swaps            microbatches visit stages in ascending order; --recipe sets it\n"
	"  --phase-moves         each phase of the schedule has its own allocation: nodes move to\n"
	"                        the stages that the phase visits most\n"
	"  --always STAGE,...    stages that every microbatch visits, beside stage 0 and those of\n"
	"                        the cluster file\n"
	"  --microbatches N      microbatches of a data node in an iteration  [the cluster's; 6]\n"
	"  --batch B --sequence T   sequences of a microbatch and their length  [the model's]\n"
	"  --iterations N        stop after N iterations; 0: never  [0]\n"
	"  --corpus FILE...      text to train on  [Debian's fortunes]\n"
	"  --seed N              seed of the run's random numbers  [1]\n"
	"  --skip-bad-steps N    if a loss or gradient is not finite, repeat the iteration with\n"
	"                        the next text, at most N times in a row  [0]\n"
	"  --eval-every N        iterations between validations; 0: never  [5]\n"
	"  --eval-batches N      microbatches of a validation  [8]\n"
	"  --checkpoint-every N  commits between checkpoints on the agents' disks, with one at\n"
	"                        the end; 0: none  [50]\n"
	"  --checkpoint-to STORE copy each checkpoint to a store off the machines, and fetch\n"
	"                        missing files from it: rclone:REMOTE:PATH, or a command for\n"
	"                        \"put NAME\" and \"get NAME\" (docs/reliability.md)\n"
	"  --keep-tasks N        newest iterations whose tasks the record keeps; of earlier\n"
	"                        iterations it keeps every 100th  [10000]\n"
	"  --grad-norm microbatches|visits   divisor of a stage's summed gradient: the number of\n"
	"                        all microbatches, or of those that visited the stage; --recipe\n"
	"                        chooses visits  [microbatches]\n"
	"  --threads N           threads with which an agent computes  [1]\n"
	"  --wire fp32|bf16|q8|q6   format of activations and their gradients between stages;\n"
	"                        all but fp32 round to 1/2, 1/4 or 1/5 of the bytes  [q8]\n"
	"  --sum-wire fp32|q8|q6|q4   format of the sums of gradients over replicas;\n"
	"                        all but fp32 round to 1/4, 1/5 or 1/8 of the bytes  [q6]\n"
	"\n"
	"  --format jsonl        events as JSON lines on stdout\n"
	"  --at N:ACT            before iteration N: skip:K, skip:S%:K, wire:FORMAT,\n"
	"                        sum-wire:FORMAT, finish:N (the learning rate falls over N\n"
	"                        iterations, then the run ends), pause, stop, or ACT:NODE with\n"
	"                        one of fail, recover" FAULT_NAMES_FOLLOW "\n"
	"                        (a fault other than kill lasts 10 s: 4 times slower, 20% lost,\n"
	"                        all links)\n"
	"  --silence-ms N        an agent that is silent for this long is dead  [450]\n"
	"  --overdue-s N         if no task ends for this long plus 20 times the longest task,\n"
	"                        the agents that report work count as dead  [10]\n"
	"  --gather-s N          wait this long for all agents  [30]\n"
	"  --budget S            seconds for the first plan; with a baseline, for every plan\n"
	"                        [0.5]\n"
	"  --ahead S             idle seconds for each plan made in advance: for the loss of a\n"
	"                        node, and for other skip ratios; 0: no such plans  [1]\n"
	"  --name TEXT  --regions FILE  --log debug|info|warn|error\n"
	"  --embedded --supervisor-fd N   (used by skippipe demo)\n";

static int parse_number(const char *name, const char *text, bool whole, double least, double most,
			double *out, struct error *err)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !isfinite(v) || v < least || v > most ||
	    (whole && v != floor(v)))
		return error_set(err, -EINVAL,
				 "--%s: expected a %snumber from %g to %g, got \"%s\"", name,
				 whole ? "whole " : "", least, most, text);
	*out = v;
	return 0;
}

static int parse_stages(struct options *o, const char *text, struct error *err)
{
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

static int parse_skip(struct options *o, const char *text, struct error *err)
{
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

static int parse_skip_share(struct options *o, const char *text, struct error *err)
{
	return skip_share_parse("--skip-share", text, MSG_STAGES - 1, &o->skip_share, &o->skip,
				err);
}

/* Reads the number of an act, or its ratio of skipped stages. */
static int parse_act_number(enum command_verb verb, const char *text, double *v, struct error *err)
{
	uint32_t share, skip;
	const char *at = text;

	if (verb == COMMAND_FINISH)
		return parse_number("at", text, true, 0, 1 << 24, v, err);
	if (verb != COMMAND_SKIP)
		return parse_number("at", text, true, 0, MSG_NODES, v, err);
	if (skip_share_read(&at, MSG_STAGES - 1, &share, &skip, err) != 0 || *at != '\0')
		return error_set(
			err, -EINVAL,
			"--at: skip:%s: expected a number of stages, as 2, or 30%%:2 for a "
			"share of the microbatches",
			text);
	*v = (double)skip_share_pack(share, skip);
	return 0;
}

/* Returns the act of that name: a fault, or one of the verbs that scripts may use. -1: none. */
static int named_act(const char *word, enum fault_kind *fault)
{
	static const enum command_verb scripted[] = { COMMAND_SKIP,     COMMAND_FAIL,
						      COMMAND_RECOVER,  COMMAND_PAUSE,
						      COMMAND_STOP,     COMMAND_WIRE,
						      COMMAND_SUM_WIRE, COMMAND_FINISH };
	int kind = fault_named(word);

	*fault = kind > FAULT_NONE ? (enum fault_kind)kind : FAULT_NONE;
	if (kind > FAULT_NONE)
		return COMMAND_INJECT;
	for (size_t i = 0; i < sizeof(scripted) / sizeof(scripted[0]); i++)
		if (strcmp(verb_name(scripted[i]), word) == 0)
			return (int)scripted[i];
	return -1;
}

/* Reads the format that the act names. */
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

/* Parses ITERATION:ACT[:NUMBER]. All acts but pause and stop have a number, or a format. */
static int parse_act(struct options *o, const char *text, struct error *err)
{
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
	if (verb < 0 || (verb == COMMAND_PAUSE || verb == COMMAND_STOP) != !number)
		return error_set(err, -EINVAL, "--at: unknown act or missing number in \"%s\"",
				 text);
	if (verb == COMMAND_WIRE || verb == COMMAND_SUM_WIRE) {
		if (parse_act_format(verb, number + 1, &v, err) != 0)
			return -EINVAL;
	} else if (number && parse_act_number((enum command_verb)verb, number + 1, &v, err) != 0) {
		return -EINVAL;
	}
	*a = (struct scripted_act){ iteration,  (enum command_verb)verb,
				    fault,      verb == COMMAND_FINISH ? -1 : (int)v,
				    (int64_t)v, false };
	o->n_acts++;
	return 0;
}

static int parse_choice(const char *name, const char *text, const char *const *of, int n, int *out,
			struct error *err)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(text, of[i]) == 0) {
			*out = i;
			return 0;
		}
	}
	return error_set(err, -EINVAL, "--%s: \"%s\" is not one of its values (see --help)", name,
			 text);
}

static int parse_algorithm(struct options *o, const char *text, struct error *err)
{
	if (plan_algorithm_named(text, &o->planning.algorithm))
		return 0;
	return error_set(err, -EINVAL,
			 "--algorithm: expected best, cbs, no-tc2, dtfm or dtfm-skip, got \"%s\"",
			 text);
}

static int parse_wire(struct options *o, const char *text, struct error *err)
{
	if (tensor_format_parse(text, &o->training.formats.wire) == 0 &&
	    tensor_format_suits_activations(o->training.formats.wire))
		return 0;
	return error_set(err, -EINVAL, "--wire: expected fp32, bf16, q8 or q6, got \"%s\"", text);
}

static int parse_sum_wire(struct options *o, const char *text, struct error *err)
{
	if (tensor_format_parse(text, &o->training.formats.sum_wire) == 0 &&
	    tensor_format_suits_sums(o->training.formats.sum_wire))
		return 0;
	return error_set(err, -EINVAL, "--sum-wire: expected fp32, q8, q6 or q4, got \"%s\"",
			 text);
}

static int take_corpus(struct options *o, const char *path, struct error *err)
{
	if (o->training.n_corpus == OPTIONS_MOST_CORPUS)
		return error_set(err, -EINVAL, "--corpus: more than %d files", OPTIONS_MOST_CORPUS);
	o->training.corpus[o->training.n_corpus++] = path;
	return 0;
}

static int take_set(struct options *o, const char *text, struct error *err)
{
	if (o->training.n_set == OPTIONS_MOST_SET)
		return error_set(err, -EINVAL, "--set: more than %d fields", OPTIONS_MOST_SET);
	o->training.set[o->training.n_set++] = text;
	return 0;
}

static int parse_level(struct options *o, const char *text, struct error *err)
{
	static const char *const levels[] = { "debug", "info", "warn", "error" };
	int v = 0, rc = parse_choice("log", text, levels, 4, &v, err);

	o->level = (enum log_level)v;
	return rc;
}

static int take_resumed(struct options *o, const char *folder, struct error *err)
{
	(void)err;
	o->run_dir = folder;
	o->mode.resume = true;
	return 0;
}

static int take_replayed(struct options *o, const char *folder, struct error *err)
{
	(void)err;
	o->run_dir = folder;
	o->mode.replay = true;
	return 0;
}

/* ---- the table of options ---- */

enum value {
	FLAG,
	TEXT,
	CHOICE, /* a choice of two words; the option is true if the second is given */
	INT,
	U32,
	U64,
	REAL,
	SECONDS,
	THOUSANDTHS, /* numbers given as decimals; the last two are stored in microseconds */
	PARSED       /* by `parse` */
};

/* One option. Its text is in `help`, its default in options_parse. */
static const struct row {
	const char *name;
	enum value value;
	/* The option is fixed when the run begins and recorded; it is refused with --resume */
	bool kept;
	/* Offsets in struct options: of the option's field, and of the flag that says that the
	 * option was given (0: none). */
	size_t at, overridden;
	double least, most;
	const char *words[2];
	int (*parse)(struct options *o, const char *text, struct error *err);
} rows[] = {
#define AT(field) .at = offsetof(struct options, field)
#define GIVEN(change) .overridden = offsetof(struct options, changed[CHANGE_##change])
#define NUMBER(least_, most_) .least = (least_), .most = (most_)
	{ "run-dir", TEXT, AT(run_dir) },
	{ "resume", PARSED, .parse = take_resumed },
	{ "replay", PARSED, .parse = take_replayed },
	{ "speed", REAL, AT(mode.speed), NUMBER(0, 10000) },
	{ "listen", TEXT, AT(listen) },
	{ "key", TEXT, AT(key) },
	{ "admitted", TEXT, AT(admitted) },
	{ "cluster", TEXT, true, AT(cluster.file) },
	{ "regions", TEXT, true, AT(cluster.regions) },
	{ "emulate", TEXT, true, AT(cluster.emulate) },
	{ "measure-only", FLAG, AT(mode.measure_only) },
	{ "model", TEXT, true, AT(training.model) },
	{ "from", TEXT, true, AT(training.from) },
	{ "set", PARSED, true, .parse = take_set },
	{ "new-corpus", FLAG, true, AT(training.new_corpus) },
	{ "rehearse", FLAG, true, AT(training.rehearse) },
	{ "scale-bytes", U32, true, AT(training.scale_bytes), NUMBER(1, REHEARSAL_MOST) },
	{ "name", TEXT, true, AT(name) },
	{ "supervisor-fd", INT, AT(supervisor), NUMBER(0, 1 << 20) },
	{ "embedded", FLAG, AT(mode.embedded) },
	{ "agents", U32, true, AT(cluster.agents), NUMBER(2, MSG_NODES) },
	{ "stages", PARSED, true, .parse = parse_stages },
	{ "skip", PARSED, true, .parse = parse_skip },
	{ "skip-share", PARSED, true, .parse = parse_skip_share },
	{ "always", TEXT, true, AT(always) },
	{ "skip-schedule", TEXT, true, AT(skip_schedule) },
	{ "recipe", TEXT, true, AT(recipe) },
	{ "stack", FLAG, true, AT(stack) },
	{ "no-swaps", FLAG, true, AT(planning.no_swaps) },
	{ "phase-moves", FLAG, true, AT(planning.phase_moves) },
	{ "iterations", U64, AT(iterations), GIVEN(ITERATIONS), NUMBER(0, 1e15) },
	{ "time-scale", REAL, true, AT(cluster.time_scale), NUMBER(0, 1e6) },
	{ "seed", U64, true, AT(seed), offsetof(struct options, seed_is_given), NUMBER(0, 9e15) },
	{ "batch", U32, true, AT(training.batch), NUMBER(1, 1 << 16) },
	{ "sequence", U32, true, AT(training.sequence), NUMBER(1, 1 << 20) },
	{ "microbatches", U32, true, AT(training.microbatches), NUMBER(1, 4096) },
	{ "skip-bad-steps", U32, AT(skip_bad_steps), GIVEN(SKIP_BAD_STEPS), NUMBER(0, 1e9) },
	{ "eval-every", U32, AT(eval_every), GIVEN(EVAL_EVERY), NUMBER(0, 1e9) },
	{ "eval-batches", U32, AT(eval_batches), GIVEN(EVAL_BATCHES), NUMBER(1, 4096) },
	{ "checkpoint-every", U32, AT(checkpoint_every), GIVEN(CHECKPOINT_EVERY), NUMBER(0, 1e9) },
	{ "checkpoint-to", TEXT, AT(checkpoint_to) },
	{ "keep-tasks", U64, AT(keep_tasks), GIVEN(KEEP_TASKS), NUMBER(1, 1e9) },
	{ "threads", U32, true, AT(training.threads), NUMBER(1, 1024) },
	{ "grad-norm", CHOICE, true, AT(training.by_visits),
	  .words = { "microbatches", "visits" } },
	{ "corpus", PARSED, true, .parse = take_corpus },
	{ "format", CHOICE, AT(mode.jsonl), .words = { "text", "jsonl" } },
	{ "serialise", FLAG, true, AT(cluster.serialise) },
	{ "sums", CHOICE, true, AT(planning.overlap_sync), .words = { "late", "early" } },
	{ "algorithm", PARSED, true, .parse = parse_algorithm },
	{ "assignment", CHOICE, true, AT(cluster.assignment_given), .words = { "free", "given" } },
	{ "wire", PARSED, true, .parse = parse_wire },
	{ "sum-wire", PARSED, true, .parse = parse_sum_wire },
	{ "at", PARSED, .parse = parse_act },
	{ "silence-ms", THOUSANDTHS, AT(limits.silence_us), GIVEN(SILENCE), NUMBER(50, 1e7) },
	{ "overdue-s", SECONDS, AT(limits.overdue_us), GIVEN(OVERDUE), NUMBER(0.5, 1e7) },
	{ "gather-s", SECONDS, AT(limits.gather_us), GIVEN(GATHER), NUMBER(0, 1e7) },
	{ "budget", REAL, AT(planning.budget_s), GIVEN(BUDGET), NUMBER(0, 3600) },
	{ "ahead", REAL, AT(planning.ahead_s), GIVEN(AHEAD), NUMBER(0, 3600) },
	{ "log", PARSED, .parse = parse_level },
#undef AT
#undef GIVEN
#undef NUMBER
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]), FIRST = 256, HELP = FIRST + ROWS };

/* Stores the value of one option. */
static int take_option(struct options *o, const struct row *r, const char *text, struct error *err)
{
	void *to = (char *)o + r->at;
	double v = 0;
	int chosen = 0, rc = 0;

	if (r->value >= INT && r->value < PARSED &&
	    parse_number(r->name, text, r->value <= U64, r->least, r->most, &v, err) != 0)
		return -EINVAL;
	switch (r->value) {
	case FLAG:
		*(bool *)to = true;
		break;
	case TEXT:
		*(const char **)to = text;
		break;
	case CHOICE:
		rc = parse_choice(r->name, text, r->words, 2, &chosen, err);
		*(bool *)to = chosen == 1;
		break;
	case INT:
		*(int *)to = (int)v;
		break;
	case U32:
		*(uint32_t *)to = (uint32_t)v;
		break;
	case U64:
		*(uint64_t *)to = (uint64_t)v;
		break;
	case REAL:
		*(double *)to = v;
		break;
	case SECONDS:
		*(int64_t *)to = (int64_t)(v * 1e6);
		break;
	case THOUSANDTHS:
		*(int64_t *)to = (int64_t)(v * 1000);
		break;
	case PARSED:
		rc = r->parse(o, text, err);
		break;
	}
	if (r->overridden > 0)
		*(bool *)((char *)o + r->overridden) = true;
	return rc;
}

/* An emulated cluster file is the cluster of the run. Without --emulate there is no time scale. */
static void settle_emulation(struct options *o)
{
	if (o->cluster.emulate && strcmp(o->cluster.emulate, "regions") != 0)
		o->cluster.file = o->cluster.emulate;
	if (!o->cluster.emulate && !o->mode.resume)
		o->cluster.time_scale = 0;
}

/* Refuses options that the published baseline does not have. */
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

	if (!o->run_dir || !o->key || !o->admitted)
		return error_set(err, -EINVAL, "--%s is required",
				 !o->run_dir ? "run-dir"
				 : !o->key   ? "key"
					     : "admitted");
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

/* Fills the table for getopt_long: rows, help, the terminator. */
static void list_options(struct option *longs)
{
	for (int i = 0; i < ROWS; i++)
		longs[i] = (struct option){ rows[i].name, rows[i].value != FLAG, NULL, FIRST + i };
	longs[ROWS] = (struct option){ "help", 0, NULL, HELP };
	longs[ROWS + 1] = (struct option){ NULL, 0, NULL, 0 };
}

/* Sets the defaults, then each option in turn, and checks the combination last. */
int options_parse(struct options *o, int argc, char **argv, struct error *err)
{
	static const int stages[] = { 5, 3, 3, 3, 3, 3 };
	struct option longs[ROWS + 2];
	const char *first_kept = NULL;
	int option, rc;

	*o = (struct options){ .listen = "tcp://127.0.0.1:0",
			       .name = "skippipe",
			       .supervisor = -1,
			       .cluster.agents = 20,
			       .cluster.time_scale = -1,
			       .seed = 1,
			       .eval_every = 5,
			       .checkpoint_every = 50,
			       .eval_batches = 8,
			       .training.threads = 1,
			       .training.formats = { FORMAT_Q8, FORMAT_Q6 },
			       .keep_tasks = 10000,
			       .limits.silence_us = 450000,
			       .limits.overdue_us = 10000000,
			       .limits.gather_us = 30000000,
			       .planning.overlap_sync = true,
			       .planning.budget_s = 0.5,
			       .planning.ahead_s = 1,
			       .level = LOG_INFO,
			       .mode.speed = 1 };
	list_options(longs);
	optind = 1;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
		const struct row *r;

		if (option == HELP) {
			fputs(help, stdout);
			return 1;
		}
		if (option == '?' || option == ':')
			return error_set(err, -EINVAL, "%s: %s (see --help)", argv[optind - 1],
					 option == '?' ? "unknown option" : "needs a value");
		r = &rows[option - FIRST];
		rc = take_option(o, r, optarg, err);
		while (rc == 0 && r->parse == take_corpus && optind < argc &&
		       argv[optind][0] != '-')
			rc = take_corpus(o, argv[optind++], err);
		if (rc != 0)
			return rc;
		if (r->kept && !first_kept)
			first_kept = r->name;
	}
	if (optind < argc)
		return error_set(err, -EINVAL, "%s: unexpected (see --help)", argv[optind]);
	if (o->mode.resume && first_kept)
		return error_set(err, -EINVAL, "--%s: a resumed run keeps the value it began with",
				 first_kept);
	if (o->cluster.n_stages == 0 && !o->cluster.file &&
	    (!o->cluster.emulate || strcmp(o->cluster.emulate, "regions") == 0)) {
		memcpy(o->cluster.stages, stages, sizeof(stages));
		o->cluster.n_stages = 6;
	}
	return check_options(o, err);
}
