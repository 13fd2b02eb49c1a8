/* Reads the files beside a tokenizer. Without these files, a tokenizer gives almost the right
 * tokens: <|im_end|> is cut into ten pieces, or a document begins with a token that began no
 * document in the model's training. */
#include "model/text/beside.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

enum { PATH = 4096, FILE_MOST = 64 << 20 };

const char *const beside_files[] = { "tokenizer_config.json", "special_tokens_map.json",
				     "added_tokens.json", NULL };

struct reader {
	char path[PATH]; /* path of the file that is being read */
	struct beside *out;
	bool has_decoder; /* tokenizer_config.json has added_tokens_decoder */
	struct error *err;
	int rc; /* error code of the first failure */
};

static void fail(struct reader *r, int code, const char *key, const char *why)
{
	if (!r->rc)
		r->rc = error_set(r->err, code, "%s: %s: %s", r->path, key, why);
}

/* ---- tokens ---- */

static const char *const flags[] = { "lstrip", "rstrip", "single_word", "normalized", "special" };
enum { FLAGS = sizeof(flags) / sizeof(flags[0]) };

static json_t *find_token(const struct reader *r, const char *content)
{
	json_t *token;
	size_t i;

	json_array_foreach(r->out->tokens, i, token)
		if (strcmp(json_string_value(json_object_get(token, "content")), content) == 0)
			return token;
	return NULL;
}

/* Adds a token, unless another file or key has added it. Refuses two numbers for one token. id:
 * number of the token; NULL: the tokenizer's vocabulary has the number. given: an object with
 * flags, or NULL. */
static void add_token(struct reader *r, const char *key, const char *content, const json_t *id,
		      const json_t *given, bool special)
{
	json_t *token = find_token(r, content), *known = json_object_get(token, "id");
	double number = json_number_value(id);
	char *file;

	if (id && !(json_is_number(id) && number >= 0 && number < INT32_MAX &&
		    number == (double)(int32_t)number)) {
		fail(r, -EINVAL, key, "expected the number of a token");
		return;
	}
	if (token) {
		if (id && known && json_number_value(known) != number)
			fail(r, -EINVAL, key, "another file gives this token another number");
		else if (id && !known)
			json_object_set_new(token, "id", json_integer((json_int_t)number));
		if (special)
			json_object_set_new(token, "special", json_true());
		return;
	}
	file = alloc_format("%s: %s", r->path, key);
	token = json_pack("{s:s, s:s, s:b, s:b}", "content", content, "file", file, "special",
			  special, "normalized", !special);
	free(file);
	if (token && id)
		json_object_set_new(token, "id", json_integer((json_int_t)number));
	if (token && given)
		json_object_set_new(token, "has_flags", json_true());
	for (size_t i = 0; i < FLAGS && token; i++) {
		json_t *flag = json_object_get(given, flags[i]);

		if (flag && !json_is_boolean(flag))
			fail(r, -EINVAL, key, "expected flags that are true or false");
		else if (flag)
			json_object_set(token, flags[i], flag);
	}
	if (token && given && !json_object_get(given, "normalized"))
		json_object_set_new(token, "normalized",
				    json_boolean(!json_is_true(json_object_get(token, "special"))));
	if (!token || json_array_append_new(r->out->tokens, token) < 0)
		fail(r, -ENOMEM, key, "no memory");
}

/* Returns the content of a token that is written as text, or as an object with flags. */
static const char *content_of(const json_t *v)
{
	const char *content = json_string_value(json_is_object(v) ? json_object_get(v, "content")
								  : v);

	return content && content[0] ? content : NULL;
}

static void note_role(struct reader *r, const char *key, char **at, const char *content)
{
	if (*at && strcmp(*at, content) != 0)
		fail(r, -EINVAL, key, "another file names another token");
	free(*at);
	*at = alloc_string(content);
}

/* Adds a token that a key such as "eos_token" names. */
static void take_named(struct reader *r, const char *key, const json_t *v)
{
	const char *content = content_of(v);

	if (json_is_null(v))
		return;
	if (!content) {
		fail(r, -EINVAL, key, "expected a token, its text or an object with \"content\"");
		return;
	}
	add_token(r, key, content, NULL, json_is_object(v) ? v : NULL, true);
	if (strcmp(key, "bos_token") == 0)
		note_role(r, key, &r->out->begin, content);
	else if (strcmp(key, "eos_token") == 0)
		note_role(r, key, &r->out->end, content);
}

