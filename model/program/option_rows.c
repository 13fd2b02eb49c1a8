/* The options of train, eval, generate, export, import and tokenize. They share one table, because
 * most options belong to several verbs. Each row names its verbs and has the option's text for the
 * helps. */
#include "model/program/option_rows.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/skip_schedule.h"
#include "base/stage_set.h"
#include "model/program/options.h"

/* ---- values ---- */

/* Reads the value of --skip, such as "2" or "2/6". */
static int take_skip(void *options, const char *text, struct error *err)
{
	struct options *o = options;
	char *end;
	unsigned long v = strtoul(text, &end, 10), stages = 0;

	if (*end == '/')
		stages = strtoul(end + 1, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || v > 1024 || stages > 1024)
		return error_set(err, -EINVAL,
				 "--skip: expected the number of stages left out, as 2 or 2/6, "
				 "got \"%s\"",
				 text);
	o->visits.skip = (uint32_t)v;
	o->visits.share = 0;
	if (stages)
		o->changes.list[o->changes.n++] = (struct model_change){ NULL, (uint32_t)stages };
	return 0;
}

static int take_skip_share(void *options, const char *text, struct error *err)
{
	struct visit_rules *v = &((struct options *)options)->visits;

	return skip_share_parse("--skip-share", text, 1024, &v->share, &v->skip, err);
}

static int take_always(void *options, const char *text, struct error *err)
{
	return stage_set_parse(text, 64, &((struct options *)options)->visits.always)
		       ? 0
		       : error_set(err, -EINVAL,
				   "--always: expected stages below 64, as 0,5, got \"%s\"", text);
}

static int break_rule(void *options, const char *text, struct error *err)
{
	struct visit_rules *v = &((struct options *)options)->visits;

	if (strcmp(text, "order") == 0)
		v->any_order = true;
	else if (strcmp(text, "exposure") == 0)
		v->unequal = true;
	else
		return error_set(err, -EINVAL, "--break: expected order or exposure, got \"%s\"",
				 text);
	return 0;
}

static int take_cut(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	o->set.stages = true;
	return stage_layers_parse(&o->set.cut, "--cut", text, err);
}

/* Stores a change of the model, which options_parse makes later, because the model is not known
 * yet. */
static int take_set(void *options, const char *text, struct error *err)
{
	struct options *o = options;

	if (!strchr(text, '='))
		return error_set(err, -EINVAL, "--set: expected FIELD=VALUE, got \"%s\"", text);
	if (strncmp(text, "stage_layers=", strlen("stage_layers=")) == 0)
		return error_set(err, -EINVAL, "--set stage_layers: give it as --cut 0,5,3");
	o->changes.list[o->changes.n++] = (struct model_change){ text, 0 };
	return 0;
}

static int take_wire(void *options, const char *text, struct error *err)
{
	enum tensor_format *to = &((struct options *)options)->train.wire;

	if (tensor_format_parse(text, to) == 0 && tensor_format_suits_activations(*to))
		return 0;
	return error_set(err, -EINVAL, "--wire: expected fp32, bf16, q8 or q6, got \"%s\"", text);
}

static int take_sum_wire(void *options, const char *text, struct error *err)
{
	enum tensor_format *to = &((struct options *)options)->train.sum_wire;

	if (tensor_format_parse(text, to) == 0 && tensor_format_suits_sums(*to))
		return 0;
	return error_set(err, -EINVAL, "--sum-wire: expected fp32, q8, q6 or q4, got \"%s\"", text);
}

static int take_recompute(void *options, const char *text, struct error *err)
{
	return recompute_parse(text, &((struct options *)options)->recompute) == 0
		       ? 0
		       : error_set(err, -EINVAL,
				   "--recompute: expected none, norms, block or auto, got \"%s\"",
				   text);
}

static int take_corpus(void *options, const char *path, struct error *err)
{
	struct options *o = options;

	(void)err;
	/* The cast removes `const` from an argument of main, which a program may change. */
	o->corpus[o->n_corpus++] = (char *)path;
	return 0;
}

static int take_plan(void *options, const char *path, struct error *err)
{
	struct options *o = options;

	if (o->train.plan)
		return error_set(err, -EINVAL, "--plan %s: expected one plan", path);
	o->train.plan = path;
	return 0;
}

static int take_word(void *options, const char *word, struct error *err)
{
	struct options *o = options;

	if (o->files.n == sizeof(o->files.at) / sizeof(o->files.at[0]))
		return error_set(err, -EINVAL, "%s: one word too many", word);
	o->files.at[o->files.n++] = (char *)word;
	return 0;
}

/* ---- the rows ---- */

