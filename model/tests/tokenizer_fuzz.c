/* libFuzzer: a tokenizer.json, which ends at the last "}\n" of the input, and then a text. A reader
 * refuses the file or gives a consistent tokenizer, which encodes UTF-8 to tokens below its
 * vocabulary and decodes these. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/text/bpe.h"
#include "model/text/jsonl.h"
#include "model/text/question.h"
#include "model/text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int holds)
{
	if (!holds)
		abort();
}

static void use(struct bpe *b, const char *text, size_t size)
{
	int32_t *tokens;
	char *back;
	size_t n, length;

	if (bpe_encode(b, text, size, &tokens, &n))
		return;
	for (size_t i = 0; i < n; i++)
		expect(tokens[i] >= 0 && (uint32_t)tokens[i] < bpe_vocab(b));
	expect(bpe_decode(b, tokens, n, &back, &length) == 0);
	expect(tokenizer_shown(back, length) <= length);
	free(back);
	free(tokens);
}

/* Reads the input as a question. Each choice must have at least one token, and at least one token
 * of the context must precede it. */
static void read_question(const char *data, size_t size)
{
	static struct tokenizer *bytes;
	struct question q;
	struct error err;

	expect(bytes || tokenizer_open(&bytes, NULL, &err) == 0);
	if (question_read(&q, bytes, data, size, "fuzz", 1, &err))
		return;
	expect(q.n >= 2 && q.answer < q.n);
	for (uint32_t k = 0; k < q.n; k++)
		expect(q.choices[k].counted > 0 && q.choices[k].counted < q.choices[k].n);
	question_fini(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char sample[] = "It's  a\xcc\x81 <|x|> 12345\r\n\n\xe4\xbd\xa0 "
				     "\xf0\x9f\x98\x80!";
	const char *text = memrchr(data, '\n', size);
	size_t json = text ? (size_t)(text - (const char *)data) : size;
	struct error err;
	struct jsonl *line;
	struct bpe *b;

	if (jsonl_read(&line, (const char *)data, size, "fuzz", 1, &err) == 0) {
		size_t n;

		expect(jsonl_text(line, &n)[n] == 0);
		jsonl_free(line);
	}
	read_question((const char *)data, size);
	if (bpe_open(&b, (const char *)data, json, "fuzz", NULL, &err))
		return 0;
	expect(bpe_begin(b) < (int32_t)bpe_vocab(b));
	use(b, sample, sizeof(sample) - 1);
	if (text)
		use(b, text, size - json);
	bpe_free(b);
	return 0;
}
