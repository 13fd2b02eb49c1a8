/* Tests questions: the tokens of contexts and choices, and errors that name the line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "model/text/question.h"

/* The letters of "low", their merges and a space. Token 6 begins a document. */
static const char bpe[] =
	"{\"added_tokens\": [{\"id\": 6, \"content\": \"<|endoftext|>\", \"special\": true}],"
	"\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false},"
	"\"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"vocab\":"
	"{\"l\": 0, \"o\": 1, \"w\": 2, \"\xc4\xa0\": 3, \"lo\": 4, \"\xc4\xa0lo\": 5},"
	"\"merges\": [\"l o\", \"\xc4\xa0 lo\"]}}";

static struct tokenizer *tokenizers[2]; /* [0]: every byte is a token; [1]: the tokenizer `bpe` */

static int open_tokenizers(void **state)
{
	char path[] = "/tmp/skippipe-question-XXXXXX";
	struct error err;
	int fd = mkstemp(path), rc;

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	rc = tokenizer_open(&tokenizers[0], NULL, &err);
	if (!rc)
		rc = file_write(path, bpe, sizeof(bpe) - 1, 0600, &err);
	if (!rc)
		rc = tokenizer_open(&tokenizers[1], path, &err);
	unlink(path);
	return rc;
}

static int free_tokenizers(void **state)
{
	(void)state;
	tokenizer_free(tokenizers[0]);
	tokenizer_free(tokenizers[1]);
	return 0;
}

/* counted, size and tokens: the expected values of the second choice. */
static const struct {
	int bpe;
	const char *line;
	uint32_t n, answer;
	size_t counted, size;
	int32_t tokens[8];
} cases[] = {
	{ 0, "{\"context\": \"ab\", \"choices\": [\"c\", \"de\"], \"answer\": 1}", 2, 1, 2, 4,
	  { 'a', 'b', 'd', 'e' } },
	/* White space at the end of the context belongs to the choices. */
	{ 0,
	  "{\"choices\": [\"c\", \"d\", \"e\"], \"id\": 3, \"answer\": 0, "
	  "\"context\": \"a \\n\"}",
	  3, 0, 3, 4, { 'a', ' ', '\n', 'd' } },
	{ 1, "{\"context\": \"low \", \"choices\": [\"w\", \"low\"], \"answer\": 1}", 2, 1, 2, 5,
	  { 6, 4, 2, 5, 2 } },
	/* Only the token that begins a document comes before the choices. */
	{ 1, "{\"context\": \"\", \"choices\": [\"w\", \"ll\"], \"answer\": 1}", 2, 1, 2, 3,
	  { 6, 0, 0 } },
};

#define FIXTURE_TEST(name) TEST_WITH(name, open_tokenizers, free_tokenizers)

FIXTURE_TEST(questions_are_read)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct continuation *c;
		struct question q;
		struct error err = { "" };
		int rc = question_read(&q, tokenizers[cases[i].bpe], cases[i].line,
				       strlen(cases[i].line), "f.jsonl", 1, &err);

		if (rc)
			fail_msg("case %zu: %d %s", i, rc, err.text);
		c = &q.choices[1];
		assert_int_equal(q.n, cases[i].n);
		assert_int_equal(q.answer, cases[i].answer);
		assert_int_equal(c->counted, cases[i].counted);
		assert_int_equal(c->n, cases[i].size);
		assert_memory_equal(c->tokens, cases[i].tokens, c->n * sizeof(*c->tokens));
		question_fini(&q);
	}
}

FIXTURE_TEST(blank_lines_are_skipped)
{
	struct question q;

	assert_int_equal(question_read(&q, tokenizers[0], " \r", 2, "f.jsonl", 2, NULL), 1);
}

#define LIST(choices) "{\"context\": \"a\", \"answer\": 0, \"choices\": " choices "}"
#define ANSWER(answer) "{\"context\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": " answer "}"

static const struct {
	int bpe;
	const char *line, *message;
} faults[] = {
	{ 0, "{\"context\": \"a", "line 7, byte 14: premature end" },
	{ 0, "{\"context\": \"\xff\"}", "line 7, byte 14: not UTF-8" },
	{ 0, "[1]", "line 7: expected an object with a \"context\"" },
	{ 0, "{\"context\": 1}", "line 7: expected an object with a \"context\"" },
	{ 0, "{\"context\": \"a\"}", "line 7: expected \"choices\" to be a list of 2 to 32" },
	{ 0, LIST("[\"b\"]"), "expected \"choices\" to be a list of 2 to 32" },
	{ 0, LIST("[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,"
		  "29,30,31,32,33]"),
	  "expected \"choices\" to be a list of 2 to 32" },
	{ 0, LIST("[\"b\", 2]"), "expected \"choices\" to be texts" },
	{ 0, LIST("[\"b\", \"\"]"), "texts that are not empty" },
	{ 0, ANSWER("2"), "expected \"answer\" to be the index" },
	{ 0, ANSWER("-1"), "expected \"answer\" to be the index" },
	{ 0, ANSWER("0.5"), "expected \"answer\" to be the index" },
	{ 0, ANSWER("1e300"), "expected \"answer\" to be the index" },
	{ 0, ANSWER("\"0\""), "expected \"answer\" to be the index" },
	{ 0, "{\"context\": \" \", \"choices\": [\"b\", \"c\"], \"answer\": 0}",
	  "line 7: \"context\" is blank" },
	{ 1, "{\"context\": \"l\", \"choices\": [\"w\", \"h\"], \"answer\": 0}",
	  "line 7: the tokenizer has no token" },
	/* The choice "o" adds no token: "lo" is one token, like the context "l". */
	{ 1, "{\"context\": \"l\", \"choices\": [\"w\", \"o\"], \"answer\": 0}",
	  "line 7: a choice adds no token" },
};

FIXTURE_TEST(faults_name_the_line)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct error err = { "" };
		struct question q;
		int rc = question_read(&q, tokenizers[faults[i].bpe], faults[i].line,
				       strlen(faults[i].line), "f.jsonl", 7, &err);

		if (rc != -EINVAL || strncmp(err.text, "f.jsonl: ", 9) != 0 ||
		    !strstr(err.text, faults[i].message))
			fail_msg("case %zu: %d, %s; expected %s", i, rc, err.text,
				 faults[i].message);
	}
}