enum { TRAIN = 1, EVAL = 2, GENERATE = 4, EXPORT = 8, IMPORT = 16, TOKENIZE = 32 };

static const char *const verbs[] = { "train", "eval", "generate", "export", "import", "tokenize" };

static const char *const formats[] = { "text", "jsonl", NULL };
static const char *const divisors[] = { "microbatches", "visits", NULL };

#define AT(field) .at = offsetof(struct options, field)
#define LIMITS(least_, most_) .least = (least_), .most = (most_)
#define WHOLE LIMITS(0, UINT32_MAX)
#define OF(verbs) .mark = (verbs)
static const struct options_row rows[] = {
	{ NULL, .help = "The model", OF(TRAIN) },
	{ "preset", OPTIONS_TEXT, "NAME", AT(preset), OF(TRAIN),
	  .help = "a preset (docs/model.md) [tiny]" },
	{ "model", OPTIONS_TEXT, "FILE", AT(model_file), OF(TRAIN), .help = "skippipe.model/1" },
	{ "from", OPTIONS_TEXT, "CHECKPOINT", AT(from), OF(TRAIN),
	  .help = "continue from a checkpoint" },
	{ "set", OPTIONS_PARSED, "FIELD=VALUE", .parse = take_set, OF(TRAIN),
	  .help = "change the model or the hyperparameters: dim, n_layers, lr, batch, ... "
		  "schedule: how the learning rate falls by the last iteration: cosine, linear, or "
		  "only in the last fifth of the iterations, as a line (wsd) or with a square root "
		  "(wsd-sqrt). decay: another share, or a number of iterations (docs/rates.md)" },
	{ "set", OPTIONS_PARSED, "FIELD=VALUE", .parse = take_set, OF(IMPORT),
	  .help = "change the hyperparameters, or the number of stages (n_stages)" },
	{ "set", OPTIONS_PARSED, "FIELD=VALUE", .parse = take_set, OF(EVAL),
	  .help = "change batch or sequence" },
	{ "cut", OPTIONS_PARSED, "LAYERS,...", .parse = take_cut, OF(TRAIN),
	  .help = "layers of each stage, such as 0,5,3 (only stage 0 may have none). With --from, "
		  "a checkpoint of another cut continues" },
	{ "cut", OPTIONS_PARSED, "LAYERS,...", .parse = take_cut, OF(IMPORT),
	  .help = "layers of each stage, such as 0,5,3 (only stage 0 may have none)" },
	{ NULL, .help = "The text", OF(TRAIN) },
	{ "corpus", OPTIONS_PARSED, "FILE...", .parse = take_corpus, .many = true, OF(TRAIN | EVAL),
	  .help = "texts or token shards [Debian's fortunes]" },
	{ "corpus", OPTIONS_PARSED, "FILE...", .parse = take_corpus, .many = true, OF(TOKENIZE),
	  .help = "the texts, or token shards (.bin)" },
	{ "tokenizer", OPTIONS_TEXT, "FILE", AT(tokenizer), OF(TRAIN),
	  .help = "tokenizer of the shards; it is copied to the checkpoint" },
	{ "new-corpus", OPTIONS_FLAG, AT(train.new_corpus), OF(TRAIN),
	  .help = "with --from: another corpus than the checkpoint's" },
	{ "choices", OPTIONS_TEXT, "FILE", AT(eval.choices), OF(EVAL),
	  .help = "each line is {\"context\": \"...\", \"choices\": [\"...\", ...], "
		  "\"answer\": 0}. The model's choice has the lowest loss after the context: the "
		  "sum over its tokens, or their mean (per token). Prints shares of the lines with "
		  "95% intervals; with jsonl also the losses of each line. Contexts longer than "
		  "the "
		  "sequence lose their beginning" },
	{ "tokenizer", OPTIONS_TEXT, "FILE", AT(tokenizer), OF(EVAL),
	  .help = "tokenizer of the choices [the one beside the model]" },
	{ "tokenizer", OPTIONS_TEXT, "FILE|FOLDER", AT(tokenizer), OF(GENERATE | TOKENIZE),
	  .help = "a tokenizer.json, a SentencePiece model, or a folder with one" },
	{ "prompt", OPTIONS_TEXT, "TEXT", AT(generate.prompt), OF(GENERATE),
	  .help = "the text that is continued [a new document]" },
	{ NULL, .help = "The training", OF(TRAIN) },
	{ "iterations", OPTIONS_U32, "N", "40", "stop after iteration N", AT(iterations), WHOLE,
	  OF(TRAIN) },
	{ "microbatches", OPTIONS_U32, "M", "30",
	  "microbatches of an iteration; a plan has its own", AT(microbatches), WHOLE, OF(TRAIN) },
	{ "grad-norm", OPTIONS_CHOICE, "microbatches|visits", AT(grad_norm), .words = divisors,
	  OF(TRAIN),
	  .help = "divisor of a stage's gradient sum [microbatches; visits with --recipe]" },
	{ "validate-every", OPTIONS_U32, "N", "10", "iterations between validations; 0: never",
	  AT(train.validate_every), WHOLE, OF(TRAIN) },
	{ "batches", OPTIONS_U32, "N", "16", "validation microbatches", AT(batches), WHOLE,
	  OF(TRAIN | EVAL) },
	{ "skip-bad-steps", OPTIONS_U32, "N", "0",
	  "if a loss or gradient is not finite, repeat the iteration with the next text, at most N "
	  "times in a row",
	  AT(train.skip_bad_steps), WHOLE, OF(TRAIN) },
	{ "wire", OPTIONS_PARSED, "fp32|bf16|q8|q6", .parse = take_wire, OF(TRAIN),
	  .help = "round activations as a run over nodes does with this format [fp32]" },
	{ "sum-wire", OPTIONS_PARSED, "fp32|q8|q6|q4", .parse = take_sum_wire, OF(TRAIN),
	  .help = "round sums of gradients in the same way [fp32]" },
	{ "recompute", OPTIONS_PARSED, "none|norms|block|auto", .parse = take_recompute, OF(TRAIN),
	  .help = "values that a backward pass recomputes to save memory; auto: as few as the "
		  "memory allows [norms]" },
	{ NULL, .help = "The stages that microbatches visit", OF(TRAIN) },
	{ "skip", OPTIONS_PARSED, "K[/STAGES]", .parse = take_skip, OF(TRAIN),
	  .help = "stages that each microbatch skips, evenly [0]" },
	{ "skip-share", OPTIONS_PARSED, "S%:K", .parse = take_skip_share, OF(TRAIN),
	  .help = "S percent of an iteration's microbatches, rounded to the nearest number, skip K "
		  "stages; the rest skip none" },
	{ "skip-schedule", OPTIONS_TEXT, "LIST", AT(train.skip_schedule), OF(TRAIN),
	  .help = "stages skipped in each phase: 4,3,1,0 (equal parts), or 4@0,3@25%,1@50%,0@800 "
		  "(from that share or iteration on); a phase may be a share: 4@0,30%:2@30%" },
	{ "recipe", OPTIONS_TEXT, "speed|robust", AT(train.recipe), OF(TRAIN),
	  .help = SKIP_SCHEDULE_RECIPE_HELP },
	{ "stack", OPTIONS_FLAG, AT(train.stack), OF(TRAIN),
	  .help = "stages that the schedule begins to visit start as copies of trained stages; the "
		  "first phase must skip all stages that may be skipped" },
	{ "whole-first", OPTIONS_U32, "N", "0", "skip no stage in the first N iterations",
	  AT(visits.whole_first), WHOLE, OF(TRAIN) },
	{ "whole-last", OPTIONS_U32, "N", "0", "skip no stage in the last N iterations",
	  AT(visits.whole_last), WHOLE, OF(TRAIN) },
	{ "swap", OPTIONS_FLOAT, "P", "0", "chance that neighbouring stages are exchanged",
	  AT(visits.swap), LIMITS(0, 1), OF(TRAIN) },
	{ "omit", OPTIONS_TEXT, "S,S,...", AT(eval.omit), OF(EVAL), .help = "skip these stages" },
	{ "omit-fraction", OPTIONS_FLOAT, "F", AT(eval.omit_fraction), LIMITS(0, 1), OF(EVAL),
	  .help = "skip the fraction F of the stages other than 0, drawn for each microbatch, or "
		  "for each line of choices" },
	{ "always", OPTIONS_PARSED, "STAGE,...", .parse = take_always, OF(TRAIN),
	  .help = "stages that are never skipped, beside stage 0" },
	{ "always", OPTIONS_PARSED, "STAGE,...", .parse = take_always, OF(EVAL),
	  .help = "stages that are never skipped at random" },
	{ "exit-after", OPTIONS_U32, "S", AT(exit_after), WHOLE, OF(EVAL | GENERATE),
	  .help = "skip every stage after S" },
	{ "break", OPTIONS_PARSED, "order|exposure", .parse = break_rule, OF(TRAIN),
	  .help = "break a rule of convergence, to measure its effect" },
	{ "plan", OPTIONS_PARSED, "PLAN", .parse = take_plan, OF(TRAIN),
	  .help = "use the paths of this plan. If the file has the plans of a run's phases "
		  "(skippipe plan with --recipe or --skip-schedule), it also sets the schedule and "
		  "--always" },
	{ "table", OPTIONS_FLAG, AT(eval.table), OF(EVAL),
	  .help = "print the result without each stage, without each fraction of the stages, and "
		  "for each early exit" },
	{ "logits", OPTIONS_TEXT, "FILE", AT(eval.logits), OF(EVAL),
	  .help = "write the first microbatch's tokens and logits, as safetensors" },
	{ "tokens", OPTIONS_U32, "N", "200", "number of tokens", AT(generate.tokens), WHOLE,
	  OF(GENERATE) },
	{ "ignore-eos", OPTIONS_FLAG, AT(generate.ignore_eos), OF(GENERATE),
	  .help = "go on after a token that ends a text" },
	{ "temperature", OPTIONS_FLOAT, "X", "0.8", "0 takes the likeliest token each time",
	  AT(generate.temperature), LIMITS(0, 100), OF(GENERATE) },
	{ "top-p", OPTIONS_FLOAT, "P", "0.95",
	  "draw from the likeliest tokens whose probabilities add up to P", AT(generate.top_p),
	  LIMITS(0, 1), OF(GENERATE) },
	{ NULL, .help = "Results", OF(TRAIN) },
	{ "out", OPTIONS_TEXT, "DIR", AT(out), OF(TRAIN),
	  .help = "write a checkpoint to DIR at the end, on Ctrl-C, and when the reader of the "
		  "output ends; Ctrl-C after 3 more seconds ends without a checkpoint" },
	{ "out", OPTIONS_TEXT, "FOLDER", AT(out), OF(EXPORT), .help = "the folder of the model" },
	{ "out", OPTIONS_TEXT, "CHECKPOINT", AT(out), OF(IMPORT), .help = "the checkpoint" },
	{ "out", OPTIONS_TEXT, "SHARD.bin", AT(out), OF(TOKENIZE), .help = "the token shard" },
	{ "force", OPTIONS_FLAG, AT(force), OF(TRAIN),
	  .help = "replace a checkpoint in DIR that --from does not name" },
	{ "force", OPTIONS_FLAG, AT(force), OF(EXPORT), .help = "replace a model in FOLDER" },
	{ "force", OPTIONS_FLAG, AT(force), OF(IMPORT), .help = "replace an existing checkpoint" },
	{ "force", OPTIONS_FLAG, AT(force), OF(TOKENIZE), .help = "replace an existing file" },
	{ "checkpoint-every", OPTIONS_U32, "N", "0", "also write it every N iterations; 0: never",
	  AT(train.checkpoint_every), WHOLE, OF(TRAIN) },
	{ "checkpoint-from", OPTIONS_TEXT, "STORE", AT(checkpoint_from), OF(EXPORT),
	  .help = "where stages that RUN-DIR lacks come from, as in skippipe controller "
		  "--checkpoint-to" },
	{ "raw", OPTIONS_FLAG, AT(raw), OF(TOKENIZE),
	  .help = "the .bin files are raw 16-bit tokens without a header, like nanoGPT's" },
	{ "format", OPTIONS_SECOND, "text|jsonl", "text", "format of the output", AT(jsonl),
	  .words = formats, OF(TRAIN | EVAL) },
	{ "device", OPTIONS_TEXT, "cpu|cuda[:N][:bf16]", "cpu", "the device", AT(device),
	  OF(TRAIN | EVAL) },
	{ "threads", OPTIONS_U32, "N", "1", "threads of the CPU", AT(threads), WHOLE,
	  OF(TRAIN | EVAL) },
	{ "seed", OPTIONS_U64, "N", "1", "seed of the random numbers", AT(seed),
	  LIMITS(0, (double)INT64_MAX), OF(TRAIN | EVAL | GENERATE) },
	{ "seed", OPTIONS_U64, "N", "1", "order in which training will read its corpus", AT(seed),
	  LIMITS(0, (double)INT64_MAX), OF(IMPORT) },
	{ "help", OPTIONS_HELP, .help = "print this help" },
};
#undef AT
#undef LIMITS
#undef WHOLE
#undef OF

static_assert(sizeof(rows) / sizeof(rows[0]) <= OPTION_ROWS_MOST,
	      "struct options.given is too short");

struct options_table option_rows_of(const char *verb, const char *intro)
{
	struct options_table t = { rows, sizeof(rows) / sizeof(rows[0]), .intro = intro,
				   .verb = verb, .word = take_word };

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verb, verbs[i]) == 0)
			t.part = 1u << i;
	return t;
}
