/* The options of a demo and of a rehearsal, in one table. This program interprets a few of the
 * options, and passes the others on to the controller, which checks them. */
#include "cli/demo_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/options.h"
#include "cli/cluster_size.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The options that the user has given. settle_options derives the numbers that the user has not
 * given. */
struct given {
	uint32_t skip_of; /* number of stages in --skip K/S; 0: not given */
	bool agents, stages, skip;
	uint32_t cluster_stages; /* number of stages in the cluster file; 0: no file was given */
};

/* The data that options_read passes to the function that parses an option. */
struct reading {
	struct demo_options o;
	struct given given;
	bool jsonl;
};

/* ---- values ---- */

static int parse_agents(void *options, const char *text, struct error *err)
{
	struct demo_options *o = &((struct reading *)options)->o;

	return options_parse_range("agents", text, 2, DEMO_AGENTS_MOST, &o->started, &o->agents,
				   err);
}

static int parse_stages(void *options, const char *text, struct error *err)
{
	struct demo_options *o = &((struct reading *)options)->o;
	const char *at = text;

	o->n_stages = 0;
	for (;;) {
		char *end;
		unsigned long v = strtoul(at, &end, 10);

		if (!isdigit((unsigned char)*at) || v < 1 || v > DEMO_AGENTS_MOST ||
		    o->n_stages == DEMO_STAGES_MOST || (*end && *end != ','))
			return error_set(err, -EINVAL,
					 "--stages: expected counts like 5,3,3, got \"%s\"", text);
		o->stages[o->n_stages++] = (uint32_t)v;
		if (!*end)
			return 0;
		at = end + 1;
	}
}

/* Parses "K" or "K/S": K skipped stages of S. */
static int parse_skip(void *options, const char *text, struct error *err)
{
	struct reading *r = options;
	char *end;
	unsigned long k = strtoul(text, &end, 10), of = 0;
	bool has_stages = *end == '/', fits = isdigit((unsigned char)*text) && k < DEMO_STAGES_MOST;

	if (has_stages) {
		const char *stages = end + 1;

		of = strtoul(stages, &end, 10);
		fits = fits && isdigit((unsigned char)*stages) && of >= 2 && of <= DEMO_STAGES_MOST;
	}
	if (!fits || *end)
		return error_set(err, -EINVAL,
				 "--skip: expected K or K/S, with at most %d stages, got \"%s\"",
				 DEMO_STAGES_MOST, text);
	r->o.skip = (uint32_t)k;
	r->given.skip_of = (uint32_t)of;
	return 0;
}

/* Passes --corpus on to the controller. An existing file's path is made absolute, because the
 * record keeps the path and may be read in another working folder. */
static int take_corpus(void *options, const char *path, struct error *err)
{
	struct args *a = &((struct reading *)options)->o.controller;
	char *absolute = realpath(path, NULL);

	(void)err;
	args_add(a, "--corpus");
	args_add(a, absolute ? absolute : path);
	free(absolute);
	return 0;
}

static int take_cluster(void *options, const char *path, struct error *err)
{
	struct reading *r = options;
	int rc = cluster_size(path, &r->o.agents, &r->given.cluster_stages, err);

	if (rc != 0)
		return rc;
	if (r->o.agents > DEMO_AGENTS_MOST || r->given.cluster_stages > DEMO_STAGES_MOST)
		return error_set(err, -E2BIG, "%s: more than %d nodes or %d stages", path,
				 DEMO_AGENTS_MOST, DEMO_STAGES_MOST);
	r->o.n_stages = r->given.cluster_stages;
	r->o.cluster = path;
	return 0;
}

/* ---- the table of options ---- */

/* The verbs that accept an option. AGAIN: a controller that resumes the run needs the option again,
 * because the record does not keep it. */
enum { DEMO = 1, REHEARSE = 2, BOTH = DEMO | REHEARSE, AGAIN = 4 };

