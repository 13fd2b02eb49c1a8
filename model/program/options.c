#include "model/program/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model/checkpoint.h"

enum { SETS = 64, MODEL_FILE_MOST = 1 << 20 };

enum option_code {
	OPT_FILE = 1, /* getopt's own number for what is no option */
	OPT_PRESET = 256,
	OPT_MODEL,
	OPT_FROM,
	OPT_SET,
	OPT_CORPUS,
	OPT_PLAN,
	OPT_OUT,
	OPT_FORMAT,
	OPT_PROMPT,
	OPT_OMIT,
	OPT_OMIT_FRACTION,
	OPT_LOGITS,
	OPT_EXIT_AFTER,
	OPT_TABLE,
	OPT_SKIP,
	OPT_SWAP,
	OPT_ALWAYS,
	OPT_BREAK,
	OPT_GRAD_NORM,
	OPT_ITERATIONS,
	OPT_MICROBATCHES,
	OPT_THREADS,
	OPT_CHECKPOINT_EVERY,
	OPT_VALIDATE_EVERY,
	OPT_BATCHES,
	OPT_TOKENS,
	OPT_TEMPERATURE,
	OPT_TOP_P,
	OPT_SEED,
	OPT_DEVICE,
	OPT_HELP,
};

static const struct option table[] = {
	{ "preset", required_argument, NULL, OPT_PRESET },
	{ "model", required_argument, NULL, OPT_MODEL },
	{ "from", required_argument, NULL, OPT_FROM },
	{ "set", required_argument, NULL, OPT_SET },
	{ "corpus", required_argument, NULL, OPT_CORPUS },
	{ "plan", required_argument, NULL, OPT_PLAN },
	{ "out", required_argument, NULL, OPT_OUT },
	{ "format", required_argument, NULL, OPT_FORMAT },
	{ "prompt", required_argument, NULL, OPT_PROMPT },
	{ "omit", required_argument, NULL, OPT_OMIT },
	{ "omit-fraction", required_argument, NULL, OPT_OMIT_FRACTION },
	{ "logits", required_argument, NULL, OPT_LOGITS },
	{ "exit-after", required_argument, NULL, OPT_EXIT_AFTER },
	{ "table", no_argument, NULL, OPT_TABLE },
	{ "skip", required_argument, NULL, OPT_SKIP },
	{ "swap", required_argument, NULL, OPT_SWAP },
	{ "always", required_argument, NULL, OPT_ALWAYS },
	{ "break", required_argument, NULL, OPT_BREAK },
	{ "grad-norm", required_argument, NULL, OPT_GRAD_NORM },
	{ "iterations", required_argument, NULL, OPT_ITERATIONS },
	{ "microbatches", required_argument, NULL, OPT_MICROBATCHES },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "checkpoint-every", required_argument, NULL, OPT_CHECKPOINT_EVERY },
	{ "validate-every", required_argument, NULL, OPT_VALIDATE_EVERY },
	{ "batches", required_argument, NULL, OPT_BATCHES },
	{ "tokens", required_argument, NULL, OPT_TOKENS },
	{ "temperature", required_argument, NULL, OPT_TEMPERATURE },
	{ "top-p", required_argument, NULL, OPT_TOP_P },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "device", required_argument, NULL, OPT_DEVICE },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

struct parser {
	struct options *o;
	const char *verb, *option, *value;
	bool corpus_goes_on; /* the last option was --corpus: further words are its files */
};

static int wrong(const struct parser *p, const char *expected)
{
	fprintf(stderr, "skippipe %s: --%s %s: expected %s\n", p->verb, p->option, p->value,
		expected);
	return EXIT_USAGE;
}

static int whole(const struct parser *p, uint32_t *to)
{
	char *end;
	unsigned long v = strtoul(p->value, &end, 10);

	if (p->value[0] < '0' || p->value[0] > '9' || *end || v > UINT32_MAX)
		return wrong(p, "a whole number");
	*to = (uint32_t)v;
	return 0;
}

static int real(const struct parser *p, float low, float high, float *to)
{
	char *end, expected[64];
	float v = strtof(p->value, &end);

	snprintf(expected, sizeof(expected), "a number from %g to %g", (double)low,
		 (double)high);
	if (!p->value[0] || *end || !(v >= low && v <= high))
		return wrong(p, expected);
	*to = v;
	return 0;
}

