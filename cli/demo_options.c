/* The options of a demo and of a rehearsal. Both verbs interpret few of them; options of the
 * controller pass through a table and are checked by the controller. */
#include "cli/demo_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cluster_size.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char demo_help[] =
	"usage: skippipe demo [options]\n"
	"\n"
	"Trains a small LLaMA on English text. One controller, N agents and the console run on\n"
	"this machine. The network between the agents is emulated with the delays of 12 cloud\n"
	"regions. docs/machines.md describes a cluster of several machines.\n"
	"q in the console, or Ctrl-C, ends the demo and all its processes.\n"
	"\n"
	"  --agents N|MIN..MAX   nodes; MIN of them start, and the others when they are\n"
	"                        recovered  [20]\n"
	"  --stages A,B,...      nodes per stage  [5,3,3,3,3,3; spread evenly for another N]\n"
	"  --cut A,B,...         layers of each stage, as 0,3,3,2,2,2  [equally]\n"
	"  --skip K/S            every microbatch skips K of S stages  [a third of the stages, as\n"
	"                        2/6; 0 with dtfm]\n"
	"  --algorithm NAME      the planner: best, or a published baseline: dtfm, dtfm-skip,\n"
	"                        no-tc2, cbs (skippipe help controller)  [best]\n"
	"  --iterations N        stop after N iterations  [never]\n"
	"  --time-scale X        real seconds per emulated second; 0: no emulated delays\n"
	"                        [chosen so that an iteration takes 2 to 3 s]\n"
	"  --corpus FILE...      text to train on  [Debian's fortunes]\n"
	"  --set FIELD=VALUE     change hyperparameters: lr, warmup, ... (docs/rates.md)\n"
	"  --from FOLDER         begin with the weights of a checkpoint or a Hugging Face folder\n"
	"  --device D,...        devices, which agents get in turns; cuda:all: every GPU of\n"
	"                        this machine (skippipe help agent lists the values)  [cpu]\n"
	"  --recompute none|norms|block  activations that a backward pass recomputes  [norms]\n"
	"  --seed N              [1]\n"
	"  --run-dir DIR         the folder that records the run  [a new folder in\n"
	"                        ~/.local/state/skippipe/runs]\n"
	"  --headless            no console; events on stdout\n"
	"  --format text|jsonl   format of these events  [text]\n"
	"  --theme NAME          the console's theme\n"
	"  --price FILE          prices of the nodes, for the console (skippipe help console)\n"
	"\n"
	"Options of the controller (skippipe help controller): --model --always --stack --recipe\n"
	"--skip-share --skip-schedule --no-swaps --phase-moves --batch --sequence --microbatches\n"
	"--eval-every --eval-batches --grad-norm\n"
	"--checkpoint-every --keep-tasks --at --serialise --threads --wire --sum-wire --name\n"
	"--silence-ms --overdue-s --gather-s --budget --ahead --log --regions --sums\n"
	"--new-corpus --checkpoint-to --skip-bad-steps --metrics --on-alert --alert-url\n";

const char rehearse_help[] =
	"usage: skippipe rehearse [options]\n"
	"\n"
	"Tries a cluster before it is rented. One controller, an agent for each node and the\n"
	"console run on this machine, over an emulated network. The agents compute nothing:\n"
	"they sleep for the times of the cluster file and exchange tensors with made-up\n"
	"contents. Plans, predictions, faults and recovery are those of a real run. Nothing is\n"
	"trained: there is no loss, and no other verb takes the checkpoints of a rehearsal.\n"
	"\n"
	"  --cluster FILE        skippipe.cluster/1  [20 nodes in 12 cloud regions, for which\n"
	"                        --agents and --stages may be given as to skippipe demo]\n"
	"  --model NAME|FILE     the model to rehearse  [1.5b]\n"
	"  --scale-bytes K       tensors take 1/K of the model's bytes on this machine; the\n"
	"                        emulated network delays them as if they were whole  [1000]\n"
	"  --skip K/S            every microbatch skips K of S stages  [a third; 0 with dtfm]\n"
	"  --time-scale X        real seconds per second of the cluster  [1]\n"
	"  --wire F  --sum-wire F   formats of activations and of sums\n"
	"  --iterations N        stop after N iterations  [never]\n"
	"\n"
	"Other options are those of skippipe demo, except --corpus, --from, --new-corpus,\n"
	"--device, --recompute, --eval-every and --eval-batches. To rehearse on a real or a test\n"
	"network, start the controller with --rehearse and the agents with --device pretend\n"
	"(docs/machines.md).\n";

/* Options of the controller that concern training only. */
static const char *const training_only[] = { "from", "new-corpus", "eval-every", "eval-batches" };

/* Options that only the controller interprets. A flag has no value. A controller that resumes the
 * run reads most of them from the record; `again` marks those that it needs again. */
