/* Tests byte-level BPE from a tokenizer.json: words, merges, added tokens and normal form, compared
 * with tokens that the tokenizers package (0.23.3) gave for the same file. Also tests files that
 * are refused, texts that are cut, and characters that wait for their last byte. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/tests/test.h"
#include "model/text/bpe.h"
#include "model/text/tokenizer.h"

/* ---- words ---- */

enum { GPT2, LLAMA3, QWEN2, QWEN35, RULES };

#define LATER(letters, numbers, others) \
	"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?" letters "+|" numbers "| ?" others \
	"+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const char *const regexes[RULES] = {
	[GPT2] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|"
		 "\\s+",
	[LLAMA3] = LATER("\\p{L}", "\\p{N}{1,3}", "[^\\s\\p{L}\\p{N}]"),
	[QWEN2] = LATER("\\p{L}", "\\p{N}", "[^\\s\\p{L}\\p{N}]"),
	[QWEN35] = LATER("[\\p{L}\\p{M}]", "\\p{N}", "[^\\s\\p{L}\\p{M}\\p{N}]"),
};

/* clang-format off */
static const struct {
	int rule;
	const char *text;
	size_t words[16]; /* number of bytes of each word */
} cut[] = {
	{ GPT2, "It's  THEY'RE '\305\277a 'tis don't",
	  { 2, 2, 1, 5, 1, 2, 2, 3, 2, 3, 4, 2 } },
	{ GPT2, "a\342\200\251 \352\217\244b",
	  { 1, 3, 5 } },
	{ GPT2, "x\302\205y \343\200\200z",
	  { 1, 2, 1, 1, 3, 1 } },
	{ GPT2, "12345 6\331\243\302\2757",
	  { 5, 7 } },
	{ GPT2, "!!\015\012\015\012  \012  a  ",
	  { 2, 8, 2, 2 } },
	{ GPT2, "\011\011if (x) {\012\011  y;\012}",
	  { 1, 1, 2, 2, 1, 1, 2, 3, 2, 1, 1, 1 } },
	{ GPT2, "  \012 \011",
	  { 5 } },
	{ GPT2, "Vie\314\202\314\243t nam\314\201",
	  { 3, 4, 1, 4, 2 } },
	{ GPT2, "\360\237\221\250\342\200\215\360\237\221\251 \360\237\244\267\360\237\217\275!",
	  { 11, 10 } },
	{ GPT2, "\360\256\257\260\342\272\277 \360\220\265\201\360\220\265\202 \341\262\211x",
	  { 4, 3, 9, 5 } },
	{ LLAMA3, "It's  THEY'RE '\305\277a 'tis don't",
	  { 2, 2, 1, 5, 3, 2, 3, 2, 3, 4, 2 } },
	{ LLAMA3, "a\342\200\251 \352\217\244b",
	  { 1, 3, 5 } },
	{ LLAMA3, "x\302\205y \343\200\200z",
	  { 1, 3, 1, 4 } },
	{ LLAMA3, "12345 6\331\243\302\2757",
	  { 3, 2, 1, 5, 1 } },
	{ LLAMA3, "!!\015\012\015\012  \012  a  ",
	  { 6, 3, 1, 2, 2 } },
	{ LLAMA3, "\011\011if (x) {\012\011  y;\012}",
	  { 1, 3, 2, 1, 1, 3, 2, 2, 2, 1 } },
	{ LLAMA3, "  \012 \011",
	  { 3, 2 } },
	{ LLAMA3, "Vie\314\202\314\243t nam\314\201",
	  { 3, 4, 1, 4, 2 } },
	{ LLAMA3, "\360\237\221\250\342\200\215\360\237\221\251 \360\237\244\267\360\237\217\275!",
	  { 11, 10 } },
	{ LLAMA3, "\360\256\257\260\342\272\277 \360\220\265\201\360\220\265\202 \341\262\211x",
	  { 4, 3, 1, 8, 5 } },
	{ QWEN2, "It's  THEY'RE '\305\277a 'tis don't",
	  { 2, 2, 1, 5, 3, 2, 3, 2, 3, 4, 2 } },
	{ QWEN2, "a\342\200\251 \352\217\244b",
	  { 1, 3, 5 } },
	{ QWEN2, "x\302\205y \343\200\200z",
	  { 1, 3, 1, 4 } },
	{ QWEN2, "12345 6\331\243\302\2757",
	  { 1, 1, 1, 1, 1, 1, 1, 2, 2, 1 } },
	{ QWEN2, "!!\015\012\015\012  \012  a  ",
	  { 6, 3, 1, 2, 2 } },
	{ QWEN2, "\011\011if (x) {\012\011  y;\012}",
	  { 1, 3, 2, 1, 1, 3, 2, 2, 2, 1 } },
	{ QWEN2, "  \012 \011",
	  { 3, 2 } },
	{ QWEN2, "Vie\314\202\314\243t nam\314\201",
	  { 3, 4, 1, 4, 2 } },
	{ QWEN2, "\360\237\221\250\342\200\215\360\237\221\251 \360\237\244\267\360\237\217\275!",
	  { 11, 10 } },
	{ QWEN2, "\360\256\257\260\342\272\277 \360\220\265\201\360\220\265\202 \341\262\211x",
	  { 4, 3, 1, 4, 4, 5 } },
	{ QWEN35, "It's  THEY'RE '\305\277a 'tis don't",
	  { 2, 2, 1, 5, 3, 2, 3, 2, 3, 4, 2 } },
	{ QWEN35, "a\342\200\251 \352\217\244b",
	  { 1, 3, 5 } },
	{ QWEN35, "x\302\205y \343\200\200z",
	  { 1, 3, 1, 4 } },
	{ QWEN35, "12345 6\331\243\302\2757",
	  { 1, 1, 1, 1, 1, 1, 1, 2, 2, 1 } },
	{ QWEN35, "!!\015\012\015\012  \012  a  ",
	  { 6, 3, 1, 2, 2 } },
	{ QWEN35, "\011\011if (x) {\012\011  y;\012}",
	  { 1, 3, 2, 1, 1, 3, 2, 2, 2, 1 } },
	{ QWEN35, "  \012 \011",
	  { 3, 2 } },
	{ QWEN35, "Vie\314\202\314\243t nam\314\201",
	  { 8, 6 } },
	{ QWEN35, "\360\237\221\250\342\200\215\360\237\221\251 \360\237\244\267\360\237\217\275!",
	  { 11, 10 } },
	{ QWEN35, "\360\256\257\260\342\272\277 \360\220\265\201\360\220\265\202 \341\262\211x",
	  { 4, 3, 1, 4, 4, 5 } },
};
/* clang-format on */

