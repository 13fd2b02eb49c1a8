/* Adds two settings of the transformers library to SentencePiece, which knows only the pieces of
 * its model. The settings are further tokens, and the places where a space is put before a text. */
#include "model/text/piece_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <unistr.h>

#include "base/alloc.h"
#include "base/array.h"
#include "model/text/added.h"
#include "model/text/pieces.h"

enum { TOKENS_MOST = 1 << 22 };

/* A token that is no piece of the model, or a piece that is searched for in the text like an added
 * token. */
struct extra {
	char *content; /* the token's text; NULL: an ordinary piece, or no token */
	bool special;
};

struct piece_text {
	struct pieces *pieces;
	/* A copy of the model that puts no space before a text; for parts of a text that get no
	 * space. With "legacy" every part gets a space, and this is NULL. */
	struct pieces *unprefixed;
	bool prefix_first; /* a space is put before the beginning of a text */
	int32_t begin, end; /* tokens that begin and end a text; -1: none */
	struct added_set added;
	struct characters *characters;
	struct extra *extras; /* the n tokens by number */
	uint32_t n, n_pieces;
};

/* ---- opening ---- */

static int refuse(const json_t *token, int code, const char *why, struct error *err)
{
	return error_set(err, code, "%s: %s: %s",
			 json_string_value(json_object_get(token, "file")),
			 json_string_value(json_object_get(token, "content")), why);
}

/* Gives the number of a token. */
static int number_of(const struct piece_text *p, const json_t *token, uint32_t *id,
		     struct error *err)
{
	const json_t *given = json_object_get(token, "id");
	const char *content = json_string_value(json_object_get(token, "content"));
	int32_t piece = pieces_find(p->pieces, content);
	json_int_t number = given ? json_integer_value(given) : piece;

	if (!given && piece < 0)
		return refuse(token, -ENOTSUP, "the tokenizer has no such token", err);
	if (number < 0 || number >= TOKENS_MOST)
		return refuse(token, -EINVAL, "expected an id below 4194304", err);
	if ((piece >= 0 || number < p->n_pieces) && number != piece)
		return refuse(token, -EINVAL, "tokenizer.model has another piece of this number",
			      err);
	*id = (uint32_t)number;
	return 0;
}

static int add_token(struct piece_text *p, const json_t *token, struct error *err)
{
	const char *content = json_string_value(json_object_get(token, "content"));
	uint32_t id = 0;
	int rc = number_of(p, token, &id, err);

	if (rc)
		return rc;
	if (json_is_true(json_object_get(token, "single_word")))
		return refuse(token, -ENOTSUP, "single_word: expected false", err);
	if (id >= p->n) {
		p->extras = alloc_resize(p->extras, id + 1, sizeof(*p->extras));
		memset(p->extras + p->n, 0, (id + 1 - p->n) * sizeof(*p->extras));
		p->n = id + 1;
	}
	if (p->extras[id].content)
		return refuse(token, -EINVAL, "another token has this number", err);
	p->extras[id].content = alloc_string(content);
	p->extras[id].special = json_is_true(json_object_get(token, "special"));
	added_set_add(&p->added, alloc_string(content), strlen(content), (int32_t)id,
		      json_is_true(json_object_get(token, "lstrip")),
		      json_is_true(json_object_get(token, "rstrip")));
	return 0;
}

/* Adds the tokens that LlamaTokenizer has by default. */
static void add_defaults(struct piece_text *p)
{
	static const char *const names[] = { "<unk>", "<s>", "</s>" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int32_t id = pieces_find(p->pieces, names[i]);

		if (id < 0 || p->extras[id].content)
			continue;
		p->extras[id] = (struct extra){ alloc_string(names[i]), true };
		added_set_add(&p->added, alloc_string(names[i]), strlen(names[i]), id, false,
			      false);
	}
}

/* Returns the number of an added token, which exists, because add_token has checked all tokens. */
static int32_t find_extra(const struct piece_text *p, const char *content)
{
	uint32_t id = 0;

	while (!p->extras[id].content || strcmp(p->extras[id].content, content) != 0)
		id++;
	return (int32_t)id;
}

