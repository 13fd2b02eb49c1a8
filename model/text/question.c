/* Reads questions, one line at a time, so that the tokens of a large file are never in memory
 * together. */
#include "model/text/question.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "model/text/jsonl.h"

/* The line that is being read. */
struct reader {
	struct tokenizer *tokenizer;
	const char *path;
	uint64_t number;
	struct error *err;
};

static int expected(const struct reader *r, const char *what)
{
	return error_set(r->err, -EINVAL, "%s: line %" PRIu64 ": expected %s", r->path, r->number,
			 what);
}

/* Encodes a text after the token that begins a document. *n: number of tokens, including this
 * token. */
static int encode(const struct reader *r, const char *text, size_t size, int32_t **tokens,
		  size_t *n)
{
	int32_t begin = tokenizer_begin(r->tokenizer);
	int32_t *encoded, *grown;
	int rc = tokenizer_encode(r->tokenizer, text, size, &encoded, n);

	if (rc)
		return error_set(r->err, rc, "%s: line %" PRIu64 ": %s", r->path, r->number,
				 rc == -EINVAL ? "the tokenizer has no token for some of the text"
					       : strerror(-rc));
	grown = realloc(encoded, (*n + 1) * sizeof(*encoded));
	if (!grown) {
		free(encoded);
		return error_set(r->err, -ENOMEM, "no memory for %zu tokens", *n);
	}
	if (begin >= 0) {
		memmove(grown + 1, grown, *n * sizeof(*grown));
		grown[0] = begin;
		++*n;
	}
	*tokens = grown;
	return 0;
}

/* Reads choice k. before: number of tokens of the context, not counting white space at its end. */
static int read_choice(struct question *q, const struct reader *r, uint32_t k, const char *context,
		       const json_t *choice, size_t before)
{
	struct continuation *c = &q->choices[k];
	char *joined;
	int rc;

	if (!json_is_string(choice) || json_string_length(choice) == 0)
		return expected(r, "\"choices\" to be texts that are not empty");
	joined = alloc_format("%s%s", context, json_string_value(choice));
	rc = encode(r, joined, strlen(joined), &c->tokens, &c->n);
	free(joined);
	if (rc)
		return rc;
	q->n = k + 1;
	if (c->n <= before || before == 0)
		return error_set(r->err, -EINVAL, "%s: line %" PRIu64 ": %s", r->path, r->number,
				 before ? "a choice adds no token to the context"
					: "\"context\" is blank, and the tokenizer has no token "
					  "that begins a text");
	c->counted = c->n - before;
	return 0;
}

/* Returns the size of the text without the white space at its end. */
static size_t stripped(const char *text, size_t size)
{
	while (size > 0 && strchr(" \t\n\v\f\r", text[size - 1]))
		size--;
	return size;
}

static int read_choices(struct question *q, const struct reader *r, const json_t *context,
			const json_t *choices)
{
	const char *text = json_string_value(context);
	size_t before;
	int32_t *tokens;
	int rc = encode(r, text, stripped(text, json_string_length(context)), &tokens, &before);

	if (rc)
		return rc;
	free(tokens);
	for (uint32_t k = 0; k < json_array_size(choices) && !rc; k++)
		rc = read_choice(q, r, k, text, json_array_get(choices, k), before);
	return rc;
}

static int read_object(struct question *q, const struct reader *r, const json_t *line)
{
	const json_t *context = json_object_get(line, "context");
	const json_t *choices = json_object_get(line, "choices");
	const json_t *answer = json_object_get(line, "answer");
	size_t n = json_array_size(choices);
	double index = json_number_value(answer);

	if (!json_is_string(context))
		return expected(r, "an object with a \"context\" that is a text");
	if (n < 2 || n > QUESTION_CHOICES)
		return expected(r, "\"choices\" to be a list of 2 to 32 texts");
	if (!json_is_number(answer) || !(index >= 0 && index < (double)n) ||
	    index != (double)(uint32_t)index)
		return expected(r, "\"answer\" to be the index of a choice, from 0");
	q->answer = (uint32_t)index;
	return read_choices(q, r, context, choices);
}

int question_read(struct question *out, struct tokenizer *t, const char *line, size_t size,
		  const char *path, uint64_t number, struct error *err)
{
	const struct reader r = { .tokenizer = t, .path = path, .number = number, .err = err };
	struct question q = { .n = 0 };
	json_t *json;
	int rc = jsonl_parse(&json, line, size, path, number, err);

	if (rc)
		return rc;
	rc = read_object(&q, &r, json);
	json_decref(json);
	if (rc)
		question_fini(&q);
	else
		*out = q;
	return rc;
}

void question_fini(struct question *q)
{
	for (uint32_t k = 0; k < q->n; k++)
		free(q->choices[k].tokens);
	q->n = 0;
}
