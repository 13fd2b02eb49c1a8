/* skippipe eval: measures the loss on validation text with all stages and with some skipped. This
 * shows which stages a model can do without. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/output.h"
#include "base/rng.h"
#include "model/text/corpus.h"
#include "model/text/tokenizer.h"
#include "model/files/safetensors.h"
#include "model/program/commands.h"
#include "model/program/interrupt.h"
#include "model/program/load.h"

static const char help[] =
	"usage: skippipe eval MODEL [--corpus FILE...]\n"
	"MODEL is a checkpoint, or a folder with config.json and model.safetensors.\n"
	"Prints loss and perplexity on the corpus's validation part.\n"
	"  --omit S,S,...       skip these stages\n"
	"  --omit-fraction F    skip the fraction F of the stages other than 0, drawn for each\n"
	"                       microbatch\n"
	"  --always STAGE,...   stages that are never skipped at random\n"
	"  --exit-after S       skip every stage after S\n"
	"  --table              the loss without each stage, without each fraction, and for each\n"
	"                       early exit\n"
	"  --logits FILE        write the first microbatch's tokens and logits, as safetensors\n"
	"  --batches N          validation microbatches (default 16)\n"
	"  --set batch=B --set sequence=T --threads N --seed N --device cpu|cuda[:N][:bf16]\n"
	"  --format text|jsonl\n";

struct session {
	struct options o;
	struct trainer *trainer;
	struct corpus *corpus;
	int32_t *tokens, *targets; /* (B, T) */
};

/* Chooses the stages to skip: those in `out`, and for each microbatch `more` random ones that are
 * not in `always`. */
struct omission {
	bool out[1024];
	uint32_t more;
	stage_set always;
};

static uint32_t draw_visited(const struct omission *m, uint32_t n_stages, struct rng *r,
			     uint32_t *path)
{
	bool out[1024] = { true };
	uint32_t left = 0, n = 0;

	for (uint32_t s = 1; s < n_stages; s++) {
		out[s] = m->out[s];
		left += !visit_rules_always(m->always, s) && !out[s];
	}
	for (uint32_t k = 0; k < m->more && left > 0; k++, left--) {
		uint32_t which = rng_below(r, left), s = 1;

		while (out[s] || visit_rules_always(m->always, s) || which-- > 0)
			s++;
		out[s] = true;
	}
	for (uint32_t s = 1; s < n_stages; s++)
		if (!out[s])
			path[n++] = s;
	return n;
}

static int measure_loss(struct session *s, const struct omission *m, double *loss)
{
	struct rng r;
	int rc = 0;

	rng_init(&r, s->o.seed);
	*loss = 0;
	for (uint32_t k = 0; k < s->o.batches && !rc; k++) {
		uint32_t path[1024], n = draw_visited(m, s->o.config.n_stages, &r, path);
		float one = 0;

		corpus_validation_batch(s->corpus, k, s->o.recipe.batch, s->tokens, s->targets);
		rc = trainer_evaluate(s->trainer, path, n, s->tokens, s->targets, &one);
		*loss += (double)one / s->o.batches;
	}
	return rc;
}

static int show_loss(struct session *s, const char *what, const struct omission *m)
{
	double loss;
	int rc = interrupt_seen() ? EXIT_INTERRUPTED : measure_loss(s, m, &loss);

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
	return output_flush(NULL) ? EXIT_FAILED : 0; /* the caller prints the cause */
}

/* Parses a list of stages from 1 on, such as "1,3". */
static int parse_omit(struct session *s, struct omission *m, struct error *err)
{
	const char *at = s->o.eval.omit;

	while (at && *at) {
		char *end;
		unsigned long stage = strtoul(at, &end, 10);

		if (end == at || (*end && *end != ',') || stage == 0 ||
		    stage >= s->o.config.n_stages)
			return error_set(err, -1,
					 "--omit %s: expected stages from 1 to %" PRIu32
					 ", as 1,3 (stage 0 holds embedding and head)",
					 s->o.eval.omit, s->o.config.n_stages - 1);
		m->out[stage] = true;
		at = *end ? end + 1 : end;
	}
	if (s->o.exit_after >= s->o.config.n_stages)
		return error_set(err, -1,
				 "--exit-after %" PRIu32 ": the last stage is %" PRIu32,
				 s->o.exit_after, s->o.config.n_stages - 1);
	for (uint32_t i = s->o.exit_after + 1; s->o.exit_after && i < s->o.config.n_stages; i++)
		m->out[i] = true;
	if (visit_rules_check(&s->o.visits, s->o.config.n_stages, err))
		return -1;
	m->always = s->o.visits.always;
	m->more = (uint32_t)lrintf(s->o.eval.omit_fraction * (float)(s->o.config.n_stages - 1));
	return 0;
}