TEST(words_are_those_of_the_tokenizers_package)
{
	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		const struct split_rule *rule = split_find(regexes[cut[i].rule]);
		struct characters *characters = characters_new(rule->marks);
		const char *text = cut[i].text;
		size_t size = strlen(text), w = 0;

		for (; size > 0; w++) {
			size_t n = split_word(rule, characters, text, size);

			if (n != cut[i].words[w])
				fail_msg("rule %d, case %zu, word %zu: %zu bytes", cut[i].rule, i,
					 w, n);
			text += n;
			size -= n;
		}
		assert_int_equal(cut[i].words[w], 0);
		characters_free(characters);
	}
	assert_null(split_find("\\p{L}+"));
}

/* A small tokenizer of 263 tokens: the 256 bytes, and then the results of seven merges. */

enum { SMALL = 263 };

static void name_of_byte(unsigned byte, char name[3])
{
	unsigned c = byte;

	if (byte < 33)
		c = 256 + byte;
	else if (byte > 126 && byte < 161)
		c = 256 + 33 + byte - 127;
	else if (byte == 173)
		c = 256 + 67;
	snprintf(name, 3, c < 128 ? "%c" : "%c%c", c < 128 ? c : 0xc0 | c >> 6, 0x80 | (c & 0x3f));
}

static json_t *small_json(void)
{
	static const char *const merges[][2] = {
		{ "l", "o" }, { "\xc4\xa0", "lo" }, { "lo", "w" }, { "\xc4\xa0lo", "w" },
		{ "a", "b" }, { "b", "c" },	    { "\xc3\x83", "\xc2\xa9" },
	};
	json_t *vocab = json_object(), *list = json_array();
	char name[16];

	for (unsigned b = 0; b < 256; b++) {
		name_of_byte(b, name);
		json_object_set_new(vocab, name, json_integer(b));
	}
	for (size_t i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "%s%s", merges[i][0], merges[i][1]);
		json_object_set_new(vocab, name, json_integer((json_int_t)(256 + i)));
		json_array_append_new(list, i % 2 ? json_pack("[s, s]", merges[i][0], merges[i][1])
						  : json_sprintf("%s %s", merges[i][0],
								 merges[i][1]));
	}
	return json_pack("{s:s, s:n, s:n, s:[], s:n, s:{s:s, s:b}, s:n, s:{s:s}, s:{s:s, s:o, "
			 "s:o}}",
			 "version", "1.0", "truncation", "padding", "added_tokens", "normalizer",
			 "pre_tokenizer", "type", "ByteLevel", "add_prefix_space", 0,
			 "post_processor", "decoder", "type", "ByteLevel", "model", "type", "BPE",
			 "vocab", vocab, "merges", list);
}