/* "2" or "2/6". */
static int skip(const struct parser *p)
{
	char *end;
	unsigned long v = strtoul(p->value, &end, 10), stages = 0;

	if (*end == '/')
		stages = strtoul(end + 1, &end, 10);
	if (p->value[0] < '0' || p->value[0] > '9' || *end || v > 1024)
		return wrong(p, "the number of stages left out, as 2 or 2/6");
	p->o->visits.skip = (uint32_t)v;
	if (stages && p->o->config.n_stages != stages && !p->o->from)
		p->o->config.n_stages = (uint32_t)stages;
	return 0;
}

static int break_rule(const struct parser *p)
{
	if (strcmp(p->value, "order") == 0)
		p->o->visits.any_order = true;
	else if (strcmp(p->value, "exposure") == 0)
		p->o->visits.unequal = true;
	else
		return wrong(p, "order or exposure");
	return 0;
}

static int choose(const struct parser *p, const char *first, const char *second,
		  bool *is_second)
{
	char expected[64];

	snprintf(expected, sizeof(expected), "%s or %s", first, second);
	*is_second = strcmp(p->value, second) == 0;
	return *is_second || strcmp(p->value, first) == 0 ? 0 : wrong(p, expected);
}

static int seed(const struct parser *p)
{
	char *end;

	p->o->seed = strtoull(p->value, &end, 10);
	return p->value[0] < '0' || p->value[0] > '9' || *end ? wrong(p, "a whole number") : 0;
}

static void corpus_file(struct options *o, char *path)
{
	o->corpus[o->n_corpus++] = path;
}

static int set(const struct parser *p)
{
	char name[64];
	const char *equals = strchr(p->value, '=');
	struct error err;

	if (!equals || (size_t)(equals - p->value) >= sizeof(name))
		return wrong(p, "FIELD=VALUE");
	snprintf(name, sizeof(name), "%.*s", (int)(equals - p->value), p->value);
	if (model_config_set(&p->o->config, &p->o->recipe, name, equals + 1, &err)) {
		fprintf(stderr, "skippipe %s: --set %s\n", p->verb, err.text);
		return EXIT_USAGE;
	}
	p->o->recipe_set = true;
	return 0;
}

static int format(struct parser *p)
{
	p->o->format = p->value;
	p->o->jsonl = strcmp(p->value, "jsonl") == 0;
	return 0;
}

static int one(struct parser *p, int option, char *value)
{
	struct options *o = p->o;
	bool second = false;
	int rc;

	p->corpus_goes_on = option == OPT_CORPUS || (option == OPT_FILE && p->corpus_goes_on);
	switch (option) {
	case OPT_FILE:
		if (p->corpus_goes_on) {
			corpus_file(o, value);
			return 0;
		}
		if (o->n_files == 2) {
			fprintf(stderr, "skippipe %s: %s: one word too many\n", p->verb, value);
			return EXIT_USAGE;
		}
		o->files[o->n_files++] = value;
		return 0;
	case OPT_PRESET: /* seen to beforehand, as --from and --model: --set changes what they
			    say */
	case OPT_MODEL:
	case OPT_FROM:
		return 0;
	case OPT_SET:
		return set(p);
	case OPT_CORPUS:
		corpus_file(o, value);
		return 0;
	case OPT_PLAN:
		o->plan = value;
		return 0;
	case OPT_OUT:
		o->out = value;
		return 0;
	case OPT_FORMAT:
		return format(p);
	case OPT_PROMPT:
		o->prompt = value;
		return 0;
	case OPT_OMIT:
		o->omit = value;
		return 0;
	case OPT_OMIT_FRACTION:
		return real(p, 0, 1, &o->omit_fraction);
	case OPT_LOGITS:
		o->logits = value;
		return 0;
	case OPT_EXIT_AFTER:
		return whole(p, &o->exit_after);
	case OPT_TABLE:
		o->table = true;
		return 0;
	case OPT_SKIP:
		return skip(p);
	case OPT_SWAP:
		return real(p, 0, 1, &o->visits.swap);
	case OPT_ALWAYS:
		return whole(p, &o->visits.always);
	case OPT_BREAK:
		return break_rule(p);
	case OPT_GRAD_NORM:
		rc = choose(p, "microbatches", "visits", &second);
		o->grad_norm = second ? GRAD_NORM_VISITS : GRAD_NORM_MICROBATCHES;
		return rc;
	case OPT_ITERATIONS:
		return whole(p, &o->iterations);
	case OPT_MICROBATCHES:
		return whole(p, &o->microbatches);
	case OPT_THREADS:
		return whole(p, &o->threads);
	case OPT_CHECKPOINT_EVERY:
		return whole(p, &o->checkpoint_every);
	case OPT_VALIDATE_EVERY:
		return whole(p, &o->validate_every);
	case OPT_BATCHES:
		return whole(p, &o->batches);
	case OPT_TOKENS:
		return whole(p, &o->tokens);
	case OPT_TEMPERATURE:
		return real(p, 0, 100, &o->temperature);
	case OPT_TOP_P:
		return real(p, 0, 1, &o->top_p);
	case OPT_SEED:
		return seed(p);
	case OPT_DEVICE:
		o->device = value;
		return 0;
	default:
		return EXIT_USAGE; /* getopt has said which */
	}
}