static void take_list(struct reader *r, const char *key, json_t *v)
{
	const char *name;
	json_t *one;
	size_t i;

	json_array_foreach(v, i, one)
		take_named(r, key, one);
	json_object_foreach(v, name, one)
		take_named(r, key, one);
	if (!json_is_array(v) && !json_is_object(v) && !json_is_null(v))
		fail(r, -EINVAL, key, "expected a list of tokens");
}

static void take_decoder(struct reader *r, const char *key, json_t *v)
{
	const char *number;
	json_t *one;

	if (!json_is_object(v))
		fail(r, -EINVAL, key, "expected an object");
	json_object_foreach(v, number, one)
	{
		char *end;
		long long id = strtoll(number, &end, 10);
		const char *content = content_of(one);
		json_t *as_json = json_real(*number && !*end ? (double)id : -1);

		if (!json_is_object(one) || !content)
			fail(r, -EINVAL, key, "expected objects with \"content\"");
		else
			add_token(r, key, content, as_json, one, false);
		json_decref(as_json);
	}
	r->has_decoder = true;
}

/* ---- keys ---- */

enum rule {
	ANY,     /* the value has no effect on the tokens of a text */
	TOKEN,   /* the value is a token as text or as an object, or null */
	TOKENS,  /* the value is a list of tokens */
	DECODER, /* the value is an object: tokens as objects, by their numbers */
	FALSE,   /* the value is false or null */
	EMPTY,   /* the value is null or an empty object */
	CHOICE,  /* read_choices uses the value: true, false or null */
	CLASS,
};

static const struct known {
	const char *key;
	enum rule rule;
} known[] = {
	{ "tokenizer_class", CLASS },
	{ "added_tokens_decoder", DECODER },
	{ "additional_special_tokens", TOKENS },
	{ "extra_special_tokens", TOKENS },
	{ "model_specific_special_tokens", TOKENS },
	{ "add_bos_token", CHOICE },
	{ "add_prefix_space", CHOICE },
	{ "legacy", CHOICE },
	{ "add_eos_token", FALSE },
	{ "do_lower_case", FALSE },
	{ "split_special_tokens", FALSE },
	{ "sp_model_kwargs", EMPTY },
	{ "auto_map", EMPTY },
	/* Keys for decoding, padding and chats, and keys that only describe the tokenizer. */
	{ "chat_template", ANY },
	{ "clean_up_tokenization_spaces", ANY },
	{ "errors", ANY },
	{ "spaces_between_special_tokens", ANY },
	{ "use_default_system_prompt", ANY },
	{ "model_max_length", ANY },
	{ "max_length", ANY },
	{ "stride", ANY },
	{ "truncation_side", ANY },
	{ "truncation_strategy", ANY },
	{ "padding_side", ANY },
	{ "pad_to_multiple_of", ANY },
	{ "pad_token_type_id", ANY },
	{ "pad_token_id", ANY },
	{ "model_input_names", ANY },
	{ "processor_class", ANY },
	{ "name_or_path", ANY },
	{ "_commit_hash", ANY },
	{ "tokenizer_file", ANY },
	{ "vocab_file", ANY },
	{ "merges_file", ANY },
	{ "special_tokens_map_file", ANY },
	{ "from_slow", ANY },
	{ "use_fast", ANY },
	{ "trust_remote_code", ANY },
	{ "backend", ANY },
	{ "is_local", ANY },
	{ "local_files_only", ANY },
	{ "verbose", ANY },
	{ "device_map", ANY },
	{ "unk_id", ANY },
	{ "bos_id", ANY },
	{ "eos_id", ANY },
	{ "response_schema", ANY },
};

static enum rule rule_of(const char *key)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].key, key) == 0)
			return known[i].rule;
	return file_ends_in(key, "_token") ? TOKEN : EMPTY;
}

/* Accepts classes of tokenizers that use the tokens of the SentencePiece model or of the
 * tokenizer.json unchanged. Refuses other classes. T5's class, for example, appends </s> to each
 * text. */