/* Sets a value by its path, as "model.dropout"; `value` is JSON. */
static void set(json_t *root, const char *path, const char *value)
{
	const char *dot = strchr(path, '.');
	char first[64];

	if (!dot) {
		json_object_set_new(root, path, json_loads(value, JSON_DECODE_ANY, NULL));
		return;
	}
	snprintf(first, sizeof(first), "%.*s", (int)(dot - path), path);
	set(json_object_get(root, first), dot + 1, value);
}

static int open_json(struct bpe **out, json_t *json, struct error *err)
{
	char *text = json_dumps(json, 0);
	int rc = bpe_open(out, text, strlen(text), "t.json", NULL, err);

	free(text);
	json_decref(json);
	return rc;
}

static struct bpe *small(const char *path, const char *value, const char *added)
{
	json_t *json = small_json();
	struct error err = { "" };
	struct bpe *b;

	if (path)
		set(json, path, value);
	if (added)
		set(json, "added_tokens", added);
	if (open_json(&b, json, &err))
		fail_msg("%s", err.text);
	return b;
}

#define GIVES(b, text, ...) \
	expect_tokens(b, text, (int32_t[]){ __VA_ARGS__ }, \
		      sizeof((int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t))

static void expect_tokens(struct bpe *b, const char *text, const int32_t *expected, size_t n)
{
	int32_t *tokens;
	size_t got;

	assert_int_equal(bpe_encode(b, text, strlen(text), &tokens, &got), 0);
	for (size_t i = 0; i < n && i < got; i++)
		if (tokens[i] != expected[i])
			fail_msg("%s: token %zu is %d, expected %d", text, i, tokens[i],
				 expected[i]);
	assert_int_equal(got, n);
	free(tokens);
}

TEST(pairs_are_joined_by_rank)
{
	struct bpe *b = small(NULL, NULL, NULL);

	assert_int_equal(bpe_vocab(b), SMALL);
	assert_int_equal(bpe_begin(b), -1);
	for (int again = 0; again < 2; again++)
		GIVES(b, "low low abc aab", 258, 259, 32, 260, 99, 32, 97, 260);
	bpe_free(b);
}

/* LLaMA 3 looks up a whole word before it merges parts. Some other programs do not. */
TEST(a_word_of_the_vocabulary_needs_no_merges)
{
	json_t *json = small_json();
	struct bpe *b;

	set(json, "model.vocab.\xc4\xa0" "abc", "263");
	set(json, "model.vocab.bca", "264");
	assert_int_equal(open_json(&b, json_deep_copy(json), NULL), 0);
	GIVES(b, " abc abca bca", 32, 260, 99, 32, 260, 99, 97, 32, 261, 97);
	bpe_free(b);
	set(json, "model.ignore_merges", "true");
	assert_int_equal(open_json(&b, json, NULL), 0);
	GIVES(b, " abc abca bca", 263, 32, 260, 99, 97, 32, 261, 97);
	bpe_free(b);
}

TEST(added_tokens_are_found_first)
{
	struct bpe *b = small(
		NULL, NULL,
		"[{\"id\": 263, \"content\": \"<a>\", \"special\": true},"
		" {\"id\": 264, \"content\": \"<a><b>\", \"special\": true},"
		" {\"id\": 265, \"content\": \"<m>\", \"special\": false, \"normalized\": false,"
		"  \"lstrip\": true, \"rstrip\": true}]");
	char *text;
	size_t size;

	GIVES(b, "x<a><b><a> <m>  y<m><m>z", 120, 264, 263, 265, 121, 265, 265, 122);
	GIVES(b, "<a", 60, 97);
	assert_int_equal(bpe_decode(b, (int32_t[]){ 120, 264, 265, 259 }, 4, &text, &size), 0);
	assert_string_equal(text, "x<m> low");
	free(text);
	assert_int_equal(bpe_decode(b, (int32_t[]){ 266 }, 1, &text, &size), -EINVAL);
	bpe_free(b);
	b = small("pre_tokenizer.add_prefix_space", "true",
		  "[{\"id\": 263, \"content\": \"<a>\", \"special\": true}]");
	GIVES(b, "low<a>low<a> low", 259, 263, 259, 263, 259);
	bpe_free(b);
}

/* U+1ACE was added in Unicode 14. The normal form of the tokenizers package does not know this
 * character, and therefore does not reorder it with U+1B44. */
TEST(text_is_put_into_normal_form)
{
	struct bpe *b = small("normalizer", "{\"type\": \"NFC\"}",
			      "[{\"id\": 263, \"content\": \"e\\u0301!\", \"special\": false}]");

	GIVES(b, "e\xcc\x81 \xe1\xab\x8e\xe1\xad\x84 e\xcc\x81! \xc3\xa9!", 262, 32, 225, 171, 142,
	      225, 173, 132, 32, 263, 32, 263);
	bpe_free(b);
}

TEST(documents_begin_with_a_token)
{
	struct bpe *b = small("post_processor",
			      "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "
			      "{\"id\": \"<s>\"}}, {\"Sequence\": {\"id\": \"A\"}}], "
			      "\"special_tokens\": {\"<s>\": {\"ids\": [263]}}}",
			      "[{\"id\": 263, \"content\": \"<s>\", \"special\": true}]");

	assert_int_equal(bpe_begin(b), 263);
	bpe_free(b);
	b = small(NULL, NULL, "[{\"id\": 263, \"content\": \"<|endoftext|>\", \"special\": true}]");
	assert_int_equal(bpe_begin(b), 263);
	bpe_free(b);
}

TEST(bytes_without_a_token_are_an_error)
{
	json_t *json = small_json();
	int32_t *tokens;
	struct bpe *b;
	size_t n;

	json_object_del(json_object_get(json_object_get(json, "model"), "vocab"), "z");
	assert_int_equal(open_json(&b, json, NULL), 0);
	assert_int_equal(bpe_encode(b, "xz", 2, &tokens, &n), -EINVAL);
	assert_int_equal(n, 1); /* index of the "z" */
	assert_int_equal(bpe_encode(b, "x\xff", 2, &tokens, &n), -EINVAL);
	assert_int_equal(n, 1);
	GIVES(b, "xy", 120, 121);
	bpe_free(b);
}

#define SPLIT(regex) \
	"{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", " \
	"\"behavior\": \"Isolated\", \"pattern\": " regex "}, {\"type\": \"ByteLevel\", " \
	"\"add_prefix_space\": false, \"use_regex\": false}]}"

static const struct {
	const char *path, *value, *message;
} refused[] = {
	{ "truncation", "{\"max_length\": 512}", "truncation" },
	{ "padding", "{}", "padding" },
	{ "extra", "1", "extra: unknown key" },
	{ "normalizer", "{\"type\": \"NFKC\"}", "normalizer: \"NFKC\"" },
	{ "normalizer",
	  "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": "
	  "\"Prepend\"}]}",
	  "\"Prepend\"" },
	{ "pre_tokenizer", "{\"type\": \"Metaspace\"}", "pre_tokenizer: \"Metaspace\"" },
	{ "pre_tokenizer", "null", "pre_tokenizer: \"null\"" },
	{ "pre_tokenizer", "{\"type\": \"ByteLevel\", \"use_regex\": false}", "use_regex" },
	/* A pattern that is given as a String is searched for literally, so a regular expression
	 * there never matches. */
	{ "pre_tokenizer", SPLIT("{\"String\": \"\\\\p{N}\"}"), "expected a Regex" },
	{ "pre_tokenizer", SPLIT("{\"Regex\": \"\\\\p{N}{1,3}\"}"), "Qwen): \\p{N}{1,3}" },
	/* as in Falcon's tokenizer.json */
	{ "pre_tokenizer",
	  "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Punctuation\"}]}",
	  "\"Punctuation\"" },
	{ "decoder", "{\"type\": \"Metaspace\"}", "decoder: \"Metaspace\"" },
	{ "post_processor", "{\"type\": \"RobertaProcessing\"}", "\"RobertaProcessing\"" },
	{ "post_processor",
	  "{\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": \"A\"}}, "
	  "{\"SpecialToken\": {\"id\": \"<s>\"}}]}",
	  "none after it" },
	{ "model.type", "\"Unigram\"", "model: type: \"Unigram\"" },
	{ "model.dropout", "0.1", "dropout" },
	{ "model.byte_fallback", "true", "byte_fallback" },
	{ "model.end_of_word_suffix", "\"</w>\"", "end_of_word_suffix" },
	{ "model.continuing_subword_prefix", "\"##\"", "continuing_subword_prefix" },
	{ "model.ignore_merges", "1", "ignore_merges: expected true or false" },
	{ "model.merges", "[\"a b\", \"x y\"]", "merges: 1" },
	{ "model.merges", "[\"a b c\"]", "merges: 0" },
	{ "model.merges", "[[\"a\"]]", "merges: 0" },
	{ "model.merges", "\"a b\"", "\"merges\"" },
	{ "model.vocab.aa", "-1", "vocab: aa" },
	{ "model.vocab.aa", "97", "another token has the id 97" },
	{ "added_tokens", "[{\"id\": 270, \"content\": \"<a>\"}]", "<a>: id 270, expected 263" },
	{ "added_tokens", "[{\"id\": 5, \"content\": \"a\"}]", "a: id 5, expected 97" },
	{ "added_tokens", "[{\"id\": 263, \"content\": \"\"}]", "content" },
	{ "added_tokens", "[{\"id\": 263, \"content\": \"a b\", \"single_word\": true}]",
	  "single_word" },
	{ "added_tokens", "{}", "expected a list" },
};

TEST(settings_that_change_the_tokens_are_refused_by_name)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		json_t *json = small_json();
		struct error err = { "" };
		struct bpe *b;
		int rc;

		set(json, refused[i].path, refused[i].value);
		rc = open_json(&b, json, &err);
		if (rc == 0 || strncmp(err.text, "t.json: ", 8) != 0 ||
		    !strstr(err.text, refused[i].message))
			fail_msg("case %zu: %d, %s; expected %s", i, rc, err.text,
				 refused[i].message);
	}
}