static void choose_roles(struct piece_text *p, const struct beside *b)
{
	if (b->begin)
		p->begin = find_extra(p, b->begin);
	if (b->begins == BESIDE_NO)
		p->begin = -1;
	if (b->end)
		p->end = find_extra(p, b->end);
}

/* Opens the model with its space before a text switched off. A field that is appended to a protobuf
 * message overrides the earlier value. The four appended bytes set add_dummy_prefix (field 3) of
 * normalizer_spec (field 3) to false. */
static int open_unprefixed(struct piece_text *p, const char *model, size_t size, char *why,
			   size_t room)
{
	static const char unset[] = { 0x1a, 0x02, 0x18, 0x00 };
	char *changed = malloc(size + sizeof(unset));
	int rc;

	if (!changed)
		return -ENOMEM;
	memcpy(changed, model, size);
	memcpy(changed + size, unset, sizeof(unset));
	rc = pieces_new(&p->unprefixed, changed, size + sizeof(unset), why, room);
	free(changed);
	return rc;
}

static int use_beside(struct piece_text *p, const void *model, size_t size, const char *path,
		      const struct beside *b, struct error *err)
{
	bool legacy = b->legacy != BESIDE_NO;
	const json_t *token;
	char why[256] = "";
	size_t i;
	int rc = 0;

	if (!b->is_llama_class)
		return error_set(err, -ENOTSUP,
				 "%s: tokenizer_class in tokenizer_config.json: expected "
				 "LlamaTokenizer, which uses this file",
				 path);
	if (legacy && b->prefix_space == BESIDE_NO)
		return error_set(err, -ENOTSUP,
				 "%s: add_prefix_space false in tokenizer_config.json is supported "
				 "only with \"legacy\": false",
				 path);
	json_array_foreach(b->tokens, i, token)
		if (!rc)
			rc = add_token(p, token, err);
	if (!rc)
		add_defaults(p);
	if (!rc)
		choose_roles(p, b);
	p->prefix_first = b->prefix_space != BESIDE_NO;
	if (rc || legacy)
		return rc;
	rc = open_unprefixed(p, model, size, why, sizeof(why));
	return rc ? error_set(err, rc, "%s: %s", path, why) : 0;
}

int piece_text_new(struct piece_text **out, const void *model, size_t size, const char *path,
		   const struct beside *beside, struct error *err)
{
	struct piece_text *p = alloc_new(sizeof(*p));
	char why[256] = "";
	int rc = pieces_new(&p->pieces, model, size, why, sizeof(why));

	if (rc) {
		free(p);
		return error_set(err, rc, "%s: no SentencePiece model could be read: %s", path,
				 why);
	}
	p->n = p->n_pieces = pieces_vocab(p->pieces);
	p->extras = alloc_array(p->n + 1, sizeof(*p->extras));
	p->begin = pieces_begin(p->pieces);
	p->end = pieces_end(p->pieces);
	p->characters = characters_new(false);
	if (beside && beside->exists)
		rc = use_beside(p, model, size, path, beside, err);
	if (rc)
		piece_text_free(p);
	else
		*out = p;
	return rc;
}

void piece_text_free(struct piece_text *p)
{
	if (!p)
		return;
	pieces_free(p->pieces);
	if (p->unprefixed)
		pieces_free(p->unprefixed);
	for (uint32_t i = 0; i < p->n; i++)
		free(p->extras[i].content);
	free(p->extras);
	added_set_fini(&p->added);
	characters_free(p->characters);
	free(p);
}

uint32_t piece_text_vocab(const struct piece_text *p)
{
	return p->n;
}

int32_t piece_text_begin(const struct piece_text *p)
{
	return p->begin;
}

int32_t piece_text_end(const struct piece_text *p)
{
	return p->end;
}

/* ---- encoding ---- */

struct output {
	int32_t *tokens;
	size_t n, room;
};

static int put(struct output *out, const int32_t *tokens, size_t n)
{
	if (!array_grow(&out->tokens, &out->room, out->n + n + 1, sizeof(*tokens)))
		return -ENOMEM;
	if (n > 0)
		memcpy(out->tokens + out->n, tokens, n * sizeof(*tokens));
	out->n += n;
	return 0;
}

