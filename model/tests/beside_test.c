/* Tests the files that accompany a tokenizer in its folder. Their tokens, flags and settings are
 * used, or are refused by an error that names file and key. The expected tokens are from the
 * transformers library (4.46), for the same folders. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "model/text/tokenizer.h"

#define ADDED \
	"\"lstrip\": false, \"rstrip\": false, \"single_word\": false, \"normalized\": false, "
#define LLAMA \
	"\"tokenizer_class\": \"LlamaTokenizer\", \"bos_token\": \"<s>\", \"eos_token\": " \
	"\"</s>\", " \
	"\"model_max_length\": 1000000000000000019884624838656"
#define DECODER(flags) \
	"\"added_tokens_decoder\": {\"1\": {\"content\": \"<s>\", " ADDED "\"special\": true}, " \
	"\"265\": {\"content\": \"<|im_end|>\", " flags "\"special\": true}}"
#define DEC DECODER(ADDED)
#define STRIPS "\"lstrip\": true, \"rstrip\": true, \"single_word\": false, \"normalized\": false, "
#define CONFIG "tokenizer_config.json"

static char folder[64];

static void put(const char *name, const void *data, size_t size)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(file_write(path, data, size, FILE_PRIVATE, NULL), 0);
}

struct beside_case {
	const char *files[2][2]; /* names and contents of the files */
	const char *text;
	int32_t begin;            /* token at the beginning of every text; -1: none */
	int32_t tokens[8];        /* expected tokens, and -1 after the last one */
	const char *refused;      /* a part of the expected error; NULL: the tokens are expected */
};

static void check_tokens(struct tokenizer *t, const struct beside_case *c)
{
	int32_t *tokens;
	size_t n, i = 0;

	assert_int_equal(tokenizer_begin(t), c->begin);
	assert_int_equal(tokenizer_encode(t, c->text, strlen(c->text), &tokens, &n), 0);
	for (; c->tokens[i] >= 0; i++)
		if (i >= n || tokens[i] != c->tokens[i])
			fail_msg("%s: token %zu of %zu", c->text, i, n);
	assert_int_equal(n, i);
	free(tokens);
}

static void check_case(const struct beside_case *c, const char *tokenizer, const void *data,
		       size_t size, bool names_file)
{
	char path[128];
	struct tokenizer *t;
	struct error err = { "" };
	int rc;

	strcpy(folder, "/tmp/skippipe-beside-XXXXXX");
	assert_non_null(mkdtemp(folder));
	put(tokenizer, data, size);
	for (size_t i = 0; i < 2 && c->files[i][0]; i++)
		put(c->files[i][0], c->files[i][1], strlen(c->files[i][1]));
	snprintf(path, sizeof(path), "%s/%s", folder, tokenizer);
	rc = tokenizer_open(&t, names_file ? path : folder, &err);
	file_remove_folder(folder);
	if (c->refused) {
		if (rc == 0 || !strstr(err.text, c->refused))
			fail_msg("%d: %s; expected %s", rc, err.text, c->refused);
		return;
	}
	if (rc)
		fail_msg("%s", err.text);
	check_tokens(t, c);
	tokenizer_free(t);
}

/* ---- byte-level BPE ---- */

/* The letters of "low", their merges, a space and two added tokens. */
#define BPE(post) \
	"{\"added_tokens\": [{\"id\": 6, \"content\": \"<b>\", \"special\": true}," \
	"{\"id\": 7, \"content\": \"<|endoftext|>\", \"special\": true}], \"normalizer\": null," \
	"\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}," post \
	"\"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"vocab\":" \
	"{\"l\": 0, \"o\": 1, \"w\": 2, \"\xc4\xa0\": 3, \"lo\": 4, \"\xc4\xa0lo\": 5}," \
	"\"merges\": [\"l o\", \"\xc4\xa0 lo\"]}}"

