/* skippipe eval: measures the loss on validation text, or the share of questions that are answered
 * rightly, with all stages and with some skipped. This shows which stages a model can do
 * without. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/process/output.h"
#include "base/rng.h"
#include "model/files/safetensors.h"
#include "model/program/choices.h"
#include "model/program/commands.h"
#include "model/program/interrupt.h"
#include "model/program/load.h"
#include "model/program/omission.h"
#include "model/text/corpus.h"
#include "model/text/tokenizer.h"

static const char intro[] =
	"usage: skippipe eval MODEL [--corpus FILE... | --choices FILE] [options]\n"
	"\n"
	"MODEL is a checkpoint, or a folder with config.json and model.safetensors.\n"
	"Prints loss and perplexity on the corpus's validation part. With --choices, prints how\n"
	"often the model finds the true choice.\n"
	"\n";

struct evaluation {
	struct options o;
	struct trainer *trainer;
	struct choices *choices; /* questions to answer; NULL: the loss on the corpus is measured */
	struct corpus *corpus;
	int32_t *tokens, *targets; /* (B, T) of a microbatch */
};

static int measure_loss(struct evaluation *s, const struct omission *m, double *loss)
{
	struct rng r;
	int rc = 0;

	rng_init(&r, s->o.seed);
	*loss = 0;
	for (uint32_t k = 0; k < s->o.batches && !rc; k++) {
		uint32_t path[OMISSION_STAGES];
		uint32_t n = omission_draw(m, s->o.config.n_stages, &r, path);
		float one = 0;

		corpus_validation_batch(s->corpus, k, s->o.hyper.batch, s->tokens, s->targets);
		rc = interrupt_seen() ? EXIT_INTERRUPTED
				      : trainer_evaluate(s->trainer, path, n, s->tokens,
							 s->targets, &one);
		*loss += (double)one / s->o.batches;
	}
	return rc;
}

static int show_loss(struct evaluation *s, const char *what, const struct omission *m)
{
	double loss;
	int rc = measure_loss(s, m, &loss);

	if (rc)
		return rc;
	if (!isfinite(loss))
		return -ERANGE;
	if (s->o.jsonl)
		printf("{\"event\":\"eval\",\"omitted\":\"%s\",\"loss\":%.6f,\"perplexity\":%."
		       "4f}\n",
		       what, loss, exp(loss));
	else
		printf("%-28s loss %.4f  perplexity %.3f\n", what, loss, exp(loss));
	return 0;
}

/* Measures and prints the result with the stages of m skipped. */
static int show_result(struct evaluation *s, const char *what, const struct omission *m)
{
	int rc = s->choices ? choices_show(s->choices, what, m) : show_loss(s, what, m);

	if (rc)
		return rc;
	/* The caller prints the cause of the failure. */
	return output_flush(NULL) ? EXIT_FAILED : 0;
}

/* Prints the result with each single stage skipped, then with 1, 2, ... random stages, then with
 * the last stages. */
static int show_table(struct evaluation *s)
{
	uint32_t others = s->o.config.n_stages - 1;
	uint32_t droppable = visit_rules_droppable(s->o.visits.always, s->o.config.n_stages);
	char what[64];
	int rc = show_result(s, "nothing omitted", &(struct omission){ .more = 0 });

	for (uint32_t i = 1; i <= others && !rc; i++) {
		struct omission m = { .more = 0 };

		m.out[i] = true;
		snprintf(what, sizeof(what), "stage %" PRIu32, i);
		rc = show_result(s, what, &m);
	}
	for (uint32_t i = 1; i <= droppable && !rc; i++) {
		snprintf(what, sizeof(what), "%" PRIu32 " of %" PRIu32 " at random", i, droppable);
		rc = show_result(s, what,
			       &(struct omission){ .more = i, .always = s->o.visits.always });
	}
	for (uint32_t i = others; i-- > 1 && !rc;) {
		struct omission m = { .more = 0 };

		for (uint32_t k = i + 1; k <= others; k++)
			m.out[k] = true;
		snprintf(what, sizeof(what), "all after stage %" PRIu32, i);
		rc = show_result(s, what, &m);
	}
	return rc;
}

/* Writes one batch of validation text with its tokens and all logits to a file, so that another
 * implementation can be compared with this program. */