/* ---- texts that are cut ---- */

/* Opens the small tokenizer with one more token, "!\n". LLaMA 3's rule makes this word, although it
 * contains white space. */
static struct tokenizer *open_small(const char *path, const char *value)
{
	json_t *json = small_json(), *model = json_object_get(json, "model");
	char file[] = "/tmp/tokenizer_test.XXXXXX", *text;
	struct tokenizer *t;

	close(mkstemp(file));
	set(json, "added_tokens",
	    "[{\"id\": 264, \"content\": \"<m>\", \"special\": true, \"lstrip\": true, "
	    "\"rstrip\": true}]");
	if (path)
		set(json, path, value);
	set(model, "vocab.!\xc4\x8a", "263");
	json_array_append_new(json_object_get(model, "merges"), json_string("! \xc4\x8a"));
	text = json_dumps(json, 0);
	assert_int_equal(file_write(file, text, strlen(text), 0600, NULL), 0);
	assert_int_equal(tokenizer_open(&t, file, NULL), 0);
	unlink(file);
	free(text);
	json_decref(json);
	return t;
}

/* Encodes text in parts of at most `most` bytes, not counting the bytes that are repeated from the
 * previous part. */
static size_t encode_in_parts(struct tokenizer *t, const char *text, size_t size, size_t most,
			      int32_t *out, size_t *parts)
{
	size_t from = 0, skip = 0, n = 0;

	for (*parts = 1;; ++*parts) {
		size_t to = size - from > most ? from + most : size, got;
		struct tokenizer_seam seam = { .at = to - from };
		int32_t *tokens;

		if (to < size)
			assert_int_equal(tokenizer_find_seam(t, text + from, to - from, &seam), 0);
		assert_int_equal(tokenizer_encode(t, text + from, seam.at, &tokens, &got), 0);
		memcpy(out + n, tokens + skip, (got - skip) * sizeof(*out));
		n += got - skip;
		free(tokens);
		if (to == size)
			return n;
		from += seam.at - seam.context;
		skip = seam.skip;
	}
}

