/* One table describes the options of all verbs: the key, how a value is read, and its limits. An
 * error names the value that was expected. */
#include "model/program/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/skip_schedule.h"
#include "model/config_fields.h"
#include "model/files/checkpoint.h"
#include "model/files/model_folder.h"

enum { MODEL_FILE_MOST = 1 << 20 };

struct parser {
	struct options *o;
	const char *verb, *option;
	int verb_bit;        /* TRAIN, EVAL, ... */
	char *value;         /* the option's value, from getopt */
	bool corpus_goes_on; /* set after --corpus: further words are files of the corpus */
};

static int say_expected(const struct parser *p, const char *expected)
{
	fprintf(stderr, "skippipe %s: --%s %s: expected %s\n", p->verb, p->option, p->value,
		expected);
	return EXIT_USAGE;
}

static int take_whole(const struct parser *p, uint32_t *to)
{
	char *end;
	unsigned long v = strtoul(p->value, &end, 10);

	if (p->value[0] < '0' || p->value[0] > '9' || *end || v > UINT32_MAX)
		return say_expected(p, "a whole number");
	*to = (uint32_t)v;
	return 0;
}

static int take_real(const struct parser *p, float low, float high, float *to)
{
	char *end, expected[64];
	float v = strtof(p->value, &end);

	snprintf(expected, sizeof(expected), "a number from %g to %g", (double)low,
		 (double)high);
	if (!p->value[0] || *end || !(v >= low && v <= high))
		return say_expected(p, expected);
	*to = v;
	return 0;
}

/* Parses "2" or "2/6". */
static int take_skip(const struct parser *p)
{
	char *end;
	unsigned long v = strtoul(p->value, &end, 10), stages = 0;

	if (*end == '/')
		stages = strtoul(end + 1, &end, 10);
	if (p->value[0] < '0' || p->value[0] > '9' || *end || v > 1024)
		return say_expected(p, "the number of stages left out, as 2 or 2/6");
	p->o->visits.skip = (uint32_t)v;
	p->o->visits.share = 0;
	if (stages && !p->o->from) {
		model_cut_equally(&p->o->config, (uint32_t)stages);
		p->o->set.n_stages = (uint32_t)stages;
	}
	return 0;
}

static int take_skip_share(const struct parser *p)
{
	struct error err = { "" };

	if (skip_share_parse("--skip-share", p->value, 1024, &p->o->visits.share,
			     &p->o->visits.skip, &err) == 0)
		return 0;
	fprintf(stderr, "skippipe %s: %s\n", p->verb, err.text);
	return EXIT_USAGE;
}

static int take_always(const struct parser *p)
{
	return stage_set_parse(p->value, 64, &p->o->visits.always)
		       ? 0
		       : say_expected(p, "stages below 64, as 0,5");
}

static int break_rule(const struct parser *p)
{
	if (strcmp(p->value, "order") == 0)
		p->o->visits.any_order = true;
	else if (strcmp(p->value, "exposure") == 0)
		p->o->visits.unequal = true;
	else
		return say_expected(p, "order or exposure");
	return 0;
}

static int choose_word(const struct parser *p, const char *first, const char *second,
		       bool *is_second)
{
	char expected[64];

	snprintf(expected, sizeof(expected), "%s or %s", first, second);
	*is_second = strcmp(p->value, second) == 0;
	return *is_second || strcmp(p->value, first) == 0 ? 0 : say_expected(p, expected);
}

/* A checkpoint holds the seed as a number of JSON, which has 63 bits. */
static int take_seed(const struct parser *p)
{
	char *end;

	p->o->seed = strtoull(p->value, &end, 10);
	return p->value[0] < '0' || p->value[0] > '9' || *end || p->o->seed > INT64_MAX
		       ? say_expected(p, "a whole number from 0 to 9223372036854775807")
		       : 0;
}