static const char
	plain[] = BPE(""),
	template[] = BPE("\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\":"
			 "[{\"SpecialToken\": {\"id\": \"<b>\"}}, {\"Sequence\": {\"id\": \"A\"}}],"
			 "\"special_tokens\": {\"<b>\": {\"ids\": [6]}}},");

#define IM_END(id) "{\"" id "\": {\"content\": \"<|im_end|>\", "

static const struct {
	bool has_template;
	struct beside_case is;
} bpe_cases[] = {
	{ false, { .text = "lo lo", .begin = 7, .tokens = { 4, 5, -1 } } },
	{ false,
	  { { { "added_tokens.json", "{\"<|im_end|>\": 8}" } },
	    "lo<|im_end|> lo",
	    7,
	    { 4, 8, 5, -1 },
	    NULL } },
	{ false,
	  { { { CONFIG, "{\"added_tokens_decoder\": " IM_END("8") ADDED "\"special\": true}}}" } },
	    "lo<|im_end|>lo",
	    7,
	    { 4, 8, 4, -1 },
	    NULL } },
	{ false,
	  { { { CONFIG, "{\"added_tokens_decoder\": " IM_END("8") STRIPS "\"special\": true}}}" } },
	    "lo <|im_end|> lo",
	    7,
	    { 4, 8, 4, -1 },
	    NULL } },
	{ false,
	  { { { CONFIG, "{\"added_tokens_decoder\": " IM_END("9") ADDED "\"special\": true}}}" } },
	    .refused = CONFIG ": added_tokens_decoder: <|im_end|>: id 9, expected 8" } },
	{ false,
	  { { { CONFIG, "{\"pad_token\": \"<pad>\"}" } },
	    .refused = CONFIG ": pad_token: <pad>: the tokenizer has no such token" } },
	{ false,
	  { { { "special_tokens_map.json", "{\"pad_token\": {\"content\": \"<pad>\"}}" } },
	    .refused = "special_tokens_map.json: pad_token: <pad>: the tokenizer" } },
	{ false,
	  { { { "special_tokens_map.json", "{\"additional_special_tokens\": [\"<|i|>\"]}" },
	      { "added_tokens.json", "{\"<|i|>\": 8}" } },
	    "lo<|i|>",
	    7,
	    { 4, 8, -1 },
	    NULL } },
	/* A token of the vocabulary becomes a special token. */
	{ false, { { { CONFIG, "{\"mask_token\": \"w\"}" } }, "lowlo", 7, { 4, 2, 4, -1 }, NULL } },
	{ false, { { { CONFIG, "{\"add_bos_token\": false}" } }, "lo", -1, { 4, -1 }, NULL } },
	{ true, { .text = "lo", .begin = 6, .tokens = { 4, -1 } } },
	{ true,
	  { { { CONFIG, "{\"add_bos_token\": false, " LLAMA "}" } },
	    .refused = "bos_token: <s>: the tokenizer has no such token" } },
	{ true,
	  { { { CONFIG, "{\"add_bos_token\": false, \"tokenizer_class\": \"LlamaTokenizer\"}" } },
	    "lo",
	    -1,
	    { 4, -1 },
	    NULL } },
	{ true,
	  { { { CONFIG, "{\"add_bos_token\": false, \"tokenizer_class\": "
			"\"PreTrainedTokenizerFast\"}" } },
	    .refused = "\"add_bos_token\": false" } },
	{ false,
	  { { { CONFIG, "{\"add_bos_token\": true, \"bos_token\": \"<b>\"}" } },
	    "lo",
	    6,
	    { 4, -1 },
	    NULL } },
	{ false,
	  { { { CONFIG, "{\"add_bos_token\": true}" } }, .refused = "\"add_bos_token\": true" } },
	{ false,
	  { { { CONFIG, "{\"add_eos_token\": true}" } },
	    .refused = CONFIG ": add_eos_token: expected false" } },
	{ false,
	  { { { CONFIG, "{\"add_prefix_space\": true}" } },
	    .refused = "add_prefix_space: disagrees" } },
	{ false, { { { CONFIG, "{\"do_lower_case\": true}" } }, .refused = "do_lower_case" } },
	{ false,
	  { { { CONFIG, "{\"tokenizer_class\": \"T5Tokenizer\"}" } },
	    .refused = CONFIG ": tokenizer_class: " } },
	{ false, { { { CONFIG, "{\"no_such_key\": 1}" } }, .refused = "no_such_key: not known" } },
	{ false,
	  { { { CONFIG, "{\"no_such_key\": null, \"chat_template\": \"x\"}" } },
	    "lo",
	    7,
	    { 4, -1 },
	    NULL } },
	{ false, { { { CONFIG, "[]" } }, .refused = CONFIG ": line 1: expected an object" } },
	{ false,
	  { { { "added_tokens.json", "{\"<|im_end|>\": \"8\"}" } },
	    .refused = "added_tokens.json: <|im_end|>: expected the number" } },
	{ false,
	  { { { CONFIG, "{\"added_tokens_decoder\": {\"-1\": {\"content\": \"x\"}}}" } },
	    .refused = "added_tokens_decoder: expected the number" } },
	{ false,
	  { { { CONFIG, "{\"added_tokens_decoder\": " IM_END("8") ADDED "\"special\": true}}}" },
	      { "added_tokens.json", "{\"<|im_end|>\": 9}" } },
	    .refused = "added_tokens.json: <|im_end|>: another file gives" } },
};