static int pass_on(void *options, const struct options_row *r, const char *value, struct error *err)
{
	struct demo_options *o = &((struct reading *)options)->o;
	struct args *lists[] = { &o->controller, r->mark & AGAIN ? &o->again : NULL };

	(void)err;
	for (size_t i = 0; i < COUNT(lists); i++) {
		if (!lists[i])
			continue;
		args_addf(lists[i], "--%s", r->name);
		if (value)
			args_add(lists[i], value);
	}
	return 0;
}

static const char *const formats[] = { "text", "jsonl", NULL };

#define AT(field) .at = offsetof(struct reading, field)
#define GIVEN(field) .given = offsetof(struct reading, given.field)
#define OF(verbs) .mark = (verbs)
/* Options that only the controller interprets. The help lists the options that have a help
 * text. */
#define PASSED(name, value) name, OPTIONS_PASSED, value
static const struct options_row rows[] = {
	{ "cluster", OPTIONS_PARSED, "FILE", .parse = take_cluster, OF(REHEARSE),
	  .help = "skippipe.cluster/1, in place of --agents and --stages [20 nodes in 12 cloud "
		  "regions]" },
	{ "fleet", OPTIONS_TEXT, "FILE", AT(o.fleet), OF(REHEARSE),
	  .help = "skippipe.fleet/1: choose a cluster of these machines, as skippipe plan --fleet, "
		  "and rehearse it" },
	{ "agents", OPTIONS_PARSED, "N|MIN..MAX", "20",
	  "nodes; MIN of them start, and the others when they are recovered",
	  .parse = parse_agents, GIVEN(agents), OF(BOTH) },
	{ "stages", OPTIONS_PARSED, "A,B,...", .parse = parse_stages, GIVEN(stages), OF(BOTH),
	  .help = "nodes per stage [5,3,3,3,3,3; spread evenly for another N]" },
	{ PASSED("model", "NAME|FILE"), OF(REHEARSE), .help = "the model to rehearse [1.5b]" },
	{ PASSED("scale-bytes", "K"), OF(REHEARSE),
	  .help = "tensors take 1/K of the model's bytes on this machine; the emulated network "
		  "delays them as if they were whole [1000]" },
	{ PASSED("cut", "A,B,..."), OF(BOTH),
	  .help = "layers of each stage, as 0,3,3,2,2,2 [equally]" },
	{ "skip", OPTIONS_PARSED, "K/S", .parse = parse_skip, GIVEN(skip), OF(BOTH),
	  .help = "every microbatch skips K of S stages [a third of the stages, as 2/6; 0 with "
		  "dtfm]" },
	{ "algorithm", OPTIONS_TEXT, "NAME", AT(o.algorithm), OF(BOTH),
	  .help = "the planner: best, or a published baseline: dtfm, dtfm-skip, no-tc2, cbs "
		  "(skippipe help controller) [best]" },
	{ PASSED("iterations", "N"), OF(BOTH), .help = "stop after N iterations [never]" },
	{ PASSED("time-scale", "X"), OF(DEMO),
	  .help = "real seconds per emulated second; 0: no emulated delays [chosen so that an "
		  "iteration takes 2 to 3 s]" },
	{ PASSED("time-scale", "X"), OF(REHEARSE),
	  .help = "real seconds per second of the cluster [1]" },
	{ PASSED("wire", "F"), OF(REHEARSE), .help = "format of activations [q8]" },
	{ PASSED("sum-wire", "F"), OF(REHEARSE), .help = "format of sums of gradients [q6]" },
	{ "corpus", OPTIONS_PARSED, "FILE...", .parse = take_corpus, .many = true, OF(DEMO),
	  .help = "text to train on [Debian's fortunes]" },
	{ PASSED("set", "FIELD=VALUE"), OF(DEMO),
	  .help = "change hyperparameters: lr, warmup, ... (docs/rates.md)" },
	{ PASSED("from", "FOLDER"), OF(DEMO),
	  .help = "begin with the weights of a checkpoint or a Hugging Face folder" },
	{ "device", OPTIONS_TEXT, "D,...", AT(o.device), OF(DEMO),
	  .help = "devices, which agents get in turns; cuda:all: every GPU of this machine "
		  "(skippipe help agent lists the values) [cpu]" },
	{ "recompute", OPTIONS_TEXT, "none|norms|block", AT(o.recompute), OF(DEMO),
	  .help = "activations that a backward pass recomputes [norms]" },
	{ PASSED("seed", "N"), OF(BOTH), .help = "seed of the random numbers [1]" },
	{ "run-dir", OPTIONS_TEXT, "DIR", AT(o.run_dir), OF(BOTH),
	  .help = "the folder that records the run [a new folder in "
		  "~/.local/state/skippipe/runs]" },
	{ "headless", OPTIONS_FLAG, AT(o.headless), OF(BOTH),
	  .help = "no console; events on stdout" },
	{ "format", OPTIONS_SECOND, "text|jsonl", "text", "format of these events", AT(jsonl),
	  .words = formats, OF(BOTH) },
	{ "theme", OPTIONS_TEXT, "NAME", AT(o.theme), OF(BOTH), .help = "the console's theme" },
	{ "price", OPTIONS_TEXT, "FILE", AT(o.price), OF(BOTH),
	  .help = "prices of the nodes, for the console (skippipe help console)" },
	{ "help", OPTIONS_HELP, .help = "print this help" },

	{ PASSED("model", "NAME|FILE"), OF(DEMO) },
	{ PASSED("set", "FIELD=VALUE"), OF(REHEARSE) },
	{ PASSED("new-corpus", NULL), OF(DEMO) },
	{ PASSED("assignment", "free|given"), OF(BOTH) },
	{ PASSED("always", "STAGE,..."), OF(BOTH) },
	{ PASSED("stack", NULL), OF(BOTH) },
	{ PASSED("recipe", "NAME"), OF(BOTH) },
	{ PASSED("skip-share", "S%:K"), OF(BOTH) },
	{ PASSED("skip-schedule", "LIST"), OF(BOTH) },
	{ PASSED("no-swaps", NULL), OF(BOTH) },
	{ PASSED("phase-moves", NULL), OF(BOTH) },
	{ PASSED("batch", "B"), OF(BOTH) },
	{ PASSED("sequence", "T"), OF(BOTH) },
	{ PASSED("microbatches", "N"), OF(BOTH) },
	{ PASSED("eval-every", "K"), OF(DEMO) },
	{ PASSED("eval-batches", "N"), OF(DEMO) },
	{ PASSED("grad-norm", "F"), OF(BOTH) },
	{ PASSED("checkpoint-every", "K"), OF(BOTH) },
	{ PASSED("keep-tasks", "N"), OF(BOTH) },
	{ PASSED("at", "I:ACT"), OF(BOTH | AGAIN) },
	{ PASSED("serialise", NULL), OF(BOTH) },
	{ PASSED("threads", "N"), OF(BOTH) },
	{ PASSED("wire", "F"), OF(DEMO) },
	{ PASSED("sum-wire", "F"), OF(DEMO) },
	{ PASSED("name", "TEXT"), OF(BOTH) },
	{ PASSED("silence-ms", "N"), OF(BOTH) },
	{ PASSED("overdue-s", "S"), OF(BOTH) },
	{ PASSED("gather-s", "S"), OF(BOTH) },
	{ PASSED("budget", "S"), OF(BOTH) },
	{ PASSED("ahead", "S"), OF(BOTH) },
	{ PASSED("log", "LEVEL"), OF(BOTH | AGAIN) },
	{ PASSED("regions", "FILE"), OF(BOTH) },
	{ PASSED("sums", "early|late"), OF(BOTH) },
	{ PASSED("checkpoint-to", "STORE"), OF(BOTH | AGAIN) },
	{ PASSED("skip-bad-steps", "N"), OF(BOTH) },
	{ PASSED("metrics", "ADDRESS"), OF(BOTH | AGAIN) },
	{ PASSED("on-alert", "COMMAND"), OF(BOTH | AGAIN) },
	{ PASSED("alert-url", "URL"), OF(BOTH | AGAIN) },
};
#undef AT
#undef GIVEN
#undef OF
#undef PASSED

