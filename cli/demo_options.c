#include "cli/demo_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char demo_help[] =
	"usage: skippipe demo [options]\n"
	"\n"
	"Trains a small LLaMA on English text, on an embedded cluster whose network is emulated:\n"
	"one controller and N agents on this machine, between them the delays of 12 cloud regions,\n"
	"and the console on top. On machines of your own nothing is emulated (docs/machines.md).\n"
	"q in the console, or Ctrl-C, ends it and everything it started.\n"
	"\n"
	"  --agents N            nodes  [20]\n"
	"  --stages A,B,...      nodes per stage  [5,3,3,3,3,3; dealt evenly for another N]\n"
	"  --skip K/S            every microbatch leaves out K of S stages  [2/6; 0 with dtfm]\n"
	"  --algorithm NAME      what plans the run: best, or a published baseline: dtfm, dtfm-skip,\n"
	"                        no-tc2, cbs (skippipe help controller)  [best]\n"
	"  --iterations N        stop after so many  [go on]\n"
	"  --time-scale X        real seconds for an emulated one; 0: no emulated delays\n"
	"                        [so that an iteration takes 2 to 3 s]\n"
	"  --corpus FILE...      text to train on  [Debian's fortunes]\n"
	"  --device D,...        what agents compute on, in turns; cuda:all is every GPU of this\n"
	"                        machine (skippipe help agent says what D can be)  [cpu]\n"
	"  --recompute none|norms|block  what a backward pass computes again  [norms]\n"
	"  --seed N              [1]\n"
	"  --run-dir DIR         where the run is recorded  [a new folder in\n"
	"                        ~/.local/state/skippipe/runs]\n"
	"  --headless            no console; events on stdout\n"
	"  --format text|jsonl   of those events  [text]\n"
	"  --theme NAME          of the console\n"
	"\n"
	"Passed to the controller as they are (skippipe help controller): --model --batch\n"
	"--sequence --microbatches --eval-every --eval-batches --checkpoint-every --keep-tasks --at --serialise\n"
	"--threads --wire --name --silence-ms --overdue-s --gather-s --budget --ahead --log --regions\n"
	"--split-backward --overlap-sync\n";

/* What the controller understands and demo has no opinion on; values follow unless it is a flag. The
 * record says most of it to a controller that goes on with the run; it is told the rest again. */
static const struct {
	const char *name;
	bool flag, again;
} passed[] = {
	{ "iterations", false, false },	      { "time-scale", false, false },
	{ "seed", false, false },	      { "model", false, false },
	{ "batch", false, false },	      { "sequence", false, false },
	{ "microbatches", false, false },     { "eval-every", false, false },
	{ "checkpoint-every", false, false }, { "eval-batches", false, false },
	{ "serialise", true, false },	      { "split-backward", true, false },
	{ "overlap-sync", true, false },      { "threads", false, false },
	{ "wire", false, false },	      { "name", false, false },
	{ "regions", false, false },	      { "at", false, true },
	{ "silence-ms", false, true },	      { "gather-s", false, true },
	{ "overdue-s", false, true },	      { "keep-tasks", false, true },
	{ "budget", false, true },	      { "ahead", false, true },
	{ "log", false, true },
};

static int parse_whole_number(const char *name, const char *text, uint32_t least, uint32_t most, uint32_t *out,
		 struct error *err)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || v < least || v > most)
		return error_set(err, -EINVAL, "%s: expected a number from %u to %u, got \"%s\"", name,
				 least, most, text);
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
			return error_set(err, -EINVAL, "--stages: expected counts like 5,3,3, got \"%s\"",
					 text);
		o->stages[o->n_stages++] = (uint32_t)v;
		if (!*end)
			return 0;
		at = end + 1;
	}
}

/* of: the S of K/S; 0: not said. */
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
		rc = parse_whole_number("--skip, of", slash + 1, 2, DEMO_STAGES_MOST, of, err);
	return rc;
}

/* The value of argv[0], which is "--name" (value in argv[1]) or "--name=value". Advances. */
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