static bool is_of_model(const char *name)
{
	for (size_t i = 0; i < model_fields.n; i++)
		if (strcmp(field_name(&model_fields.of[i]), name) == 0)
			return true;
	return false;
}

static int take_cut(const struct parser *p)
{
	struct error err = { "" };

	if (stage_layers_parse(&p->o->set.cut, "--cut", p->value, &err)) {
		fprintf(stderr, "skippipe %s: %s\n", p->verb, err.text);
		return EXIT_USAGE;
	}
	p->o->set.stages = true;
	return 0;
}

static int take_set(const struct parser *p)
{
	char name[64];
	const char *equals = strchr(p->value, '=');
	struct error err;

	if (!equals || (size_t)(equals - p->value) >= sizeof(name))
		return say_expected(p, "FIELD=VALUE");
	snprintf(name, sizeof(name), "%.*s", (int)(equals - p->value), p->value);
	if (strcmp(name, "stage_layers") == 0) {
		fprintf(stderr, "skippipe %s: --set stage_layers: give it as --cut 0,5,3\n",
			p->verb);
		return EXIT_USAGE;
	}
	if (strcmp(name, "n_stages") == 0)
		p->o->config.stage_layers.n = 0;
	if (model_config_set(&p->o->config, &p->o->hyper, name, equals + 1, &err)) {
		fprintf(stderr, "skippipe %s: --set %s\n", p->verb, err.text);
		return EXIT_USAGE;
	}
	if (strcmp(name, "n_stages") == 0) {
		p->o->set.stages = true;
		p->o->set.n_stages = p->o->config.n_stages;
	} else if (is_of_model(name)) {
		p->o->set.shape = true;
	} else {
		p->o->set.hyper = true;
	}
	if (strcmp(name, "iterations") == 0)
		p->o->set.length = true;
	return 0;
}

static int take_format(const struct parser *p)
{
	return choose_word(p, "text", "jsonl", &p->o->jsonl);
}

static int grad_norm(const struct parser *p)
{
	bool visits = false;
	int rc = choose_word(p, "microbatches", "visits", &visits);

	p->o->grad_norm = visits ? GRAD_NORM_VISITS : GRAD_NORM_MICROBATCHES;
	return rc;
}

static int take_wire(const struct parser *p)
{
	enum tensor_format *to = &p->o->train.wire;

	return tensor_format_parse(p->value, to) || !tensor_format_suits_activations(*to)
		       ? say_expected(p, "fp32, bf16, q8 or q6")
		       : 0;
}

static int take_sum_wire(const struct parser *p)
{
	enum tensor_format *to = &p->o->train.sum_wire;

	return tensor_format_parse(p->value, to) || !tensor_format_suits_sums(*to)
		       ? say_expected(p, "fp32, q8, q6 or q4")
		       : 0;
}

static int take_recompute(const struct parser *p)
{
	return recompute_parse(p->value, &p->o->recompute)
		       ? say_expected(p, "none, norms or block")
		       : 0;
}

static int take_corpus_path(const struct parser *p)
{
	p->o->corpus[p->o->n_corpus++] = p->value;
	return 0;
}

static int take_plan(const struct parser *p)
{
	if (p->o->train.plan)
		return say_expected(p, "one plan");
	p->o->train.plan = p->value;
	return 0;
}

/* Kinds of option values: text, numbers, and values that `take` reads. find_model has already
 * handled MODEL (the source of the model) and HELP. */
enum value_kind { MODEL, HELP, FLAG, TEXT, WHOLE, FRACTION, NUMBER, TAKEN };

/* The verbs that accept an option. Any other verb refuses it. */
enum { TRAIN = 1, EVAL = 2, GENERATE = 4, EXPORT = 8, IMPORT = 16, TOKENIZE = 32, ALL = 63 };

static const char *const verb_names[] = { "train",  "eval",   "generate",
					  "export", "import", "tokenize" };

