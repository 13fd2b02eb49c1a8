/* Answers questions with several choices. The loss of a choice is the loss of its tokens after the
 * context. The model answers with the choice that has the lowest loss. Each choice is a microbatch
 * of one sequence, in which only the choice's own tokens count. */
#include "model/program/choices.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/program/interrupt.h"
#include "model/program/load.h"
#include "model/text/question.h"

enum { CHOICES_FILE_MOST = 1 << 28 }; /* limit of the file's bytes */

struct choices {
	const struct options *o;
	struct trainer *trainer;
	struct tokenizer *tokenizer;
	char *text; /* content of the file, `size` bytes */
	size_t size;
	int32_t *tokens, *targets; /* (T) tokens and targets of one choice */
};

/* A place in the file. */
struct cursor {
	size_t at;
	uint64_t line; /* the number of the last line that was read */
};

/* Number of questions that were answered, and number that were answered rightly. */
struct tally {
	uint64_t questions, right, right_per_token;
	/* Sum of 1 / choices over the questions: the right answers expected by chance. */
	double chance;
};

/* ---- reading ---- */

static int check_lengths(const struct choices *c, const struct question *q, uint64_t line,
			 struct error *err)
{
	uint32_t sequence = c->o->hyper.sequence;

	for (uint32_t k = 0; k < q->n; k++)
		if (q->choices[k].counted > sequence)
			return error_set(err, -EINVAL,
					 "%s: line %" PRIu64 ": choice %" PRIu32
					 " has %zu tokens, more than the model's sequence of "
					 "%" PRIu32 "; --set sequence=T changes it",
					 c->o->eval.choices, line, k, q->choices[k].counted,
					 sequence);
	return 0;
}

/* Reads the next question. Returns 1 at the end of the file. */
static int next_question(const struct choices *c, struct cursor *at, struct question *q,
			 struct error *err)
{
	int rc = 1;

	while (rc > 0 && at->at < c->size) {
		const char *line = c->text + at->at;
		const char *end = memchr(line, '\n', c->size - at->at);
		size_t size = end ? (size_t)(end - line) : c->size - at->at;

		at->at += size + 1;
		rc = question_read(q, c->tokenizer, line, size, c->o->eval.choices, ++at->line,
				   err);
	}
	return rc;
}

static int check_file(const struct choices *c, struct error *err)
{
	struct cursor at = { .at = 0 };
	struct question q;
	uint64_t n = 0;
	int rc;

	while ((rc = next_question(c, &at, &q, err)) == 0) {
		rc = check_lengths(c, &q, at.line, err);
		question_fini(&q);
		if (rc)
			break;
		n++;
	}
	if (rc > 0 && n == 0)
		return error_set(err, -EINVAL, "%s has no questions", c->o->eval.choices);
	return rc < 0 ? rc : 0;
}

int choices_new(struct choices **out, const struct options *o, struct trainer *trainer,
		struct error *err)
{
	struct choices *c = alloc_new(sizeof(*c));
	const char *model = o->files.at[0];
	int rc;

	c->o = o;
	c->trainer = trainer;
	rc = load_tokenizer(&c->tokenizer, model, o, err);
	if (!rc)
		rc = file_read(o->eval.choices, CHOICES_FILE_MOST, &c->text, &c->size, err);
	if (!rc)
		rc = check_file(c, err);
	if (!rc) {
		c->tokens = calloc(o->hyper.sequence, sizeof(*c->tokens));
		c->targets = calloc(o->hyper.sequence, sizeof(*c->targets));
		if (!c->tokens || !c->targets)
			rc = error_set(err, -ENOMEM, "no memory for a sequence");
	}
	if (rc)
		choices_free(c);
	else
		*out = c;
	return rc;
}

void choices_free(struct choices *c)
{
	if (!c)
		return;
	tokenizer_free(c->tokenizer);
	free(c->text);
	free(c->tokens);
	free(c->targets);
	free(c);
}

/* ---- answering ---- */

/* Fills tokens and targets with the end of a continuation. A target of -1 does not count. */
static void fill_sequence(struct choices *c, const struct continuation *k)
{
	size_t sequence = c->o->hyper.sequence, last = k->n - 1;
	size_t from = last > sequence ? last - sequence : 0;

	for (size_t i = 0; i < sequence; i++) {
		size_t at = from + i;

		c->tokens[i] = at < last ? k->tokens[at] : 0;
		c->targets[i] = at < last && at + 1 >= k->n - k->counted ? k->tokens[at + 1] : -1;
	}
}