static const struct {
	const char *name;
	bool flag, again;
} passed[] = {
	{ "iterations", false, false },
	{ "time-scale", false, false },
	{ "seed", false, false },
	{ "model", false, false },
	{ "cut", false, false },
	{ "from", false, false },
	{ "new-corpus", true, false },
	{ "set", false, false },
	{ "always", false, false },
	{ "skip-schedule", false, false },
	{ "stack", true, false },
	{ "recipe", false, false },
	{ "skip-share", false, false },
	{ "phase-moves", true, false },
	{ "no-swaps", true, false },
	{ "batch", false, false },
	{ "sequence", false, false },
	{ "microbatches", false, false },
	{ "eval-every", false, false },
	{ "checkpoint-every", false, false },
	{ "eval-batches", false, false },
	{ "skip-bad-steps", false, false },
	{ "serialise", true, false },
	{ "sums", false, false },
	{ "grad-norm", false, false },
	{ "threads", false, false },
	{ "wire", false, false },
	{ "sum-wire", false, false },
	{ "name", false, false },
	{ "regions", false, false },
	{ "at", false, true },
	{ "silence-ms", false, false },
	{ "gather-s", false, false },
	{ "overdue-s", false, false },
	{ "keep-tasks", false, false },
	{ "checkpoint-to", false, true },
	{ "metrics", false, true },
	{ "on-alert", false, true },
	{ "alert-url", false, true },
	{ "budget", false, false },
	{ "ahead", false, false },
	{ "log", false, true },
};

static int parse_whole_number(const char *name, const char *text, uint32_t least, uint32_t most,
			      uint32_t *out, struct error *err)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || v < least || v > most)
		return error_set(err, -EINVAL,
				 "%s: expected a number from %u to %u, got \"%s\"", name, least,
				 most, text);
	*out = (uint32_t)v;
	return 0;
}

static int parse_stages(struct demo_options *o, const char *text, struct error *err)
{
	const char *at = text;

	o->n_stages = 0;
	for (;;) {
		char *end;
		unsigned long v = strtoul(at, &end, 10);

		if (!isdigit((unsigned char)*at) || v < 1 || v > DEMO_AGENTS_MOST ||
		    o->n_stages == DEMO_STAGES_MOST || (*end && *end != ','))
			return error_set(err, -EINVAL,
					 "--stages: expected counts like 5,3,3, got \"%s\"",
					 text);
		o->stages[o->n_stages++] = (uint32_t)v;
		if (!*end)
			return 0;
		at = end + 1;
	}
}

/* Parses "K" or "K/S": K skipped stages, to o->skip, of S, to *of. Without S *of is 0. */
static int parse_skip(struct demo_options *o, const char *text, uint32_t *of, struct error *err)
{
	char k[16];
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	int rc;

	*of = 0;
	if (n >= sizeof(k))
		return error_set(err, -EINVAL, "--skip: expected K or K/S, got \"%s\"", text);
	memcpy(k, text, n);
	k[n] = '\0';
	rc = parse_whole_number("--skip", k, 0, DEMO_STAGES_MOST - 1, &o->skip, err);
	if (rc == 0 && slash)
		rc = parse_whole_number("--skip, number of stages", slash + 1, 2,
					DEMO_STAGES_MOST, of, err);
	return rc;
}

/* Returns the value of argv[0], which is "--name" (its value is argv[1]) or "--name=value", and
 * moves *argv behind it. */
static const char *value_of(char ***argv, size_t length)
{
	char **at = *argv;

	if (at[0][length] == '=') {
		*argv = at + 1;
		return at[0] + length + 1;
	}
	if (!at[1])
		return NULL;
	*argv = at + 2;
	return at[1];
}

static bool is_option_named(const char *arg, const char *name, size_t *length)
{
	*length = 2 + strlen(name);
	return strncmp(arg, "--", 2) == 0 && strncmp(arg + 2, name, *length - 2) == 0 &&
	       (arg[*length] == '\0' || arg[*length] == '=');
}

/* Returns 1 if *argv was an option of the controller and was consumed, 0 if it is another
 * option. */
static int take_passed(struct demo_options *o, char ***argv, struct error *err)
{
	for (size_t i = 0; o->rehearse && i < COUNT(training_only); i++) {
		size_t length;

		if (is_option_named(**argv, training_only[i], &length))
			return error_set(err, -EINVAL, "--%s: a rehearsal trains nothing",
					 training_only[i]);
	}
	for (size_t i = 0; i < COUNT(passed); i++) {
		size_t length;
		const char *value;

		if (!is_option_named(**argv, passed[i].name, &length))
			continue;
		args_addf(&o->controller, "--%s", passed[i].name);
		if (passed[i].flag) {
			(*argv)++;
			return 1;
		}
		value = value_of(argv, length);
		if (!value)
			return error_set(err, -EINVAL, "--%s: needs a value", passed[i].name);
		args_add(&o->controller, value);
		if (passed[i].again) {
			args_addf(&o->again, "--%s", passed[i].name);
			args_add(&o->again, value);
		}
		return 1;
	}
	return 0;
}