static int write_logits(struct evaluation *s, const struct omission *m, struct error *err)
{
	const struct hyperparameters *b = &s->o.hyper;
	size_t n = (size_t)b->batch * b->sequence, vocab = s->o.config.vocab;
	float *logits = malloc(n * vocab * sizeof(*logits)),
	      *tokens = malloc(n * sizeof(*tokens));
	uint32_t path[OMISSION_STAGES];
	struct rng r;
	int rc = 0;
	struct safetensors_entry entries[] = {
		{ .name = "logits",
		  .dims = 3,
		  .shape = { b->batch, b->sequence, vocab },
		  .count = n * vocab,
		  .data = logits },
		{ .name = "tokens",
		  .dims = 2,
		  .shape = { b->batch, b->sequence },
		  .count = n,
		  .data = tokens },
	};

	rng_init(&r, s->o.seed);
	if (!logits || !tokens) {
		rc = error_set(err, -1, "no memory for logits");
	} else {
		uint32_t visits = omission_draw(m, s->o.config.n_stages, &r, path);

		corpus_validation_batch(s->corpus, 0, b->batch, s->tokens, s->targets);
		rc = trainer_logits(s->trainer, path, visits, s->tokens, logits);
		if (rc)
			error_set(err, rc, "logits failed: %s", load_failure(s->trainer, rc));
		for (size_t i = 0; i < n; i++)
			tokens[i] = (float)s->tokens[i];
	}
	if (!rc)
		rc = safetensors_write(s->o.eval.logits, entries, 2, NULL, err);
	free(logits);
	free(tokens);
	return rc;
}

static int open_corpus(struct evaluation *s, struct error *err)
{
	const char *model = s->o.files.at[0];
	size_t n = (size_t)s->o.hyper.batch * s->o.hyper.sequence;
	int rc = load_corpus(&s->corpus, &s->o, tokenizer_is_in(model) ? model : NULL, err);

	if (rc)
		return rc;
	s->tokens = calloc(n, sizeof(*s->tokens));
	s->targets = calloc(n, sizeof(*s->targets));
	if (!s->tokens || !s->targets)
		return error_set(err, -1, "no memory for microbatches");
	return 0;
}

static int check_options(const struct options *o, struct error *err)
{
	int rc = 0;

	if (o->batches == 0)
		return error_set(err, -EINVAL, "--batches 0: expected at least 1");
	if (!o->eval.logits)
		return 0;
	for (uint32_t i = 0; i < o->n_corpus && !rc; i++)
		rc = file_refuse_input("--logits", o->eval.logits, o->corpus[i], err);
	return rc ? rc : file_refuse_input("--logits", o->eval.logits, o->files.at[0], err);
}

static int session_init(struct evaluation *s, struct omission *m, struct error *err)
{
	int rc;

	if (s->o.eval.choices && (s->o.n_corpus > 0 || s->o.eval.logits))
		return error_set(err, -EINVAL, "--choices excludes --corpus and --logits");
	s->o.eval.one_sequence = s->o.eval.choices != NULL;
	rc = check_options(&s->o, err);
	if (!rc)
		rc = load_model_folder(&s->trainer, s->o.files.at[0], &s->o, 0, err);
	if (!rc)
		rc = omission_parse(m, &s->o, err);
	if (rc)
		return rc;
	return s->o.eval.choices ? choices_new(&s->choices, &s->o, s->trainer, err)
				 : open_corpus(s, err);
}

static int run_eval(struct evaluation *s)
{
	struct omission m = { .more = 0 };
	struct error err = { "" };
	int rc = session_init(s, &m, &err);

	if (!rc && s->o.eval.logits)
		rc = write_logits(s, &m, &err);
	if (rc)
		return options_fail("eval", &err);
	rc = s->o.eval.table ? show_table(s)
			: show_result(s,
				    m.more || s->o.eval.omit || s->o.exit_after ? "as asked"
									   : "nothing omitted",
				    &m);
	if (rc < 0) {
		error_set(&err, rc, "evaluation failed: %s",
			  rc == -ERANGE ? "the loss is not finite"
					: load_failure(s->trainer, rc));
		return options_fail("eval", &err);
	}
	return rc;
}

int command_eval(int argc, char **argv)
{
	struct evaluation s = { .trainer = NULL };
	int rc = options_parse(&s.o, argc, argv, intro);

	if (!rc && s.o.files.n != 1)
		rc = options_refuse_words(argv[0], intro);
	interrupt_catch();
	if (!rc)
		rc = run_eval(&s);
	choices_free(s.choices);
	trainer_free(s.trainer);
	corpus_free(s.corpus);
	free(s.tokens);
	free(s.targets);
	options_fini(&s.o);
	return rc < 0 ? 0 : rc;
}