TEST(parts_have_the_tokens_of_the_whole)
{
	enum { SIZE = 200000, PART = 4000 };
	static const char *const words[] = { "low", " ", "  ", "\n", "\r\n", "<m>", "abc", "1234",
					     "!", " low", "\xc3\xa9", "\t", "bc", " \n  ",
					     "!\n", "!\n", "!\n", "!\n" };
	static const char *const rules[][2] = {
		{ NULL, NULL },
		{ "pre_tokenizer.add_prefix_space", "true" },
		{ "pre_tokenizer",
		  SPLIT("{\"Regex\": \"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
			"[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| "
			"?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|"
			"\\\\s+(?!\\\\S)|\\\\s+\"}") },
	};
	char *text = malloc(SIZE + 16);
	int32_t *parts = malloc((SIZE + 16) * sizeof(*parts)), *whole;
	size_t size = 0, n, m, cuts;
	struct rng r;

	rng_init(&r, 3);
	while (size < SIZE)
		size += (size_t)sprintf(text + size, "%s",
					words[rng_below(&r, sizeof(words) / sizeof(words[0]))]);
	for (size_t i = 0; i < 3; i++) {
		struct tokenizer *t = open_small(rules[i][0], rules[i][1]);

		assert_int_equal(tokenizer_encode(t, text, size, &whole, &n), 0);
		m = encode_in_parts(t, text, size, PART, parts, &cuts);
		assert_true(cuts > 30);
		assert_int_equal(m, n);
		assert_memory_equal(parts, whole, n * sizeof(*whole));
		free(whole);
		tokenizer_free(t);
	}
	free(text);
	free(parts);
}