/* Where the model comes from decides what --set changes, wherever it stands on the line. */
static int find_model(struct options *o, int argc, char **argv)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "-", table, NULL)) != -1) {
		if (option == OPT_PRESET)
			o->preset = optarg;
		if (option == OPT_MODEL)
			o->model_file = optarg;
		if (option == OPT_FROM)
			o->from = optarg;
		if (option == OPT_HELP)
			return -1;
	}
	opterr = 1;
	optind = 0;
	return 0;
}

static int load_file(const char *path, struct options *o, struct error *err)
{
	char *text;
	size_t size;
	int rc = file_read(path, MODEL_FILE_MOST, &text, &size, err);

	if (rc)
		return rc;
	rc = model_config_parse(&o->config, &o->recipe, text, size, path, err);
	free(text);
	return rc;
}

static int load_model(struct options *o, struct error *err)
{
	struct checkpoint c;
	int rc = model_preset(o->preset ? o->preset : "tiny", &o->config, &o->recipe, err);

	if (!rc && o->model_file)
		rc = load_file(o->model_file, o, err);
	if (!rc && o->from) {
		rc = checkpoint_read(o->from, &c, err);
		if (!rc) {
			o->config = c.config;
			o->recipe = c.recipe;
		}
	}
	return rc;
}

int options_parse(struct options *o, int argc, char **argv, const char *help)
{
	struct parser p = { .o = o, .verb = argv[0] };
	struct error err = { "" };
	int option, which = 0, rc;

	*o = (struct options){ .iterations = 40,
			       .microbatches = 30,
			       .threads = 1,
			       .validate_every = 10,
			       .batches = 16,
			       .tokens = 200,
			       .temperature = 0.8f,
			       .top_p = 0.95f,
			       .seed = 1,
			       .device = "cpu" };
	o->corpus = calloc((size_t)argc, sizeof(*o->corpus));
	if (!o->corpus)
		return options_fail(argv[0], &(struct error){ "no memory" });
	if (find_model(o, argc, argv)) {
		fputs(help, stdout);
		return -1;
	}
	rc = load_model(o, &err);
	if (rc)
		return options_fail(argv[0], &err);
	while ((option = getopt_long(argc, argv, "-", table, &which)) != -1) {
		p.option = option == OPT_FILE ? "" : table[which].name;
		p.value = optarg ? optarg : "";
		rc = one(&p, option, optarg);
		if (rc)
			return rc;
	}
	if (model_config_check(&o->config, &err) || recipe_check(&o->recipe, &o->config, &err)) {
		options_fail(argv[0], &err);
		return EXIT_USAGE;
	}
	return 0;
}

void options_fini(struct options *o)
{
	free(o->corpus);
}

int options_fail(const char *verb, const struct error *err)
{
	fprintf(stderr, "skippipe %s: %s\n", verb, err->text);
	return 1;
}