static const struct setting {
	const char *name;
	int verbs;
	enum value_kind kind;
	size_t at; /* offset of the option in struct options */
	int (*take)(const struct parser *p);
} settings[] = {
#define AT(field) offsetof(struct options, field)
	{ "preset", TRAIN, MODEL, AT(preset), NULL },
	{ "model", TRAIN, MODEL, AT(model_file), NULL },
	{ "from", TRAIN, MODEL, AT(from), NULL },
	{ "help", ALL, HELP, 0, NULL },
	{ "table", EVAL, FLAG, AT(eval.table), NULL },
	{ "force", TRAIN | EXPORT | IMPORT | TOKENIZE, FLAG, AT(force), NULL },
	{ "stack", TRAIN, FLAG, AT(train.stack), NULL },
	{ "ignore-eos", GENERATE, FLAG, AT(generate.ignore_eos), NULL },
	{ "raw", TOKENIZE, FLAG, AT(raw), NULL },
	{ "new-corpus", TRAIN, FLAG, AT(train.new_corpus), NULL },
	{ "checkpoint-from", EXPORT, TEXT, AT(checkpoint_from), NULL },
	{ "skip-schedule", TRAIN, TEXT, AT(train.skip_schedule), NULL },
	{ "recipe", TRAIN, TEXT, AT(train.recipe), NULL },
	{ "out", TRAIN | EXPORT | IMPORT | TOKENIZE, TEXT, AT(out), NULL },
	{ "prompt", GENERATE, TEXT, AT(generate.prompt), NULL },
	{ "omit", EVAL, TEXT, AT(eval.omit), NULL },
	{ "logits", EVAL, TEXT, AT(eval.logits), NULL },
	{ "choices", EVAL, TEXT, AT(eval.choices), NULL },
	{ "device", TRAIN | EVAL, TEXT, AT(device), NULL },
	{ "tokenizer", TRAIN | EVAL | GENERATE | TOKENIZE, TEXT, AT(tokenizer), NULL },
	{ "whole-first", TRAIN, WHOLE, AT(visits.whole_first), NULL },
	{ "whole-last", TRAIN, WHOLE, AT(visits.whole_last), NULL },
	{ "exit-after", EVAL | GENERATE, WHOLE, AT(exit_after), NULL },
	{ "iterations", TRAIN, WHOLE, AT(iterations), NULL },
	{ "microbatches", TRAIN, WHOLE, AT(microbatches), NULL },
	{ "threads", TRAIN | EVAL, WHOLE, AT(threads), NULL },
	{ "checkpoint-every", TRAIN, WHOLE, AT(train.checkpoint_every), NULL },
	{ "validate-every", TRAIN, WHOLE, AT(train.validate_every), NULL },
	{ "skip-bad-steps", TRAIN, WHOLE, AT(train.skip_bad_steps), NULL },
	{ "batches", TRAIN | EVAL, WHOLE, AT(batches), NULL },
	{ "tokens", GENERATE, WHOLE, AT(generate.tokens), NULL },
	{ "omit-fraction", EVAL, FRACTION, AT(eval.omit_fraction), NULL },
	{ "swap", TRAIN, FRACTION, AT(visits.swap), NULL },
	{ "top-p", GENERATE, FRACTION, AT(generate.top_p), NULL },
	{ "temperature", GENERATE, NUMBER, AT(generate.temperature), NULL },
	{ "corpus", TRAIN | EVAL | TOKENIZE, TAKEN, 0, take_corpus_path },
	{ "plan", TRAIN, TAKEN, 0, take_plan },
	{ "set", TRAIN | EVAL | IMPORT, TAKEN, 0, take_set },
	{ "cut", TRAIN | IMPORT, TAKEN, 0, take_cut },
	{ "format", TRAIN | EVAL, TAKEN, 0, take_format },
	{ "skip", TRAIN, TAKEN, 0, take_skip },
	{ "skip-share", TRAIN, TAKEN, 0, take_skip_share },
	{ "always", TRAIN | EVAL, TAKEN, 0, take_always },
	{ "break", TRAIN, TAKEN, 0, break_rule },
	{ "grad-norm", TRAIN, TAKEN, 0, grad_norm },
	{ "recompute", TRAIN, TAKEN, 0, take_recompute },
	{ "wire", TRAIN, TAKEN, 0, take_wire },
	{ "sum-wire", TRAIN, TAKEN, 0, take_sum_wire },
	{ "seed", TRAIN | EVAL | GENERATE | IMPORT, TAKEN, 0, take_seed },
#undef AT
};

