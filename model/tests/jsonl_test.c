/* Tests JSON lines: documents that are read, lines without a document, and errors that name the
 * place. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/text/jsonl.h"

#define LINE(text) text, sizeof(text) - 1

static const struct {
	uint64_t number;
	const char *line;
	size_t size;
	const char *text; /* the document; NULL: the line has none, and `why` is the reason */
	int why; /* enum jsonl_line; 0: the line has a document */
} read_cases[] = {
	{ 1, LINE("{\"text\": \"a\"}\n"), "a", 0 },
	{ 1, LINE("\xef\xbb\xbf{\"text\": \"a\"}\r\n"), "a", 0 },
	{ 2, LINE("  {\"id\": 1, \"text\": \"\\ud83d\\ude00\\\\ud83d\"}"),
	  "\xf0\x9f\x98\x80\\ud83d", 0 },
	{ 3, LINE("{\"text\": \"\"}\n"), NULL, JSONL_EMPTY },
	/* A number too large for an integer is ignored, like every key but "text". */
	{ 4, LINE("{\"id\": 123456789012345678901234567890, \"text\": \"b\"}"), "b", 0 },
	{ 1, LINE("\xef\xbb\xbf\n"), NULL, JSONL_BLANK },
	{ 2, LINE("\r\n"), NULL, JSONL_BLANK },
	{ 2, LINE(" \t \n"), NULL, JSONL_BLANK },
	{ 5, LINE("{\"text\": null}\n"), NULL, JSONL_NULL },
};

TEST(documents_are_read)
{
	for (size_t i = 0; i < sizeof(read_cases) / sizeof(read_cases[0]); i++) {
		struct error err = { "" };
		struct jsonl *j;
		int rc = jsonl_read(&j, read_cases[i].line, read_cases[i].size, "f.jsonl",
				    read_cases[i].number, &err);
		size_t n;

		if (rc != read_cases[i].why)
			fail_msg("case %zu: %d %s", i, rc, err.text);
		if (rc)
			continue;
		assert_string_equal(jsonl_text(j, &n), read_cases[i].text);
		assert_int_equal(n, strlen(read_cases[i].text));
		jsonl_free(j);
	}
}

static const struct {
	uint64_t number;
	const char *line;
	size_t size;
	const char *message;
} faults[] = {
	{ 7, LINE("{\"text\": \"ab\xff\"}"), "line 7, byte 13: not UTF-8" },
	{ 1, LINE("\xef\xbb\xbf{\"text\": \"ab\xff\"}"), "line 1, byte 16: not UTF-8" },
	/* A program has written a byte of Latin-1 (0xb2) as half of a surrogate pair. */
	{ 2, LINE("{\"text\": \"x \\udcb2\"}"), "line 2, byte 13: half of a surrogate pair" },
	{ 3, LINE("{\"text\": \"\\\\\\ud83d \\ude00\"}"), "line 3, byte 13: half of a surrogate" },
	{ 3, LINE("{\"text\": \"\\ud83d\\u0041\"}"), "line 3, byte 11: half of a surrogate" },
	{ 3, LINE("{\"text\": \"\\ud83d"), "line 3, byte 11: half of a surrogate" },
	/* Two surrogates that are encoded separately (CESU-8) are not valid UTF-8. */
	{ 4, LINE("{\"text\": \"\xed\xa0\xbd\xed\xb8\x80\"}"), "line 4, byte 11: not UTF-8" },
	{ 5, LINE("{\"text\": \"a\\u0000\"}"), "line 5, byte 12: \\u0000, a NUL" },
	{ 6, LINE("{\"text\": \"a\0b\"}"), "line 6, byte 12: NUL" },
	{ 7, LINE("{\"text\": \"a"), "line 7, byte 11: premature end" },
	{ 8, LINE("{\"text\": \"a\"} {\"text\": \"b\"}"), "line 8, byte 15: end of file expected" },
	{ 9, LINE("{\"text\": 5}"), "line 9, byte 1: expected an object with a \"text\"" },
	{ 9, LINE("{\"content\": \"a\"}"), "expected an object with a \"text\"" },
	{ 9, LINE("[{\"text\": \"a\"}]"), "expected an object with a \"text\"" },
	{ 2, LINE("\xef\xbb\xbf{\"text\": \"a\"}"), "line 2, byte " },
	{ 1, LINE("\0\n"), "line 1, byte 1: NUL" },
};

TEST(faults_have_a_place_and_a_cause)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct error err = { "" };
		struct jsonl *j;
		int rc = jsonl_read(&j, faults[i].line, faults[i].size, "f.jsonl",
				    faults[i].number, &err);

		if (rc != -EINVAL || strncmp(err.text, "f.jsonl: ", 9) != 0 ||
		    !strstr(err.text, faults[i].message))
			fail_msg("case %zu: %d, %s; expected %s", i, rc, err.text,
				 faults[i].message);
	}
}