/* 1 it was a passed option and is taken, 0 it was not. */
static int take_passed(struct demo_options *o, char ***argv, struct error *err)
{
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
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

/* The record keeps the path, and is read from other folders: whole where it can be. */
static void add_path(struct args *a, const char *path)
{
	char *whole_path = realpath(path, NULL);

	args_add(a, whole_path ? whole_path : path);
	free(whole_path);
}

static int take_corpus(struct demo_options *o, char ***argv, const char *first)
{
	args_add(&o->controller, "--corpus");
	add_path(&o->controller, first);
	for (; **argv && ***argv != '-'; (*argv)++)
		add_path(&o->controller, **argv);
	return 0;
}

struct raw {
	uint32_t skip_of; /* 0: not said */
	bool agents, stages, skip;
};

static int one_of(const char *name, const char *text, const char *a, const char *b,
		  struct error *err)
{
	if (strcmp(text, a) == 0 || strcmp(text, b) == 0)
		return 0;
	return error_set(err, -EINVAL, "%s: expected %s or %s, got \"%s\"", name, a, b, text);
}

static int take_own(struct demo_options *o, struct raw *raw, char ***argv, struct error *err)
{
	enum { AGENTS, STAGES, SKIP, CORPUS, DEVICE, RECOMPUTE, ALGORITHM, RUN_DIR, FORMAT, THEME };
	static const char *const own[] = { "agents", "stages", "skip", "corpus", "device", "recompute",
					   "algorithm", "run-dir", "format", "theme" };
	const char *arg = **argv, *value;
	size_t which, length = 0;

	for (which = 0; which < sizeof(own) / sizeof(own[0]); which++)
		if (is_option_named(arg, own[which], &length))
			break;
	if (which == sizeof(own) / sizeof(own[0]))
		return error_set(err, -EINVAL, "%s: unexpected (skippipe help demo)", arg);
	value = value_of(argv, length);
	if (!value)
		return error_set(err, -EINVAL, "--%s: needs a value", own[which]);
	switch (which) {
	case AGENTS:
		raw->agents = true;
		return parse_whole_number("--agents", value, 2, DEMO_AGENTS_MOST, &o->agents, err);
	case STAGES:
		raw->stages = true;
		return parse_stages(o, value, err);
	case SKIP:
		raw->skip = true;
		return parse_skip(o, value, &raw->skip_of, err);
	case CORPUS:
		return take_corpus(o, argv, value);
	case DEVICE:
		o->device = value;
		return 0; /* the agent knows its devices */
	case RECOMPUTE:
		o->recompute = value;
		return 0; /* and these */
	case ALGORITHM:
		o->algorithm = value;
		return 0; /* the controller knows them */
	case RUN_DIR:
		o->run_dir = value;
		return 0;
	case FORMAT:
		o->format = value;
		return one_of("--format", value, "text", "jsonl", err);
	default:
		o->theme = value;
		return 0;
	}
}

int demo_deal_stages(uint32_t n, uint32_t n_stages, uint32_t *stages, struct error *err)
{
	uint32_t data = (n + 2) / 4, rest;

	if (n < n_stages)
		return error_set(err, -EINVAL, "--agents %u: %u stages need at least %u", n, n_stages,
				 n_stages);
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

/* What was said about nodes, stages and skips must agree; what was not said follows. */
static int settle_options(struct demo_options *o, const struct raw *raw, struct error *err)
{
	uint32_t sum = 0;

	if (raw->stages) {
		for (uint32_t s = 0; s < o->n_stages; s++)
			sum += o->stages[s];
		if (raw->agents && sum != o->agents)
			return error_set(err, -EINVAL, "--stages adds up to %u nodes, --agents is %u", sum,
					 o->agents);
		if (sum > DEMO_AGENTS_MOST)
			return error_set(err, -EINVAL, "--stages adds up to %u nodes, more than %d", sum,
					 DEMO_AGENTS_MOST);
		if (raw->skip_of && raw->skip_of != o->n_stages)
			return error_set(err, -EINVAL, "--skip %u/%u: --stages has %u stages", o->skip,
					 raw->skip_of, o->n_stages);
		o->agents = sum;
	} else {
		if (raw->skip_of)
			o->n_stages = raw->skip_of;
		if (demo_deal_stages(o->agents, o->n_stages, o->stages, err) != 0)
			return -EINVAL;
	}
	if (o->algorithm && strcmp(o->algorithm, "dtfm") == 0) {
		if (raw->skip && o->skip > 0)
			return error_set(err, -EINVAL,
					 "--skip %u: --algorithm dtfm visits every stage, dtfm-skip "
					 "leaves some out", o->skip);
		o->skip = 0;
	}
	if (o->skip >= o->n_stages)
		return error_set(err, -EINVAL, "--skip %u: there are only %u stages, and stage 0 stays",
				 o->skip, o->n_stages);
	return 0;
}

/* Our own options are taken here, those of the controller and the agents passed on as they are;
 * what they mean together is settled at the end. */
int demo_options_parse(struct demo_options *o, char **argv, struct error *err)
{
	struct raw raw = { 0 };
	int rc = 0;

	*o = (struct demo_options){ .agents = 20, .skip = 2, .n_stages = 6, .format = "text" };
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
			rc = take_own(o, &raw, &argv, err);
		else if (rc == 1)
			rc = 0;
	}
	if (rc == 0)
		rc = settle_options(o, &raw, err);
	if (rc == 0 && (o->controller.failed || o->again.failed))
		rc = error_set(err, -ENOMEM, "out of memory");
	if (rc != 0)
		demo_options_free(o);
	return rc;
}

void demo_options_free(struct demo_options *o)
{
	args_free(&o->controller);
	args_free(&o->again);
}