static_assert(sizeof(settings) / sizeof(settings[0]) <= 64, "options.given has a bit for each");

enum {
	SETTINGS = sizeof(settings) / sizeof(settings[0]),
	WORD = 1,    /* number that getopt gives a word that is no option */
	FIRST = 256, /* settings[i] is getopt's option number FIRST + i */
};

static void fill_table(struct option table[SETTINGS + 1])
{
	memset(table, 0, (SETTINGS + 1) * sizeof(*table));
	for (int i = 0; i < SETTINGS; i++) {
		bool bare = settings[i].kind == FLAG || settings[i].kind == HELP;

		table[i].name = settings[i].name;
		table[i].has_arg = bare ? no_argument : required_argument;
		table[i].val = FIRST + i;
	}
}

static int take_setting_value(const struct parser *p, const struct setting *s)
{
	void *at = (char *)p->o + s->at;

	switch (s->kind) {
	case MODEL:
	case HELP:
		return 0;
	case FLAG:
		*(bool *)at = true;
		return 0;
	case TEXT:
		*(const char **)at = p->value;
		return 0;
	case WHOLE:
		return take_whole(p, at);
	case FRACTION:
		return take_real(p, 0, 1, at);
	case NUMBER:
		return take_real(p, 0, 100, at);
	case TAKEN:
		return s->take(p);
	}
	return 0;
}

static int take_word(const struct parser *p)
{
	struct options *o = p->o;

	if (p->corpus_goes_on)
		return take_corpus_path(p);
	if (o->files.n == sizeof(o->files.at) / sizeof(o->files.at[0])) {
		fprintf(stderr, "skippipe %s: %s: one word too many\n", p->verb, p->value);
		return EXIT_USAGE;
	}
	o->files.at[o->files.n++] = p->value;
	return 0;
}

/* Refuses an option of other verbs, which would have no effect, and an abbreviation, which another
 * version of the program may read as another option. */
static int check_name(const struct parser *p, const struct setting *s, char **argv)
{
	bool apart = optarg && optarg == argv[optind - 1];
	const char *word = argv[optind - (apart ? 2 : 1)] + strlen("--");

	if (strcspn(word, "=") != strlen(s->name)) {
		fprintf(stderr, "skippipe %s: --%.*s: no such option; is --%s meant?\n", p->verb,
			(int)strcspn(word, "="), word, s->name);
		return EXIT_USAGE;
	}
	if (s->verbs & p->verb_bit)
		return 0;
	fprintf(stderr, "skippipe %s: --%s is no option of %s (skippipe help %s)\n", p->verb,
		s->name, p->verb, p->verb);
	return EXIT_USAGE;
}

static int take_all(struct parser *p, int argc, char **argv, const struct option *table)
{
	int option;

	while ((option = getopt_long(argc, argv, "-", table, NULL)) != -1) {
		int rc = EXIT_USAGE; /* getopt has printed the error of an unknown option */

		p->value = optarg ? optarg : "";
		if (option == WORD) {
			rc = take_word(p);
		} else if (option >= FIRST) {
			const struct setting *s = &settings[option - FIRST];

			p->option = s->name;
			p->corpus_goes_on = s->take == take_corpus_path;
			p->o->given |= (uint64_t)1 << (option - FIRST);
			rc = check_name(p, s, argv);
			if (!rc)
				rc = take_setting_value(p, s);
		}
		if (rc)
			return rc;
	}
	return 0;
}