static const struct options_table table_of_demo = {
	rows,
	COUNT(rows),
	.part = DEMO,
	.verb = "demo",
	.pass = pass_on,
	.intro = "usage: skippipe demo [options]\n"
		 "\n"
		 "Trains a small LLaMA on English text. One controller, N agents and the console "
		 "run on\n"
		 "this machine. The network between the agents is emulated with the delays of 12 "
		 "cloud\n"
		 "regions. docs/machines.md describes a cluster of several machines.\n"
		 "q in the console, or Ctrl-C, ends the demo and all its processes.\n"
		 "\n",
};

static const struct options_table table_of_rehearsal = {
	rows,
	COUNT(rows),
	.part = REHEARSE,
	.verb = "rehearse",
	.pass = pass_on,
	.hint = "a rehearsal computes nothing",
	.intro = "usage: skippipe rehearse [options]\n"
		 "\n"
		 "Tries a cluster before it is rented. One controller, an agent for each node and "
		 "the\n"
		 "console run on this machine, over an emulated network. The agents compute "
		 "nothing:\n"
		 "they sleep for the times of the cluster file and exchange tensors with made-up\n"
		 "contents. Plans, predictions, faults and recovery are those of a real run. "
		 "Nothing is\n"
		 "trained: there is no loss, and no other verb takes the checkpoints of a "
		 "rehearsal.\n"
		 "To rehearse on a real or a test network, start the controller with --rehearse "
		 "and the\n"
		 "agents with --device pretend (docs/machines.md).\n"
		 "\n",
};

