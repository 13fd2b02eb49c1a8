/* question.h - reads a question with several choices, of which a model is to find the likeliest.
 *
 * A question is a line of JSON: {"context": "...", "choices": ["...", "..."], "answer": 0}. Other
 * keys are ignored.
 */
#ifndef MODEL_QUESTION_H
#define MODEL_QUESTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/text/tokenizer.h"

enum { QUESTION_CHOICES = 32 }; /* limit of choices of a question */

/* The context and one of the choices, joined. */
struct continuation {
	int32_t *tokens; /* the n tokens of context and choice */
	size_t n;
	size_t counted; /* number of tokens at the end that belong to the choice, 1 or more */
};

struct question {
	struct continuation choices[QUESTION_CHOICES]; /* one for each of the n choices */
	uint32_t n, answer; /* number of choices, and index of the true choice */
};

/* Reads line `number` of the file `path`. The caller calls question_fini after success. Returns 1
 * if the line is blank. -EINVAL: the line is no question, or the tokenizer lacks tokens for it; the
 * error names path and line. -ENOMEM.
 *
 * As in lm_eval, context and choice are encoded together. The context is also encoded alone,
 * without the white space at its end, which gives n tokens. Of the joint tokens, the first n belong
 * to the context, and the others belong to the choice. White space at the end of the context thus
 * counts as a part of each choice, because many tokens begin with a space. The token that begins a
 * document is put first, if the tokenizer has one. */
int question_read(struct question *out, struct tokenizer *t, const char *line, size_t size,
		  const char *path, uint64_t number, struct error *err);
void question_fini(struct question *q);

#endif