/* The tokenizers package gives these tokens too. */
TEST(white_space_that_a_token_strips_is_no_other_token)
{
	static const struct {
		const char *text;
		int32_t tokens[3];
		size_t n;
	} cases[] = {
		{ "<m>\n\n", { 264 }, 1 }, { "\n<m>", { 265, 264 }, 2 }, { "\n\n", { 265 }, 1 },
		{ "<n>\n", { 266, 265 }, 2 },
	};
	struct tokenizer *t = open_small(
		"added_tokens",
		"[{\"id\": 264, \"content\": \"<m>\", \"special\": true, \"rstrip\": true}, "
		"{\"id\": 265, \"content\": \"\\n\", \"lstrip\": true, \"rstrip\": true}, "
		"{\"id\": 266, \"content\": \"<n>\"}]");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int32_t *tokens;
		size_t n;

		assert_int_equal(tokenizer_encode(t, cases[i].text, strlen(cases[i].text), &tokens,
						  &n),
				 0);
		assert_int_equal(n, cases[i].n);
		assert_memory_equal(tokens, cases[i].tokens, n * sizeof(*tokens));
		free(tokens);
	}
	tokenizer_free(t);
}

TEST(a_text_without_a_place_to_cut_asks_for_more)
{
	struct tokenizer *t = open_small(NULL, NULL);
	struct tokenizer_seam seam;
	char *text = malloc(20000);

	memset(text, 'a', 20000);
	assert_int_equal(tokenizer_find_seam(t, text, 20000, &seam), -EAGAIN);
	assert_int_equal(tokenizer_find_seam(t, text, 0, &seam), -EAGAIN);
	free(text);
	tokenizer_free(t);
}

/* ---- streamed text ---- */

TEST(a_part_of_a_character_waits)
{
	static const struct {
		const char *text;
		size_t shown;
	} cases[] = {
		{ "", 0 },
		{ "a", 1 },
		{ "a\xc3", 1 },
		{ "a\xc3\xa9", 3 },
		{ "a\xf0\x9f\x98", 1 },
		{ "a\xf0\x9f\x98\x80", 5 },
		{ "\xf0", 0 },
		/* The bytes can never become a character. */
		{ "a\x80\x80\x80\x80", 5 },
		{ "a\xff", 2 }, /* the byte 0xff can never begin a character */
		{ "\xe4\xbd", 0 },
		/* SentencePiece decodes each byte of an incomplete character as U+FFFD. */
		{ "a\xef\xbf\xbd\xef\xbf\xbd", 1 },
		/* Four U+FFFD are too many for one character, so the first is shown. */
		{ "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 3 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(tokenizer_shown(cases[i].text, strlen(cases[i].text)),
				 cases[i].shown);
}

/* A tokenizer of bytes, without a rule for words, as skippipe export writes it. */
TEST(a_tokenizer_of_bytes_is_known)
{
	json_t *json = small_json(), *name;
	json_t *vocab = json_object_get(json_object_get(json, "model"), "vocab");
	const char *key;
	struct bpe *b;
	void *next;

	json_object_foreach_safe(vocab, next, key, name)
	{
		if (json_integer_value(name) > 255)
			json_object_del(vocab, key);
	}
	set(json, "model.merges", "[]");
	set(json, "pre_tokenizer.use_regex", "false");
	assert_int_equal(open_json(&b, json_deep_copy(json), NULL), 0);
	assert_true(bpe_is_bytes(b));
	bpe_free(b);
	set(json, "model.vocab.xx", "256");
	assert_int_equal(open_json(&b, json, NULL), 0);
	assert_false(bpe_is_bytes(b));
	bpe_free(b);
}