/* Encodes text in which no added token occurs. first: the part is the beginning of the whole
 * text. */
static int encode_part(struct piece_text *p, struct output *out, const char *text, size_t size,
		       bool first)
{
	bool spaced = p->unprefixed && first && p->prefix_first && text[0] != ' ';
	char *copy = spaced ? malloc(size + 1) : NULL;
	int32_t *tokens;
	size_t n;
	int rc;

	if (spaced && !copy)
		return -ENOMEM;
	if (spaced) {
		copy[0] = ' ';
		memcpy(copy + 1, text, size);
	}
	rc = pieces_encode(p->unprefixed ? p->unprefixed : p->pieces, spaced ? copy : text,
			   size + spaced, &tokens, &n);
	free(copy);
	if (rc)
		return rc;
	rc = put(out, tokens, n);
	free(tokens);
	return rc;
}

int piece_text_encode(struct piece_text *p, const char *text, size_t size, int32_t **tokens,
		      size_t *n)
{
	struct added_walk walk = { .text = text, .size = size };
	const uint8_t *bad = u8_check((const uint8_t *)text, size);
	struct output out = { .n = 0 };
	struct added_part part;
	int rc = 0;

	if (bad) {
		*n = (size_t)((const char *)bad - text);
		return -EINVAL;
	}
	rc = put(&out, NULL, 0);
	while (!rc && added_walk_next(&walk, &p->added, p->characters, &part)) {
		if (part.from < part.to)
			rc = encode_part(p, &out, text + part.from, part.to - part.from,
					 part.from == 0);
		if (!rc && part.id >= 0)
			rc = put(&out, &part.id, 1);
	}
	if (rc) {
		free(out.tokens);
		*n = size;
		return rc;
	}
	*tokens = out.tokens;
	*n = out.n;
	return 0;
}

/* ---- decoding ---- */

struct text {
	char *at;
	size_t n, room;
};

static int put_text(struct text *out, const char *text, size_t size)
{
	if (!array_grow(&out->at, &out->room, out->n + size + 1, 1))
		return -ENOMEM;
	memcpy(out->at + out->n, text, size);
	out->n += size;
	out->at[out->n] = 0;
	return 0;
}

static bool is_piece(const struct piece_text *p, int32_t token)
{
	return (uint32_t)token < p->n_pieces && !p->extras[token].content;
}

/* Decodes a run of pieces. With "legacy", every run loses the space before it. Without "legacy",
 * only the first run of the text loses this space, and only if prefix_first is set. */
static int decode_run(struct piece_text *p, struct text *out, const int32_t *tokens, size_t n,
		      bool first)
{
	struct pieces *model = p->unprefixed && (!first || !p->prefix_first) ? p->unprefixed
									      : p->pieces;
	char *text;
	size_t size;
	int rc = pieces_decode(model, tokens, n, &text, &size);

	if (rc)
		return rc;
	rc = put_text(out, text, size);
	free(text);
	return rc;
}

int piece_text_decode(struct piece_text *p, const int32_t *tokens, size_t n, char **text,
		      size_t *size)
{
	struct text out = { .n = 0 };
	size_t i = 0, run;
	int rc = put_text(&out, "", 0);

	while (!rc && i < n) {
		if (tokens[i] < 0 || (uint32_t)tokens[i] >= p->n) {
			rc = -EINVAL;
			break;
		}
		for (run = 0; i + run < n && tokens[i + run] >= 0 && is_piece(p, tokens[i + run]);)
			run++;
		if (run > 0) {
			rc = decode_run(p, &out, tokens + i, run, out.n == 0);
			i += run;
			continue;
		}
		/* A number below the largest token may have no token, and then has no text. */
		if (p->extras[tokens[i]].content && !p->extras[tokens[i]].special)
			rc = put_text(&out, p->extras[tokens[i]].content,
				      strlen(p->extras[tokens[i]].content));
		i++;
	}
	if (rc) {
		free(out.at);
		return rc;
	}
	*text = out.at;
	*size = out.n;
	return 0;
}
