/* Reads a tokenizer.json. A file is refused, with the name of the key, if a key is unknown or asks
 * for something that is not supported. A tokenizer that gives almost the right tokens would spoil a
 * model without a message. */
#include "model/text/bpe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"

struct reader {
	const char *path;
	struct error *err;
	int rc; /* error code of the first failure */
	const struct beside *beside; /* settings from files beside tokenizer.json; NULL: none */
	struct bpe *bpe;
	struct bpe_rules rules;
	bool byte_level; /* a ByteLevel pre-tokenizer was found */
	bool uncut;      /* a ByteLevel was found, but no rule that cuts text into words */
};

static void fail(struct reader *r, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void fail(struct reader *r, int code, const char *format, ...)
{
	va_list ap;
	char *text;

	if (r->rc)
		return;
	va_start(ap, format);
	text = alloc_vformat(format, ap);
	va_end(ap);
	r->rc = error_set(r->err, code, "%s: %s", r->path, text);
	free(text);
}

static bool is_absent(const json_t *v)
{
	return !v || json_is_null(v);
}

/* Returns a string, or "" if there is none. */
static const char *word_of(const json_t *v)
{
	return json_is_string(v) ? json_string_value(v) : "";
}

/* Returns the "type" of a component, or "null" if there is no component. */
static const char *type_of(const json_t *v)
{
	return is_absent(v) ? "null" : word_of(json_object_get(v, "type"));
}

static bool is_type(const json_t *v, const char *type)
{
	return strcmp(type_of(v), type) == 0;
}

static void refuse_type(struct reader *r, const char *key, const json_t *v, const char *known)
{
	fail(r, -ENOTSUP, "%s: \"%s\" is not supported, only %s", key, type_of(v), known);
}

static bool flag(struct reader *r, const json_t *v, const char *key, bool otherwise)
{
	const json_t *f = json_object_get(v, key);

	if (!is_absent(f) && !json_is_boolean(f))
		fail(r, -EINVAL, "%s: expected true or false", key);
	return is_absent(f) ? otherwise : json_is_true(f);
}

/* Refuses all keys of the object that are not listed. */
static void check_keys(struct reader *r, json_t *object, const char *where,
		       const char *const *known)
{
	const char *key;
	json_t *v;

	json_object_foreach(object, key, v)
	{
		size_t i = 0;

		while (known[i] && strcmp(known[i], key) != 0)
			i++;
		if (!known[i])
			fail(r, -ENOTSUP, "%s%s: unknown key", where, key);
	}
}

/* Calls `take` for the component. If the component is a Sequence, calls `take` for each of its
 * members instead. */
static void take_members(struct reader *r, const json_t *v, const char *list,
			 void (*take)(struct reader *r, const json_t *member))
{
	const json_t *members = json_object_get(v, list), *member;
	size_t i;

	if (!is_type(v, "Sequence")) {
		take(r, v);
		return;
	}
	if (!json_is_array(members))
		fail(r, -EINVAL, "%s: expected a list", list);
	json_array_foreach(members, i, member)
	{
		if (is_type(member, "Sequence"))
			fail(r, -ENOTSUP, "%s: a Sequence in a Sequence", list);
		take(r, member);
	}
}

/* ---- components ---- */

static void take_normalizer(struct reader *r, const json_t *v)
{
	if (is_type(v, "NFC"))
		r->rules.nfc = true;
	else if (!is_absent(v))
		refuse_type(r, "normalizer", v, "NFC");
}

static void take_split(struct reader *r, const json_t *v)
{
	const json_t *pattern = json_object_get(v, "pattern");
	const char *regex = word_of(json_object_get(pattern, "Regex"));
	const struct split_rule *rule = split_find(regex);

	if (!regex[0])
		fail(r, -ENOTSUP,
		     "pre_tokenizer: Split: pattern: expected a Regex (a String is searched for as "
		     "it stands)");
	else if (!rule)
		fail(r, -ENOTSUP,
		     "pre_tokenizer: Split: pattern: none of the known ones (GPT-2, LLaMA 3, "
		     "Qwen): %.200s",
		     regex);
	if (strcmp(word_of(json_object_get(v, "behavior")), "Isolated") != 0)
		fail(r, -ENOTSUP, "pre_tokenizer: Split: behavior: expected \"Isolated\"");
	if (flag(r, v, "invert", false))
		fail(r, -ENOTSUP, "pre_tokenizer: Split: invert: expected false");
	if (r->rules.split || r->rules.digits)
		fail(r, -ENOTSUP, "pre_tokenizer: expected one Split and no Digits");
	r->rules.split = rule;
}

static void take_digits(struct reader *r, const json_t *v)
{
	bool each = flag(r, v, "individual_digits", false);

	if (r->rules.split || r->rules.digits)
		fail(r, -ENOTSUP, "pre_tokenizer: expected one Digits and no Split");
	r->rules.digits = each ? BPE_EACH_DIGIT : BPE_RUNS_OF_DIGITS;
}

/* Handles ByteLevel, which must be the last step. If no Split precedes it, words are cut by GPT-2's
 * rule; use_regex = false means that text is not cut. */
static void take_byte_level(struct reader *r, const json_t *v)
{
	bool regex = flag(r, v, "use_regex", true);

	r->byte_level = true;
	r->rules.prefix_space = flag(r, v, "add_prefix_space", true);
	if (r->rules.prefix_space && (r->rules.split || r->rules.digits))
		fail(r, -ENOTSUP,
		     "pre_tokenizer: ByteLevel: add_prefix_space: expected false after another");
	if (regex && r->rules.split)
		fail(r, -ENOTSUP,
		     "pre_tokenizer: ByteLevel: use_regex: expected false after Split");
	r->uncut = !regex && !r->rules.split;
	if (!r->rules.split)
		r->rules.split = split_gpt2();
}

static void take_pre_tokenizer(struct reader *r, const json_t *v)
{
	if (r->byte_level)
		fail(r, -ENOTSUP, "pre_tokenizer: expected ByteLevel as the last one");
	else if (is_type(v, "Split"))
		take_split(r, v);
	else if (is_type(v, "Digits"))
		take_digits(r, v);
	else if (is_type(v, "ByteLevel"))
		take_byte_level(r, v);
	else
		refuse_type(r, "pre_tokenizer", v, "ByteLevel after a Split or Digits");
}

/* Reads a template, which may put one token before the text. */
static void take_template(struct reader *r, const json_t *v)
{
	const json_t *single = json_object_get(v, "single"), *part;
	bool has_text = false;
	size_t i;

	if (!json_is_array(single))
		fail(r, -EINVAL, "post_processor: single: expected a list");
	json_array_foreach(single, i, part)
	{
		const char *name = word_of(
			json_object_get(json_object_get(part, "SpecialToken"), "id"));
		const json_t *ids = json_object_get(
			json_object_get(json_object_get(v, "special_tokens"), name), "ids");
		json_int_t id = json_integer_value(json_array_get(ids, 0));

		if (json_object_get(part, "Sequence") && !has_text) {
			has_text = true;
			continue;
		}
		if (!name[0] || has_text || bpe_begin(r->bpe) >= 0)
			fail(r, -ENOTSUP,
			     "post_processor: single: expected at most one token before the text, "
			     "and none after it");
		if (json_array_size(ids) != 1 || !json_is_integer(json_array_get(ids, 0)) ||
		    id < 0 || id >= bpe_vocab(r->bpe))
			fail(r, -EINVAL, "post_processor: special_tokens: %s: expected one id",
			     name);
		else
			bpe_set_begin(r->bpe, (int32_t)id);
	}
	if (!has_text)
		fail(r, -ENOTSUP, "post_processor: single: expected the text, Sequence A");
}

static void take_post_processor(struct reader *r, const json_t *v)
{
	if (is_type(v, "TemplateProcessing"))
		take_template(r, v);
	/* ByteLevel is accepted, because it affects only offsets. Other kinds of post_processor are
	 * refused. */
	else if (!is_absent(v) && !is_type(v, "ByteLevel"))
		refuse_type(r, "post_processor", v, "ByteLevel and TemplateProcessing");
}

static void take_decoder(struct reader *r, const json_t *v)
{
	if (!is_absent(v) && !is_type(v, "ByteLevel"))
		refuse_type(r, "decoder", v, "ByteLevel");
}

/* ---- the model ---- */

static bool is_id(const json_t *v)
{
	return json_is_integer(v) && json_integer_value(v) >= 0 &&
	       json_integer_value(v) < BPE_TOKENS_MOST;
}

/* Returns the place that lists an added token, in words: this file, or a file beside it. */
static char *place_of(const struct reader *r, const json_t *added)
{
	const char *file = word_of(json_object_get(added, "file"));

	return file[0] ? alloc_string(file) : alloc_format("%s: added_tokens", r->path);
}

static void refuse_added(struct reader *r, int code, const json_t *added, const char *why)
{
	char *place = place_of(r, added);

	if (!r->rc)
		r->rc = error_set(r->err, code, "%s: %s: %s", place,
				  word_of(json_object_get(added, "content")), why);
	free(place);
}

/* Returns a number above all ids of the vocabulary and of the added tokens. */
static uint32_t count_tokens(struct reader *r, json_t *vocab, const json_t *added)
{
	const json_t *one;
	const char *key;
	json_t *id;
	json_int_t most = -1;
	size_t i;

	json_object_foreach(vocab, key, id)
	{
		if (!is_id(id))
			fail(r, -EINVAL, "model: vocab: %s: expected an id below %d", key,
			     BPE_TOKENS_MOST);
		else if (json_integer_value(id) > most)
			most = json_integer_value(id);
	}
	json_array_foreach(added, i, one)
	{
		const json_t *given = json_object_get(one, "id");

		if (!given && json_object_get(one, "file"))
			/* This token has no number of its own. It is counted as a token of the
			 * vocabulary, or as an added token of this file. */
			continue;
		if (!is_id(given))
			refuse_added(r, -EINVAL, one, "id: expected a number below 4194304");
		else if (json_integer_value(given) > most)
			most = json_integer_value(given);
	}
	return (uint32_t)(most + 1);
}

static void read_vocab(struct reader *r, json_t *vocab)
{
	const char *key;
	json_t *id;

	json_object_foreach(vocab, key, id)
	{
		if (!r->rc && bpe_add_token(r->bpe, (uint32_t)json_integer_value(id), key))
			fail(r, -EINVAL, "model: vocab: %s: another token has the id %" PRId64, key,
			     (int64_t)json_integer_value(id));
	}
}

/* Reads a merge: "left right" or ["left", "right"]. The vocabulary must contain both tokens and the
 * joined token. */
static bool read_merge(struct reader *r, const json_t *vocab, const json_t *merge, size_t rank)
{
	char *text = json_is_string(merge) ? alloc_string(json_string_value(merge)) : NULL;
	char *space = text ? strchr(text, ' ') : NULL, *whole = NULL;
	const char *left = word_of(json_array_get(merge, 0)),
		   *right = word_of(json_array_get(merge, 1));
	const json_t *ids[3] = { NULL };

	if (space && !strchr(space + 1, ' ')) {
		*space = 0;
		left = text;
		right = space + 1;
	}
	if (text ? space != NULL : json_array_size(merge) == 2) {
		whole = alloc_format("%s%s", left, right);
		ids[0] = json_object_get(vocab, left);
		ids[1] = json_object_get(vocab, right);
		ids[2] = json_object_get(vocab, whole);
	}
	free(text);
	free(whole);
	if (!ids[0] || !ids[1] || !ids[2])
		return false;
	bpe_add_merge(r->bpe, (uint32_t)rank, (uint32_t)json_integer_value(ids[0]),
		      (uint32_t)json_integer_value(ids[1]), (uint32_t)json_integer_value(ids[2]));
	return true;
}

static void read_merges(struct reader *r, const json_t *vocab, const json_t *merges)
{
	const json_t *merge;
	size_t i, rank = 0;

	json_array_foreach(merges, i, merge)
	{
		if (strncmp(word_of(merge), "#version", 8) == 0)
			continue;
		if (!r->rc && !read_merge(r, vocab, merge, rank))
			fail(r, -EINVAL,
			     "model: merges: %zu: expected two tokens that make a third one of the "
			     "vocabulary",
			     i);
		rank++;
	}
}

/* Checks a token that both this file and a file beside it list: id and flags must be equal. */
static void check_again(struct reader *r, const json_t *one, const json_t *before)
{
	static const char *const flags[] = { "lstrip", "rstrip", "single_word", "normalized" };
	const json_t *id = json_object_get(one, "id");

	if (id && !json_equal(id, json_object_get(before, "id")))
		refuse_added(r, -EINVAL, one, "the tokenizer.json gives it another id");
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (json_object_get(one, "has_flags") &&
		    flag(r, one, flags[i], false) != flag(r, before, flags[i], false))
			refuse_added(r, -ENOTSUP, one, "the tokenizer.json gives it other flags");
}

/* Adds a token with its number. */
static void read_one_added(struct reader *r, const json_t *one, json_int_t id)
{
	struct bpe_added a = { .content = word_of(json_object_get(one, "content")),
			       .id = (uint32_t)id };

	a.lstrip = flag(r, one, "lstrip", false);
	a.rstrip = flag(r, one, "rstrip", false);
	a.special = flag(r, one, "special", false);
	a.normalized = flag(r, one, "normalized", !a.special);
	if (flag(r, one, "single_word", false))
		refuse_added(r, -ENOTSUP, one, "single_word: expected false");
	if (r->rc)
		return;
	bpe_add_added(r->bpe, &a);
	if (a.special && strcmp(a.content, "<|endoftext|>") == 0)
		bpe_set_document(r->bpe, (int32_t)id);
}

/* Adds the added tokens of this file and of files beside it. Refuses numbers other than those that
 * the tokenizers package gives. The package counts from the size of the vocabulary on, and ignores
 * other numbers with a warning. ids: receives the number and flags of each token, by its
 * content. */
static void read_added(struct reader *r, const json_t *vocab, const json_t *added, json_t *ids)
{
	json_int_t next = (json_int_t)json_object_size(vocab);
	const json_t *one;
	size_t i;

	json_array_foreach(added, i, one)
	{
		const char *content = word_of(json_object_get(one, "content"));
		const json_t *known = json_object_get(vocab, content),
			     *before = json_object_get(ids, content),
			     *id = json_object_get(one, "id");
		json_int_t expected = known ? json_integer_value(known) : next;
		bool is_beside = json_object_get(one, "file");
		char why[96];

		if (r->rc)
			return;
		snprintf(why, sizeof(why),
			 "id %" PRId64 ", expected %" PRId64
			 ", the one that the tokenizers package gives it",
			 (int64_t)json_integer_value(id), (int64_t)expected);
		if (!content[0])
			fail(r, -EINVAL, "added_tokens: %zu: content: expected text", i);
		else if (is_beside && before)
			check_again(r, one, before);
		else if (is_beside && !id && !known)
			refuse_added(r, -ENOTSUP, one, "the tokenizer has no such token");
		else if (id && json_integer_value(id) != expected)
			refuse_added(r, -EINVAL, one, why);
		else
			read_one_added(r, one, expected);
		if (before || r->rc)
			continue;
		next += !known;
		if (json_object_set_new(
			    ids, content,
			    json_pack("{s:I, s:b, s:b, s:b, s:b}", "id", expected, "lstrip",
				      flag(r, one, "lstrip", false), "rstrip",
				      flag(r, one, "rstrip", false), "normalized",
				      flag(r, one, "normalized", !flag(r, one, "special", false)),
				      "single_word", 0)) < 0)
			fail(r, -ENOMEM, "no memory");
	}
}

/* Returns the number of the added token with this name, or -1. name may be NULL. */
static int32_t number_of(const char *name, const json_t *ids)
{
	const json_t *id = json_object_get(json_object_get(ids, name ? name : ""), "id");

	return id ? (int32_t)json_integer_value(id) : -1;
}

/* Decides which token begins a text. The post_processor decides, unless add_bos_token in another
 * file of the folder contradicts it. If the two contradict each other, a tokenizer whose class is
 * not LLaMA's is refused, because versions of the transformers library then choose
 * differently. */
static void choose_begin(struct reader *r, const json_t *ids)
{
	const struct beside *b = r->beside;
	int32_t named = b ? number_of(b->begin, ids) : -1;
	int32_t begin = bpe_begin(r->bpe);

	if (b && b->begins == BESIDE_NO && begin >= 0 && !b->is_llama_class)
		fail(r, -ENOTSUP,
		     "post_processor: puts a token before the text, and tokenizer_config.json has "
		     "\"add_bos_token\": false: change one of them");
	else if (b && b->begins == BESIDE_NO)
		begin = -1;
	else if (b && b->begins == BESIDE_YES && begin < 0 && (!b->is_llama_class || named < 0))
		fail(r, -ENOTSUP,
		     "post_processor: puts no token before the text, and tokenizer_config.json has "
		     "\"add_bos_token\": true: change one of them");
	else if (b && b->begins == BESIDE_YES && begin < 0)
		begin = named;
	else if (begin < 0)
		begin = bpe_document(r->bpe);
	bpe_set_begin(r->bpe, begin);
	if (begin >= 0)
		bpe_set_document(r->bpe, begin);
}

static void refuse_text(struct reader *r, const json_t *model, const char *key)
{
	const json_t *v = json_object_get(model, key);

	if (!is_absent(v) && (!json_is_string(v) || json_string_length(v) > 0))
		fail(r, -ENOTSUP, "model: %s: expected null or \"\"", key);
}

/* Refuses a model whose settings would change the tokens in a way that bpe.c does not implement. */
static void check_model(struct reader *r, json_t *model)
{
	static const char *const known[] = {
		"type",	    "dropout",	     "unk_token", "continuing_subword_prefix",
		"vocab",    "byte_fallback", "fuse_unk",  "end_of_word_suffix",
		"merges",   "ignore_merges", NULL,
	};
	const json_t *dropout = json_object_get(model, "dropout"),
		     *type = json_object_get(model, "type");

	if (!json_is_object(model))
		fail(r, -EINVAL, "model: expected an object");
	if (type && !is_type(model, "BPE"))
		refuse_type(r, "model: type", model, "BPE");
	check_keys(r, model, "model: ", known);
	if (!is_absent(dropout) && json_number_value(dropout) != 0)
		fail(r, -ENOTSUP, "model: dropout: expected null");
	refuse_text(r, model, "continuing_subword_prefix");
	refuse_text(r, model, "end_of_word_suffix");
	if (flag(r, model, "byte_fallback", false))
		fail(r, -ENOTSUP,
		     "model: byte_fallback: expected false; the model's tokenizer.model "
		     "(SentencePiece) is supported");
	r->rules.ignore_merges = flag(r, model, "ignore_merges", false);
	if (r->uncut && (json_array_size(json_object_get(model, "merges")) > 0 ||
			 r->rules.ignore_merges))
		fail(r, -ENOTSUP,
		     "pre_tokenizer: ByteLevel: use_regex: expected true without Split");
	if (!json_is_object(json_object_get(model, "vocab")) ||
	    !json_is_array(json_object_get(model, "merges")))
		fail(r, -EINVAL, "model: expected a \"vocab\" and \"merges\"");
}

/* Reads every key of the file, in such an order that each function finds what it needs. r->rc has
 * the first failure. */
static void read_all(struct reader *r, json_t *root)
{
	static const char *const known[] = { "version",	      "truncation",    "padding",
					     "added_tokens",  "normalizer",    "pre_tokenizer",
					     "post_processor", "decoder",      "model",
					     NULL };
	json_t *model = json_object_get(root, "model"), *vocab = json_object_get(model, "vocab");
	json_t *added = json_object_get(root, "added_tokens"), *ids;

	check_keys(r, root, "", known);
	if (!is_absent(json_object_get(root, "truncation")))
		fail(r, -ENOTSUP, "truncation: expected null");
	if (!is_absent(json_object_get(root, "padding")))
		fail(r, -ENOTSUP, "padding: expected null");
	if (!is_absent(added) && !json_is_array(added))
		fail(r, -EINVAL, "added_tokens: expected a list");
	take_members(r, json_object_get(root, "normalizer"), "normalizers", take_normalizer);
	take_members(r, json_object_get(root, "pre_tokenizer"), "pretokenizers",
		     take_pre_tokenizer);
	take_members(r, json_object_get(root, "decoder"), "decoders", take_decoder);
	check_model(r, model);
	if (!r->byte_level)
		fail(r, -ENOTSUP, "pre_tokenizer: expected ByteLevel");
	if (r->beside && r->beside->prefix_space != BESIDE_UNSET &&
	    (r->beside->prefix_space == BESIDE_YES) != r->rules.prefix_space)
		fail(r, -ENOTSUP,
		     "pre_tokenizer: ByteLevel: add_prefix_space: disagrees with "
		     "tokenizer_config.json: change one of them");
	if (r->rc)
		return;
	added = is_absent(added) ? json_array() : json_copy(added);
	ids = json_object();
	if (!added || !ids || (r->beside && json_array_extend(added, r->beside->tokens) < 0)) {
		fail(r, -ENOMEM, "no memory");
		goto done;
	}
	r->bpe = bpe_new(count_tokens(r, vocab, added));
	take_members(r, json_object_get(root, "post_processor"), "processors",
		     take_post_processor);
	if (r->rc)
		goto done;
	bpe_set_rules(r->bpe, &r->rules);
	read_vocab(r, vocab);
	read_merges(r, vocab, json_object_get(model, "merges"));
	read_added(r, vocab, added, ids);
	choose_begin(r, ids);
	if (r->beside)
		bpe_set_end(r->bpe, number_of(r->beside->end, ids));
done:
	json_decref(added);
	json_decref(ids);
}

int bpe_open(struct bpe **out, const char *json, size_t size, const char *path,
	     const struct beside *beside, struct error *err)
{
	struct reader r = { .path = path, .beside = beside, .err = err };
	json_error_t at;
	json_t *root = json_loadb(json, size, 0, &at);

	if (!json_is_object(root))
		fail(&r, -EINVAL, "line %d: %s", at.line > 0 ? at.line : 1,
		     root ? "expected an object" : at.text);
	else
		read_all(&r, root);
	json_decref(root);
	if (r.rc)
		bpe_free(r.bpe);
	else
		*out = r.bpe;
	return r.rc;
}