static void take_class(struct reader *r, const json_t *v)
{
	static const char *const classes[] = {
		"LlamaTokenizer",	  "LlamaTokenizerFast", "PreTrainedTokenizer",
		"PreTrainedTokenizerFast", "TokenizersBackend",	"SentencePieceBackend",
		"GPT2Tokenizer",	  "GPT2TokenizerFast",	"Qwen2Tokenizer",
		"Qwen2TokenizerFast",	  "GPTNeoXTokenizerFast", "GPTNeoXTokenizer",
		"CodeGenTokenizer",	  "CodeGenTokenizerFast", "RobertaTokenizer",
		"RobertaTokenizerFast",
	};
	const char *name = json_string_value(v);

	if (json_is_null(v))
		return;
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (name && strcmp(name, classes[i]) == 0) {
			r->out->is_llama_class = i < 2;
			return;
		}
	fail(r, -ENOTSUP, "tokenizer_class",
	     "only the classes of LLaMA, GPT-2, GPT-NeoX, Qwen 2 and PreTrainedTokenizerFast are "
	     "supported");
}

static void take_choice(struct reader *r, const char *key, const json_t *v)
{
	enum beside_choice *to = strcmp(key, "add_bos_token") == 0    ? &r->out->begins
				 : strcmp(key, "add_prefix_space") == 0 ? &r->out->prefix_space
									: &r->out->legacy;

	if (json_is_boolean(v))
		*to = json_is_true(v) ? BESIDE_YES : BESIDE_NO;
	else if (!json_is_null(v))
		fail(r, -EINVAL, key, "expected true, false or null");
}

static void take_key(struct reader *r, const char *key, json_t *v)
{
	switch (rule_of(key)) {
	case ANY:
		break;
	case TOKEN:
		take_named(r, key, v);
		break;
	case TOKENS:
		take_list(r, key, v);
		break;
	case DECODER:
		take_decoder(r, key, v);
		break;
	case FALSE:
		if (!json_is_false(v) && !json_is_null(v))
			fail(r, -ENOTSUP, key, "expected false");
		break;
	case EMPTY:
		if (!json_is_null(v) && !(json_is_object(v) && json_object_size(v) == 0))
			fail(r, -ENOTSUP, key,
			     "not known: it may change the tokens; remove it if it does not");
		break;
	case CHOICE:
		take_choice(r, key, v);
		break;
	case CLASS:
		take_class(r, v);
		break;
	}
}

/* Reads added_tokens.json, an object with the number of each token. */
static void take_added(struct reader *r, json_t *root)
{
	const char *content;
	json_t *id;

	json_object_foreach(root, content, id)
	{
		const json_t *token = find_token(r, content);

		if (r->has_decoder && !json_object_get(token, "id"))
			fail(r, -EINVAL, content,
			     "added_tokens_decoder in tokenizer_config.json lacks this token");
		else if (content[0])
			add_token(r, content, content, id, NULL, false);
		else
			fail(r, -EINVAL, "\"\"", "expected tokens that are not empty");
	}
}

/* Reads a file of the folder and passes its object to `take`. A missing file is no error. Numbers
 * become reals, because model_max_length may be 10^30. */
static void read_one(struct reader *r, const char *folder, const char *name,
		     void (*take)(struct reader *r, const char *name, json_t *root))
{
	char *text;
	json_error_t at;
	json_t *root;
	size_t size;

	snprintf(r->path, sizeof(r->path), "%s/%s", folder, name);
	if (r->rc || !file_exists(folder, name))
		return;
	r->rc = file_read_text(r->path, FILE_MOST, &text, &size, r->err);
	if (r->rc)
		return;
	root = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &at);
	free(text);
	if (json_is_object(root))
		take(r, name, root);
	else
		r->rc = error_set(r->err, -EINVAL, "%s: line %d: %s", r->path,
				  at.line > 0 ? at.line : 1,
				  root ? "expected an object" : at.text);
	json_decref(root);
}

/* Reads added_tokens_decoder before the other keys, because it gives numbers and flags to tokens
 * that other keys may only name. */
static void take_settings(struct reader *r, const char *name, json_t *root)
{
	static const char decoder[] = "added_tokens_decoder";
	const char *key;
	json_t *v = json_object_get(root, decoder);

	r->out->exists = true;
	if (strcmp(name, "added_tokens.json") == 0) {
		take_added(r, root);
		return;
	}
	if (v)
		take_decoder(r, decoder, v);
	json_object_foreach(root, key, v)
		if (strcmp(key, decoder) != 0)
			take_key(r, key, v);
}