/* Prints the loss without each stage, then without 1, 2, ... random stages, then without the last
 * stages. */
static int show_table(struct session *s)
{
	uint32_t others = s->o.config.n_stages - 1;
	uint32_t droppable = visit_rules_droppable(s->o.visits.always, s->o.config.n_stages);
	char what[64];
	int rc = show_loss(s, "nothing omitted", &(struct omission){ .more = 0 });

	for (uint32_t i = 1; i <= others && !rc; i++) {
		struct omission m = { .more = 0 };

		m.out[i] = true;
		snprintf(what, sizeof(what), "stage %" PRIu32, i);
		rc = show_loss(s, what, &m);
	}
	for (uint32_t i = 1; i <= droppable && !rc; i++) {
		snprintf(what, sizeof(what), "%" PRIu32 " of %" PRIu32 " at random", i, droppable);
		rc = show_loss(s, what,
			       &(struct omission){ .more = i, .always = s->o.visits.always });
	}
	for (uint32_t i = others; i-- > 1 && !rc;) {
		struct omission m = { .more = 0 };

		for (uint32_t k = i + 1; k <= others; k++)
			m.out[k] = true;
		snprintf(what, sizeof(what), "all after stage %" PRIu32, i);
		rc = show_loss(s, what, &m);
	}
	return rc;
}

/* Writes one batch of validation text with its tokens and all logits to a file, so that another
 * implementation can be compared with this one. */
static int write_logits(struct session *s, const struct omission *m, struct error *err)
{
	const struct recipe *b = &s->o.recipe;
	size_t n = (size_t)b->batch * b->sequence, vocab = s->o.config.vocab;
	float *logits = malloc(n * vocab * sizeof(*logits)),
	      *tokens = malloc(n * sizeof(*tokens));
	uint32_t path[1024];
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
		uint32_t visits = draw_visited(m, s->o.config.n_stages, &r, path);

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

static int session_init(struct session *s, struct omission *m, struct error *err)
{
	size_t n;
	int rc = load_model_folder(&s->trainer, s->o.files.at[0], &s->o, 0, err);

	if (!rc)
		rc = parse_omit(s, m, err);
	if (!rc)
		rc = load_corpus(&s->corpus, &s->o,
				 tokenizer_is_in(s->o.files.at[0]) ? s->o.files.at[0] : NULL, err);
	if (rc)
		return rc;
	n = (size_t)s->o.recipe.batch * s->o.recipe.sequence;
	s->tokens = calloc(n, sizeof(*s->tokens));
	s->targets = calloc(n, sizeof(*s->targets));
	if (!s->tokens || !s->targets)
		return error_set(err, -1, "no memory for microbatches");
	return 0;
}

static int run_eval(struct session *s)
{
	struct omission m = { .more = 0 };
	struct error err = { "" };
	int rc = session_init(s, &m, &err);

	if (!rc && s->o.eval.logits)
		rc = write_logits(s, &m, &err);
	if (rc)
		return options_fail("eval", &err);
	rc = s->o.eval.table ? show_table(s)
			: show_loss(s,
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
	struct session s = { .trainer = NULL };
	int rc = options_parse(&s.o, argc, argv, help);

	if (!rc && s.o.files.n != 1) {
		fputs(help, stderr);
		rc = EXIT_USAGE;
	}
	interrupt_catch();
	if (!rc)
		rc = run_eval(&s);
	trainer_free(s.trainer);
	corpus_free(s.corpus);
	free(s.tokens);
	free(s.targets);
	options_fini(&s.o);
	return rc < 0 ? 0 : rc;
}