/* Adds the absolute path if there is one, because the record is read from other folders. */
static void add_path(struct args *a, const char *path)
{
	char *absolute = realpath(path, NULL);

	args_add(a, absolute ? absolute : path);
	free(absolute);
}

static int take_corpus(struct demo_options *o, char ***argv, const char *first)
{
	args_add(&o->controller, "--corpus");
	add_path(&o->controller, first);
	for (; **argv && ***argv != '-'; (*argv)++)
		add_path(&o->controller, **argv);
	return 0;
}

/* The options that were given, before settle_options reconciles them. */
struct given {
	uint32_t skip_of; /* number of stages in --skip K/S; 0: not given */
	bool agents, stages, skip;
	uint32_t cluster_stages; /* number of stages in the cluster file; 0: there is no file */
};

static int one_of(const char *name, const char *text, const char *a, const char *b,
		  struct error *err)
{
	if (strcmp(text, a) == 0 || strcmp(text, b) == 0)
		return 0;
	return error_set(err, -EINVAL, "%s: expected %s or %s, got \"%s\"", name, a, b, text);
}

/* The demo's own options: for both, for training only, for rehearsals only. */
enum own {
	AGENTS,
	STAGES,
	SKIP,
	ALGORITHM,
	RUN_DIR,
	FORMAT,
	THEME,
	PRICE,
	CORPUS,
	DEVICE,
	RECOMPUTE,
	CLUSTER,
	SCALE_BYTES,
	OWN
};

static const char *const own[OWN] = { "agents",    "stages",  "skip",       "algorithm", "run-dir",
				      "format",    "theme",   "price",      "corpus",    "device",
				      "recompute", "cluster", "scale-bytes" };

/* Returns which of the own options of this verb the word is; OWN: none. */
static enum own own_named(const struct demo_options *o, const char *arg, size_t *length)
{
	for (enum own i = 0; i < OWN; i++)
		if ((o->rehearse ? i < CORPUS || i >= CLUSTER : i < CLUSTER) &&
		    is_option_named(arg, own[i], length))
			return i;
	return OWN;
}

static int take_cluster(struct demo_options *o, struct given *given, const char *path,
			struct error *err)
{
	int rc = cluster_size(path, &o->agents, &given->cluster_stages, err);

	if (rc != 0)
		return rc;
	if (o->agents > DEMO_AGENTS_MOST || given->cluster_stages > DEMO_STAGES_MOST)
		return error_set(err, -E2BIG, "%s: more than %d nodes or %d stages", path,
				 DEMO_AGENTS_MOST, DEMO_STAGES_MOST);
	o->n_stages = given->cluster_stages;
	o->cluster = path;
	return 0;
}

/* "N", or "MIN..MAX". */
static int parse_agents(struct demo_options *o, const char *text, struct error *err)
{
	const char *dots = strstr(text, "..");
	char least[16];
	int rc;

	o->started = 0;
	if (!dots)
		return parse_whole_number("--agents", text, 2, DEMO_AGENTS_MOST, &o->agents, err);
	rc = parse_whole_number("--agents", dots + 2, 2, DEMO_AGENTS_MOST, &o->agents, err);
	snprintf(least, sizeof(least), "%.*s", (int)(dots - text < 15 ? dots - text : 15), text);
	return rc == 0 ? parse_whole_number("--agents", least, 2, o->agents, &o->started, err) : rc;
}

static int take_own(struct demo_options *o, struct given *given, char ***argv, struct error *err)
{
	const char *arg = **argv, *value;
	size_t length = 0;
	enum own which = own_named(o, arg, &length);

	if (which == OWN)
		return error_set(err, -EINVAL, "%s: unexpected (skippipe help %s)", arg,
				 o->rehearse ? "rehearse" : "demo");
	value = value_of(argv, length);
	if (!value)
		return error_set(err, -EINVAL, "--%s: needs a value", own[which]);
	switch (which) {
	case AGENTS:
		given->agents = true;
		return parse_agents(o, value, err);
	case STAGES:
		given->stages = true;
		return parse_stages(o, value, err);
	case SKIP:
		given->skip = true;
		return parse_skip(o, value, &given->skip_of, err);
	case CORPUS:
		return take_corpus(o, argv, value);
	case DEVICE:
		o->device = value;
		return 0; /* the agent checks the value */
	case RECOMPUTE:
		o->recompute = value;
		return 0; /* the agent checks the value */
	case ALGORITHM:
		o->algorithm = value;
		return 0; /* the controller checks the value */
	case RUN_DIR:
		o->run_dir = value;
		return 0;
	case FORMAT:
		o->format = value;
		return one_of("--format", value, "text", "jsonl", err);
	case CLUSTER:
		return take_cluster(o, given, value, err);
	case SCALE_BYTES:
		args_addf(&o->controller, "--scale-bytes=%s", value);
		return 0; /* the controller checks the value */
	case PRICE:
		o->price = value;
		return 0;
	default:
		o->theme = value;
		return 0;
	}
}