int beside_read(struct beside *out, const char *folder, struct error *err)
{
	struct beside b = { .tokens = json_array(), .is_llama_class = true };
	struct reader r = { .out = &b, .err = err };

	for (size_t i = 0; beside_files[i]; i++)
		read_one(&r, folder, beside_files[i], take_settings);
	if (r.rc)
		beside_fini(&b);
	else
		*out = b;
	return r.rc;
}

void beside_fini(struct beside *b)
{
	json_decref(b->tokens);
	free(b->begin);
	free(b->end);
}

/* ---- a tokenizer.json beside a SentencePiece model ---- */

static bool is_type(const json_t *v, const char *type)
{
	const char *text = json_string_value(json_object_get(v, "type"));

	return text && strcmp(text, type) == 0;
}

/* Sets a choice. If tokenizer_config.json has already made the opposite choice, fails. */
static void choose(struct reader *r, enum beside_choice *at, bool yes, const char *key)
{
	enum beside_choice choice = yes ? BESIDE_YES : BESIDE_NO;

	if (*at != BESIDE_UNSET && *at != choice)
		fail(r, -EINVAL, key, "disagrees with tokenizer_config.json");
	*at = choice;
}

/* Reads a template. A template may put the token that begins a document before the text, but no
 * token after the text. */
static void take_template(struct reader *r, const json_t *v)
{
	const json_t *single = json_object_get(v, "single");
	size_t n = json_array_size(single);

	for (size_t i = 1; i < n; i++)
		if (json_object_get(json_array_get(single, i), "SpecialToken"))
			fail(r, -ENOTSUP, "post_processor",
			     "expected at most one token before the text, and none after it");
	if (r->out->begins == BESIDE_UNSET)
		r->out->begins = n > 1 ? BESIDE_YES : BESIDE_NO;
}

/* Reads the normalizer of a tokenizer.json that was converted from a SentencePiece model. The
 * normalizer writes spaces as U+2581, may put a space before each text, and may contain the model's
 * table of normalisation (Precompiled). */
static void take_normalizer(struct reader *r, json_t *v)
{
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(v, "normalizers"), i, one)
		take_normalizer(r, one);
	if (is_type(v, "Prepend"))
		choose(r, &r->out->legacy, true, "normalizer: Prepend");
	else if (v && !json_is_null(v) && !is_type(v, "Sequence") && !is_type(v, "Replace") &&
		 !is_type(v, "Precompiled"))
		fail(r, -ENOTSUP, "normalizer", "expected that of a SentencePiece model");
}

static void take_pre_tokenizer(struct reader *r, const json_t *v)
{
	const char *scheme = json_string_value(json_object_get(v, "prepend_scheme"));

	if (!v || json_is_null(v))
		return;
	if (!is_type(v, "Metaspace")) {
		fail(r, -ENOTSUP, "pre_tokenizer", "expected null or Metaspace");
		return;
	}
	choose(r, &r->out->legacy, !scheme || strcmp(scheme, "always") == 0,
	       "pre_tokenizer: prepend_scheme");
	if (scheme && strcmp(scheme, "never") == 0)
		choose(r, &r->out->prefix_space, false, "pre_tokenizer: prepend_scheme");
}

static void take_tokenizer(struct reader *r, const char *name, json_t *root)
{
	const json_t *post = json_object_get(root, "post_processor");
	const char *content;
	json_t *one;
	size_t i;

	(void)name;
	json_array_foreach(json_object_get(root, "added_tokens"), i, one)
	{
		content = content_of(one);
		if (!json_is_object(one) || !content)
			fail(r, -EINVAL, "added_tokens", "expected objects with \"content\"");
		else
			add_token(r, "added_tokens", content, json_object_get(one, "id"), one,
				  json_is_true(json_object_get(one, "special")));
	}
	if (is_type(post, "TemplateProcessing"))
		take_template(r, post);
	take_normalizer(r, json_object_get(root, "normalizer"));
	take_pre_tokenizer(r, json_object_get(root, "pre_tokenizer"));
	r->out->exists = true;
}

int beside_read_json(struct beside *b, const char *folder, struct error *err)
{
	struct reader r = { .out = b, .err = err };

	read_one(&r, folder, "tokenizer.json", take_tokenizer);
	return r.rc;
}