/* Computes the losses of a question's choices, each the sum over the choice's tokens. */
static int measure_losses(struct choices *c, const struct question *q, const uint32_t *path,
			  uint32_t visits, double *losses)
{
	for (uint32_t k = 0; k < q->n; k++) {
		float mean;
		int rc;

		fill_sequence(c, &q->choices[k]);
		rc = trainer_evaluate(c->trainer, path, visits, c->tokens, c->targets, &mean);
		if (rc)
			return rc;
		if (!isfinite(mean))
			return -ERANGE;
		losses[k] = (double)mean * (double)q->choices[k].counted;
	}
	return 0;
}

/* Returns the choice with the lowest loss, or the first of several choices with this loss. */
static uint32_t find_lowest(const struct question *q, const double *losses, bool per_token)
{
	uint32_t lowest = 0;
	double best = HUGE_VAL;

	for (uint32_t k = 0; k < q->n; k++) {
		double loss = losses[k] / (per_token ? (double)q->choices[k].counted : 1);

		if (loss < best) {
			best = loss;
			lowest = k;
		}
	}
	return lowest;
}

static void print_question(const char *what, uint64_t line, const struct question *q,
			   const double *losses, uint32_t chosen, uint32_t chosen_per_token)
{
	printf("{\"event\":\"choice\",\"omitted\":\"%s\",\"line\":%" PRIu64 ",\"answer\":%" PRIu32
	       ",\"chosen\":%" PRIu32 ",\"chosen_per_token\":%" PRIu32 ",\"losses\":[",
	       what, line, q->answer, chosen, chosen_per_token);
	for (uint32_t k = 0; k < q->n; k++)
		printf("%s%.6f", k ? "," : "", losses[k]);
	printf("],\"tokens\":[");
	for (uint32_t k = 0; k < q->n; k++)
		printf("%s%zu", k ? "," : "", q->choices[k].counted);
	printf("]}\n");
}

static int answer_question(struct choices *c, const char *what, const struct question *q,
			   uint64_t line, const struct omission *m, struct rng *r,
			   struct tally *tally)
{
	uint32_t path[OMISSION_STAGES], chosen, chosen_per_token;
	uint32_t visits = omission_draw(m, c->o->config.n_stages, r, path);
	double losses[QUESTION_CHOICES];
	int rc = measure_losses(c, q, path, visits, losses);

	if (rc)
		return rc;
	chosen = find_lowest(q, losses, false);
	chosen_per_token = find_lowest(q, losses, true);
	tally->questions++;
	tally->right += chosen == q->answer;
	tally->right_per_token += chosen_per_token == q->answer;
	tally->chance += 1.0 / q->n;
	if (c->o->jsonl)
		print_question(what, line, q, losses, chosen, chosen_per_token);
	return 0;
}

/* ---- the result ---- */

struct share {
	double value, low, high; /* a share of the questions, and the ends of its 95% interval */
};

/* Computes the score interval of Wilson (1927). */
static struct share share_of(uint64_t right, uint64_t questions)
{
	double n = (double)questions, p = (double)right / n, z = 1.959963984540054;
	double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
	double half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n);

	return (struct share){ p, middle - half, middle + half };
}

static void print_tally(const struct choices *c, const char *what, const struct tally *t)
{
	struct share s = share_of(t->right, t->questions);
	struct share per_token = share_of(t->right_per_token, t->questions);
	double chance = t->chance / (double)t->questions;

	if (c->o->jsonl)
		printf("{\"event\":\"eval\",\"omitted\":\"%s\",\"questions\":%" PRIu64
		       ",\"chance\":%.6f,\"accuracy\":%.6f,\"low\":%.6f,\"high\":%.6f,"
		       "\"accuracy_per_token\":%.6f,\"low_per_token\":%.6f,"
		       "\"high_per_token\":%.6f}\n",
		       what, t->questions, chance, s.value, s.low, s.high, per_token.value,
		       per_token.low, per_token.high);
	else
		printf("%-28s right %.1f%% (%.1f to %.1f)  per token %.1f%% (%.1f to %.1f)  "
		       "chance %.1f%%  questions %" PRIu64 "\n",
		       what, 100 * s.value, 100 * s.low, 100 * s.high, 100 * per_token.value,
		       100 * per_token.low, 100 * per_token.high, 100 * chance, t->questions);
}

int choices_show(struct choices *c, const char *what, const struct omission *m)
{
	struct tally tally = { .questions = 0 };
	struct cursor at = { .at = 0 };
	struct question q;
	struct rng r;
	int rc = 0;

	rng_init(&r, c->o->seed);
	while (!rc && next_question(c, &at, &q, NULL) == 0) {
		rc = interrupt_seen() ? EXIT_INTERRUPTED
				      : answer_question(c, what, &q, at.line, m, &r, &tally);
		question_fini(&q);
	}
	if (!rc)
		print_tally(c, what, &tally);
	return rc;
}