/* Finds the source of the model first, because --set changes that model wherever it stands on the
 * line. Returns -1 if help is requested. */
static int find_model(struct parser *p, int argc, char **argv, const struct option *table)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "-", table, NULL)) != -1) {
		const struct setting *s = option >= FIRST ? &settings[option - FIRST] : NULL;

		if (s && s->kind == MODEL && (s->verbs & p->verb_bit))
			*(const char **)((char *)p->o + s->at) = optarg;
		if (s && s->kind == HELP)
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
	int rc = file_read_text(path, MODEL_FILE_MOST, &text, &size, err);

	if (rc)
		return rc;
	rc = model_config_parse(&o->config, &o->hyper, text, size, path, err);
	free(text);
	return rc;
}

static int load_model(struct options *o, struct error *err)
{
	enum model_kind kind;
	struct checkpoint c;
	int rc;

	if ((o->preset != NULL) + (o->model_file != NULL) + (o->from != NULL) > 1)
		return error_set(err, -EINVAL,
				 "--preset, --model, --from: each gives a model, choose one");
	rc = model_preset(o->preset ? o->preset : "tiny", &o->config, &o->hyper, err);
	if (!rc && o->model_file)
		rc = load_file(o->model_file, o, err);
	if (!rc && o->from) {
		rc = model_folder_find(&kind, o->from, err);
		if (!rc && kind == MODEL_HUGGINGFACE)
			rc = error_set(err, -EINVAL,
				       "--from %s: a Hugging Face folder: skippipe import makes a "
				       "checkpoint of it",
				       o->from);
		if (!rc)
			rc = checkpoint_read(o->from, &c, err);
		if (!rc) {
			o->config = c.config;
			o->hyper = c.hyper;
		}
	}
	return rc;
}

int options_cut(struct options *o, struct error *err)
{
	if (o->set.cut.n > 0 && o->set.n_stages > 0 && o->set.n_stages != o->set.cut.n)
		return error_set(err, -EINVAL,
				 "--cut has %" PRIu32 " stages, --set n_stages or --skip %" PRIu32,
				 o->set.cut.n, o->set.n_stages);
	return model_cut(&o->config, &o->set.cut, "--cut", err);
}

/* Reads the options. getopt's table is made from `settings`. */
int options_parse(struct options *o, int argc, char **argv, const char *help)
{
	struct parser p = { .o = o, .verb = argv[0] };
	struct option table[SETTINGS + 1];
	struct error err = { "" };
	int rc;

	*o = (struct options){ .iterations = 40,
			       .microbatches = 30,
			       .threads = 1,
			       .train.validate_every = 10,
			       .batches = 16,
			       .generate.tokens = 200,
			       .generate.temperature = 0.8f,
			       .generate.top_p = 0.95f,
			       .seed = 1,
			       .device = "cpu" };
	o->corpus = alloc_array((size_t)argc, sizeof(*o->corpus));
	fill_table(table);
	for (size_t i = 0; i < sizeof(verb_names) / sizeof(verb_names[0]); i++)
		if (strcmp(argv[0], verb_names[i]) == 0)
			p.verb_bit = 1 << i;
	if (find_model(&p, argc, argv, table)) {
		fputs(help, stdout);
		return -1;
	}
	rc = load_model(o, &err);
	if (rc)
		return options_fail(argv[0], &err);
	rc = take_all(&p, argc, argv, table);
	if (rc)
		return rc;
	/* If a folder is named, the model is read, cut and checked later. */
	if (o->files.n == 0 && (options_cut(o, &err) || model_config_check(&o->config, &err) ||
				hyper_check(&o->hyper, &o->config, &err))) {
		options_fail(argv[0], &err);
		return EXIT_USAGE;
	}
	return 0;
}

bool options_given(const struct options *o, const char *name)
{
	for (int i = 0; i < SETTINGS; i++)
		if (strcmp(settings[i].name, name) == 0)
			return o->given >> i & 1;
	return false;
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