void demo_options_help(bool rehearse, FILE *to)
{
	const struct options_table *t = rehearse ? &table_of_rehearsal : &table_of_demo;
	enum { COLUMNS = 88 };
	int x;

	options_help(t, to);
	x = fprintf(to, "\nOptions of the controller (skippipe help controller):") - 1;
	for (size_t i = 0; i < t->n; i++) {
		const struct options_row *r = &t->rows[i];

		if (r->help || (r->mark & t->part) == 0)
			continue;
		if (x + 3 + (int)strlen(r->name) > COLUMNS)
			x = fprintf(to, "\n") - 1;
		x += fprintf(to, "%s--%s", x ? " " : "", r->name);
	}
	fputc('\n', to);
}

/* ---- numbers of nodes, stages and skipped stages ---- */

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

/* Checks that the numbers of nodes, stages and skipped stages fit together, and derives the numbers
 * that were not given. */
static int settle_options(struct demo_options *o, const struct given *given, struct error *err)
{
	uint32_t sum = 0;

	if ((given->cluster_stages || o->fleet) && (given->agents || given->stages))
		return error_set(err, -EINVAL,
				 "--%s: not with --agents or --stages, which the file determines",
				 o->fleet ? "fleet" : "cluster");
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
			return error_set(err, -EINVAL, "--stages adds up to %u nodes, more than %d",
					 sum, DEMO_AGENTS_MOST);
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
	if (o->started > 0 && o->started < o->n_stages)
		return error_set(err, -EINVAL, "--agents %u..%u: %u stages need at least %u",
				 o->started, o->agents, o->n_stages, o->n_stages);
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

int demo_options_parse(struct demo_options *o, bool rehearse, char **argv, struct error *err)
{
	const struct options_table *t = rehearse ? &table_of_rehearsal : &table_of_demo;
	struct reading r = { .o = { .skip = 2, .n_stages = 6, .rehearse = rehearse } };
	int argc = 0, rc;

	if (rehearse) { /* defaults; the user's options come later and override them */
		args_add(&r.o.controller, "--rehearse");
		args_add(&r.o.controller, "--model=1.5b");
		args_add(&r.o.controller, "--time-scale=1");
	}
	while (argv[argc])
		argc++;
	rc = options_read(t, &r, argc, argv, NULL, err);
	r.o.help = rc > 0;
	r.o.format = r.jsonl ? "jsonl" : "text";
	if (rc == 0)
		rc = settle_options(&r.o, &r.given, err);
	*o = r.o;
	if (rc < 0)
		demo_options_free(o);
	return rc < 0 ? rc : 0;
}

void demo_options_free(struct demo_options *o)
{
	args_free(&o->controller);
	args_free(&o->again);
}