int demo_deal_stages(uint32_t n, uint32_t n_stages, uint32_t *stages, struct error *err)
{
	uint32_t data = (n + 2) / 4, rest;

	if (n < n_stages)
		return error_set(err, -EINVAL, "--agents %u: %u stages need at least %u", n,
				 n_stages, n_stages);
	if (data == 0 || n_stages == 1)
		data = n_stages == 1 ? n : 1;
	if (n - data < n_stages - 1)
		data = n - (n_stages - 1);
	rest = n - data;
	stages[0] = data;
	for (uint32_t s = 1; s < n_stages; s++)
		stages[s] = rest / (n_stages - 1) + (s - 1 < rest % (n_stages - 1));
	return 0;
}

/* Checks that the given numbers of nodes, stages and skips agree, and derives the others. */
static int settle_options(struct demo_options *o, const struct given *given, struct error *err)
{
	uint32_t sum = 0;

	if (given->cluster_stages && (given->agents || given->stages))
		return error_set(err, -EINVAL,
				 "--cluster: not with --agents or --stages, which the file "
				 "determines");
	if (given->cluster_stages) {
		if (given->skip_of && given->skip_of != o->n_stages)
			return error_set(err, -EINVAL, "--skip %u/%u: %s has %u stages", o->skip,
					 given->skip_of, o->cluster, o->n_stages);
	} else if (given->stages) {
		for (uint32_t s = 0; s < o->n_stages; s++)
			sum += o->stages[s];
		if (given->agents && sum != o->agents)
			return error_set(err, -EINVAL,
					 "--stages adds up to %u nodes, --agents is %u", sum,
					 o->agents);
		if (sum > DEMO_AGENTS_MOST)
			return error_set(err, -EINVAL,
					 "--stages adds up to %u nodes, more than %d", sum,
					 DEMO_AGENTS_MOST);
		if (given->skip_of && given->skip_of != o->n_stages)
			return error_set(err, -EINVAL, "--skip %u/%u: --stages has %u stages",
					 o->skip, given->skip_of, o->n_stages);
		o->agents = sum;
	} else {
		if (given->skip_of)
			o->n_stages = given->skip_of;
		if (demo_deal_stages(o->agents, o->n_stages, o->stages, err) != 0)
			return -EINVAL;
	}
	if (!given->skip)
		o->skip = o->n_stages / 3;
	if (o->algorithm && strcmp(o->algorithm, "dtfm") == 0) {
		if (given->skip && o->skip > 0)
			return error_set(
				err, -EINVAL,
				"--skip %u: --algorithm dtfm visits every stage; use dtfm-skip",
				o->skip);
		o->skip = 0;
	}
	if (o->skip >= o->n_stages)
		return error_set(
			err, -EINVAL,
			"--skip %u: there are only %u stages, and stage 0 cannot be skipped",
			o->skip, o->n_stages);
	return 0;
}

/* Options of the controller are passed on unchanged. The demo's own options are checked together at
 * the end, because they depend on each other. */
int demo_options_parse(struct demo_options *o, bool rehearse, char **argv, struct error *err)
{
	struct given given = { 0 };
	int rc = 0;

	*o = (struct demo_options){ .agents = 20, .skip = 2, .n_stages = 6, .format = "text",
				    .rehearse = rehearse };
	if (rehearse) { /* the last value of an option counts */
		args_add(&o->controller, "--rehearse");
		args_add(&o->controller, "--model=1.5b");
		args_add(&o->controller, "--time-scale=1");
	}
	while (*argv && rc == 0) {
		if (strcmp(*argv, "--help") == 0 || strcmp(*argv, "-h") == 0) {
			o->help = true;
			return 0;
		}
		if (strcmp(*argv, "--headless") == 0) {
			o->headless = true;
			argv++;
			continue;
		}
		rc = take_passed(o, &argv, err);
		if (rc == 0)
			rc = take_own(o, &given, &argv, err);
		else if (rc == 1)
			rc = 0;
	}
	if (rc == 0)
		rc = settle_options(o, &given, err);
	if (rc != 0)
		demo_options_free(o);
	return rc;
}

void demo_options_free(struct demo_options *o)
{
	args_free(&o->controller);
	args_free(&o->again);
}