TEST(files_beside_a_bpe_count)
{
	for (size_t i = 0; i < sizeof(bpe_cases) / sizeof(bpe_cases[0]); i++)
		for (int named = 0; named < 2; named++) {
			const char *json = bpe_cases[i].has_template ? template : plain;

			check_case(&bpe_cases[i].is, "tokenizer.json", json, strlen(json), named);
		}
}

/* <|endoftext|> separates the documents of a corpus even if no token begins a text. */
TEST(a_corpus_has_its_separator_without_a_first_token)
{
	struct tokenizer *t;

	strcpy(folder, "/tmp/skippipe-beside-XXXXXX");
	assert_non_null(mkdtemp(folder));
	put("tokenizer.json", plain, strlen(plain));
	put(CONFIG, "{\"add_bos_token\": false}", 24);
	assert_int_equal(tokenizer_open(&t, folder, NULL), 0);
	assert_int_equal(tokenizer_begin(t), -1);
	assert_int_equal(tokenizer_document(t), 7);
	tokenizer_free(t);
	file_remove_folder(folder);
}

/* A folder with a vocabulary but no tokenizer is refused. Otherwise the model would get bytes as
 * tokens. */
TEST(a_vocabulary_without_a_tokenizer_is_refused)
{
	struct tokenizer *t;
	struct error err;

	strcpy(folder, "/tmp/skippipe-beside-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_false(tokenizer_is_in(folder));
	put("vocab.json", "{}", 2);
	assert_true(tokenizer_is_in(folder));
	assert_int_equal(tokenizer_open(&t, folder, &err), -ENOENT);
	assert_non_null(strstr(err.text, "has vocab.json, but no tokenizer.json"));
	file_remove_folder(folder);
}

TEST(a_copy_takes_the_files_with_it)
{
	char to[] = "/tmp/skippipe-beside-XXXXXX", path[128];

	strcpy(folder, "/tmp/skippipe-beside-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_non_null(mkdtemp(to));
	put("tokenizer.json", plain, strlen(plain));
	put(CONFIG, "{}", 2);
	put("added_tokens.json", "{}", 2);
	snprintf(path, sizeof(path), "%s/tokenizer.json", folder);
	assert_int_equal(tokenizer_copy(path, to, NULL), 0);
	assert_true(file_exists(to, CONFIG) && file_exists(to, "added_tokens.json"));
	file_remove_folder(folder);
	file_remove_folder(to);
}

/* ---- SentencePiece ---- */

#ifdef SKIPPIPE_SENTENCEPIECE

/* Appends a piece to a serialised model: text, score and type. */
static size_t append_piece(unsigned char *to, const char *text, float score, unsigned char type)
{
	size_t n = strlen(text), size = 9 + n;

	to[0] = 0x0a; /* field 1 of the model: a message */
	to[1] = (unsigned char)size;
	to[2] = 0x0a; /* field 1 of the message: text */
	to[3] = (unsigned char)n;
	memcpy(to + 4, text, n);
	to[4 + n] = 0x15; /* field 2 of the message: a float */
	memcpy(to + 5 + n, &score, 4);
	to[9 + n] = 0x18; /* field 3 of the message: a number */
	to[10 + n] = type;
	return 2 + size;
}

/* Makes a unigram model of a few pieces and of bytes, 265 in all. */
static size_t make_model(unsigned char *to)
{
	/* The model's fields trainer_spec, with byte_fallback, and normalizer_spec. The
	 * normalizer's rule is "identity", and the normalizer keeps all spaces. */
	static const unsigned char specs[] = { 0x12, 3,   0x98, 0x02, 1,   0x1a, 12,  0x0a, 8, 'i',
					       'd',  'e', 'n',  't',  'i', 't',  'y', 0x20, 0 };
	static const struct {
		const char *text;
		float score;
		unsigned char type;
	} pieces[] = { { "<unk>", 0, 2 },
		       { "<s>", 0, 3 },
		       { "</s>", 0, 3 },
		       { "\xe2\x96\x81", -3, 1 },
		       { "\xe2\x96\x81hi", -1, 1 },
		       { "hi", -1.5, 1 },
		       { "a", -4, 1 },
		       { "b", -4, 1 },
		       { "\n", -4, 1 } };
	size_t n = 0;

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		n += append_piece(to + n, pieces[i].text, pieces[i].score, pieces[i].type);
	for (unsigned i = 0; i < 256; i++) {
		char text[16];

		snprintf(text, sizeof(text), "<0x%02X>", i);
		n += append_piece(to + n, text, 0, 6);
	}
	memcpy(to + n, specs, sizeof(specs));
	return n + sizeof(specs);
}

static const struct beside_case piece_cases[] = {
	{ .text = "hi hi", .begin = 1, .tokens = { 4, 4, -1 } },
	{ { { "added_tokens.json", "{\"<|im_end|>\": 265}" } },
	  "hi<|im_end|>hi a",
	  1,
	  { 4, 265, 4, 3, 6, -1 },
	  NULL },
	{ { { CONFIG, "{" LLAMA ", " DEC "}" } }, "<|im_end|>hi", 1, { 265, 4, -1 }, NULL },
	{ { { CONFIG, "{" DEC ", " LLAMA "}" } }, "hi </s>b", 1, { 4, 3, 2, 3, 7, -1 }, NULL },
	{ { { CONFIG, "{" LLAMA ", " DEC ", \"legacy\": false}" } },
	  "hi<|im_end|>hi a",
	  1,
	  { 4, 265, 5, 3, 6, -1 },
	  NULL },
	{ { { CONFIG, "{" LLAMA ", " DEC ", \"legacy\": false}" } },
	  "hi <|im_end|> hi",
	  1,
	  { 4, 3, 265, 4, -1 },
	  NULL },
	{ { { CONFIG, "{" LLAMA ", " DEC ", \"add_bos_token\": false}" } },
	  "hi <|im_end|> hi",
	  -1,
	  { 4, 3, 265, 3, 4, -1 },
	  NULL },
	{ { { CONFIG, "{" LLAMA ", " DEC ", \"legacy\": false, \"add_prefix_space\": false}" } },
	  "hi </s>b",
	  1,
	  { 5, 3, 2, 7, -1 },
	  NULL },
	{ { { CONFIG, "{" LLAMA ", " DECODER(STRIPS) "}" } },
	  "hi <|im_end|> hi",
	  1,
	  { 4, 265, 4, -1 },
	  NULL },
	{ { { CONFIG, "{" LLAMA ", \"add_prefix_space\": false}" } },
	  .refused = "add_prefix_space" },
	{ { { CONFIG, "{\"tokenizer_class\": \"Qwen2Tokenizer\"}" } },
	  .refused = "tokenizer_class" },
	{ { { CONFIG, "{\"sp_model_kwargs\": {\"enable_sampling\": true}}" } },
	  .refused = CONFIG ": sp_model_kwargs: " },
	{ { { "added_tokens.json", "{\"<|im_end|>\": 7}" } },
	  .refused = "added_tokens.json: <|im_end|>: <|im_end|>: tokenizer.model has another" },
	{ { { "added_tokens.json", "{\"<|im_end|>\": 100000000}" } },
	  .refused = "expected an id below" },
	/* A tokenizer.json in the folder of a SentencePiece model gives added tokens, although
	 * the "model" of this file is BPE. */
	{ { { "tokenizer.json",
	      "{\"added_tokens\": [{\"id\": 265, \"content\": \"<|im_end|>\", \"special\": true}],"
	      "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\"},"
	      "{\"type\": \"Replace\"}]}, \"model\": {\"type\": \"BPE\"}}" } },
	  "hi<|im_end|>hi",
	  1,
	  { 4, 265, 4, -1 },
	  NULL },
	{ { { "tokenizer.json", "{\"normalizer\": {\"type\": \"Lowercase\"}}" } },
	  .refused = "tokenizer.json: normalizer: " },
	{ { { "tokenizer.json", "{\"normalizer\": {\"type\": \"Prepend\"}}" },
	    { CONFIG, "{\"legacy\": false}" } },
	  .refused = "tokenizer.json: normalizer: Prepend: disagrees" },
};

TEST(files_beside_a_sentencepiece_model_count)
{
	unsigned char *model = malloc(1 << 16);
	size_t size = make_model(model);

	for (size_t i = 0; i < sizeof(piece_cases) / sizeof(piece_cases[0]); i++)
		check_case(&piece_cases[i], "tokenizer.model", model, size, false);
	free(model);
}

/* Special tokens are decoded to no text, other added tokens to their own text. Usually each part of
 * the text after an added token loses its first space. With "legacy": false, only the beginning of
 * the whole text does. */
TEST(added_tokens_are_decoded)
{
	static const struct {
		const char *config;
		const char *text;
	} cases[] = {
		{ "{" LLAMA ", " DEC "}", "hihi" },
		{ "{" LLAMA ", " DEC ", \"legacy\": false}", "hi hi" },
		{ "{\"added_tokens_decoder\": {\"265\": {\"content\": \"<t>\"}}}", "hi<t>hi" },
	};
	static const int32_t tokens[] = { 1, 4, 265, 4, 2 };
	unsigned char *model = malloc(1 << 16);
	size_t size = make_model(model), n;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tokenizer *t;
		char *text;

		strcpy(folder, "/tmp/skippipe-beside-XXXXXX");
		assert_non_null(mkdtemp(folder));
		put("tokenizer.model", model, size);
		put(CONFIG, cases[i].config, strlen(cases[i].config));
		assert_int_equal(tokenizer_open(&t, folder, NULL), 0);
		assert_int_equal(tokenizer_vocab(t), 266);
		assert_int_equal(tokenizer_decode(t, tokens, 5, &text, &n), 0);
		assert_string_equal(text, cases[i].text);
		free(text);
		tokenizer_free(t);
		file_remove_folder(folder);
	}
	free(model);
}

#endif
