/* Converts text to tokens and back. Without a tokenizer's file each byte is a token; otherwise
 * bpe.c or piece_text.c does the work. */
#include "model/text/tokenizer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/text/bpe.h"
#include "model/text/piece_text.h"

enum {
	PATH = 4096,
	MODEL_MOST = 128 << 20, /* limit of the bytes of a tokenizer's file */
	/* Least and largest number of bytes before a cut that are encoded to test the cut. */
	CONTEXT_LEAST = 64,
	CONTEXT_MOST = 1024,
	SEAMS_TRIED = 256,
};

struct tokenizer {
	struct bpe *bpe; /* the byte-level BPE; NULL: another kind */
	/* The SentencePiece model; NULL: another kind. If both are NULL, tokens are bytes. */
	struct piece_text *pieces;
};

static const char *const files[] = { "tokenizer.json", "tokenizer.model" };
enum { FILES = sizeof(files) / sizeof(files[0]) };

static bool has_file(const char *folder, int i, char path[PATH])
{
	snprintf(path, PATH, "%s/%s", folder, files[i]);
	return access(path, F_OK) == 0;
}

/* Returns the name of a file of the folder that belongs to a tokenizer of another kind, or NULL. */
static const char *other_kind(const char *folder)
{
	static const char *const names[] = {
		"vocab.json",   "merges.txt",     "vocab.txt",
		"spiece.model", "tiktoken.model", "added_tokens.json"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (file_exists(folder, names[i]))
			return names[i];
	return NULL;
}

bool tokenizer_is_in(const char *folder)
{
	char path[PATH];

	return has_file(folder, 0, path) || has_file(folder, 1, path) || other_kind(folder);
}

static bool is_folder(const char *path)
{
	char inside[PATH];

	snprintf(inside, sizeof(inside), "%s/.", path);
	return access(inside, F_OK) == 0;
}

static bool is_json(const char *data, size_t size)
{
	size_t i = 0;

	while (i < size && data[i] && strchr(" \t\r\n", data[i]))
		i++;
	return i < size && data[i] == '{';
}

/* Reports why a file is neither kind of tokenizer, if its first bytes or its name show the reason.
 * Such files come from failed downloads and from editors. LLaMA 3's tokenizer.model is a file of
 * tiktoken: its first line is token 0, "!", in base64. */
static int check_kind(const char *path, const char *data, size_t size, struct error *err)
{
	static const char tiktoken[] = "IQ== 0\n";

	if (size >= sizeof(tiktoken) - 1 && memcmp(data, tiktoken, sizeof(tiktoken) - 1) == 0)
		return error_set(err, -EINVAL,
				 "%s: a file of tiktoken, not of SentencePiece: use the model's "
				 "tokenizer.json",
				 path);
	if (size == 0)
		return error_set(err, -EINVAL, "%s: the file is empty", path);
	if (!is_json(data, size) && file_ends_in(path, ".json"))
		return error_set(err, -EINVAL, "%s: not JSON: expected { at its beginning", path);
	return 0;
}

/* Copies a tokenizer's file to the folder `to`, as `name`. NULL: under the standard name of its
 * kind. */
static int copy_file(const char *from, const char *to, const char *name, struct error *err)
{
	char path[PATH], *data;
	size_t size;
	int rc = file_read_text(from, MODEL_MOST, &data, &size, err);

	if (rc)
		return rc;
	if (!name)
		name = files[is_json(data, size) ? 0 : 1];
	snprintf(path, sizeof(path), "%s/%s", to, name);
	rc = file_replace(path, data, size, FILE_RESULT, err);
	free(data);
	return rc;
}

/* Gives the folder of the file `path` if the file has the standard name of a tokenizer. The other
 * files of this folder then belong to the tokenizer, as if the folder itself had been named.
 * Returns false for other names. */
static bool folder_of(const char *path, char folder[PATH])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (strcmp(name, files[0]) != 0 && strcmp(name, files[1]) != 0)
		return false;
	snprintf(folder, PATH, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	return true;
}

int tokenizer_copy(const char *from, const char *to, struct error *err)
{
	char path[PATH + 64], folder[PATH];
	bool is_whole = is_folder(from);
	int rc = is_whole ? 0 : copy_file(from, to, NULL, err);

	if (!is_whole && !folder_of(from, folder))
		return rc;
	if (is_whole)
		snprintf(folder, sizeof(folder), "%s", from);
	for (int i = 0; i < FILES && !rc && is_whole; i++)
		if (has_file(from, i, path))
			rc = copy_file(path, to, files[i], err);
	for (size_t i = 0; beside_files[i] && !rc; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, beside_files[i]);
		if (file_exists(folder, beside_files[i]))
			rc = copy_file(path, to, beside_files[i], err);
	}
	return rc;
}

static int open_file(struct tokenizer *t, const char *path, const struct beside *beside,
		     struct error *err)
{
	char *model;
	size_t size;
	int rc = file_read_text(path, MODEL_MOST, &model, &size, err);

	if (rc)
		return rc;
	rc = check_kind(path, model, size, err);
	if (!rc)
		rc = is_json(model, size)
			     ? bpe_open(&t->bpe, model, size, path, beside, err)
			     : piece_text_new(&t->pieces, model, size, path, beside, err);
	free(model);
	return rc;
}

/* Opens the tokenizer of a folder. Like the transformers library, prefers a tokenizer.json. If the
 * tokenizer.json is not supported, opens the folder's SentencePiece model, if there is one. */
static int open_folder(struct tokenizer *t, const char *folder, struct beside *beside,
		       struct error *err)
{
	char json[PATH], model[PATH];
	bool has_json = has_file(folder, 0, json), has_model = has_file(folder, 1, model);
	int rc;

	if (!has_json && !has_model)
		return error_set(err, -ENOENT,
				 other_kind(folder)
					 ? "%s: has %s, but no tokenizer.json: write one with the "
					   "transformers library"
					 : "%s: has no tokenizer.json or tokenizer.model",
				 folder, other_kind(folder));
	if (!has_json)
		return open_file(t, model, beside, err);
	rc = open_file(t, json, beside, err);
	if (rc != -ENOTSUP || !has_model)
		return rc;
	rc = beside_read_json(beside, folder, err);
	return rc ? rc : open_file(t, model, beside, err);
}

int tokenizer_open(struct tokenizer **out, const char *path, struct error *err)
{
	struct tokenizer *t = alloc_new(sizeof(*t));
	struct beside beside;
	char folder[PATH];
	int rc = 0;

	if (path && (is_folder(path) || folder_of(path, folder))) {
		rc = beside_read(&beside, is_folder(path) ? path : folder, err);
		if (!rc) {
			rc = is_folder(path) ? open_folder(t, path, &beside, err)
					     : open_file(t, path, &beside, err);
			beside_fini(&beside);
		}
	} else if (path) {
		rc = open_file(t, path, NULL, err);
	}
	if (rc)
		free(t);
	else
		*out = t;
	return rc;
}

void tokenizer_free(struct tokenizer *t)
{
	if (!t)
		return;
	piece_text_free(t->pieces);
	bpe_free(t->bpe);
	free(t);
}

bool tokenizer_is_bytes(const struct tokenizer *t)
{
	return t->bpe ? bpe_is_bytes(t->bpe) : !t->pieces;
}

uint32_t tokenizer_vocab(const struct tokenizer *t)
{
	if (t->bpe)
		return bpe_vocab(t->bpe);
	return t->pieces ? piece_text_vocab(t->pieces) : 256;
}

int32_t tokenizer_begin(const struct tokenizer *t)
{
	if (t->bpe)
		return bpe_begin(t->bpe);
	return t->pieces ? piece_text_begin(t->pieces) : -1;
}

int32_t tokenizer_end(const struct tokenizer *t)
{
	if (t->bpe)
		return bpe_end(t->bpe);
	return t->pieces ? piece_text_end(t->pieces) : -1;
}

int32_t tokenizer_document(const struct tokenizer *t)
{
	return t->bpe ? bpe_document(t->bpe) : tokenizer_begin(t);
}

int tokenizer_encode(struct tokenizer *t, const char *text, size_t size, int32_t **tokens,
		     size_t *n)
{
	if (t->bpe && !tokenizer_is_bytes(t))
		return bpe_encode(t->bpe, text, size, tokens, n);
	if (t->pieces)
		return piece_text_encode(t->pieces, text, size, tokens, n);
	*tokens = malloc((size + 1) * sizeof(**tokens));
	if (!*tokens)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++)
		(*tokens)[i] = (unsigned char)text[i];
	*n = size;
	return 0;
}

/* ---- cuts in a text ---- A text is cut before white space that follows another character, because
 * words end there under every rule of split.h. But pieces of a SentencePiece model may continue
 * across such a place, and the model may put a space before each text. Each cut is therefore
 * tested. Some bytes before the cut are encoded alone, and then together with the bytes after the
 * cut. The first result must be the beginning of the second. */

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_cut(const char *text, size_t at)
{
	return is_space(text[at]) && !is_space(text[at - 1]);
}

/* Returns true if the tokens of text[from..at] are the first tokens of text[from..to], and gives
 * their number in *n. */
static bool tokens_part(struct tokenizer *t, const char *text, size_t from, size_t at, size_t to,
			size_t *n)
{
	int32_t *left, *both;
	size_t all;
	bool same;

	if (tokenizer_encode(t, text + from, at - from, &left, n))
		return false;
	if (tokenizer_encode(t, text + from, to - from, &both, &all)) {
		free(left);
		return false;
	}
	same = all > *n && memcmp(left, both, *n * sizeof(*left)) == 0;
	free(left);
	free(both);
	return same;
}

int tokenizer_find_seam(struct tokenizer *t, const char *text, size_t size,
			struct tokenizer_seam *seam)
{
	size_t to = size, at, tries = 0;

	if (tokenizer_is_bytes(t)) {
		*seam = (struct tokenizer_seam){ .at = size };
		return 0;
	}
	/* The end of the text may be inside a character, so `to` moves back to the last white
	 * space. */
	while (to > 0 && !is_space(text[to - 1]))
		to--;
	at = to > CONTEXT_MOST ? to - CONTEXT_MOST : 0;
	for (; at > CONTEXT_MOST && tries < SEAMS_TRIED; at--) {
		size_t from = at - CONTEXT_LEAST, n;

		if (!is_cut(text, at))
			continue;
		while (from > at - CONTEXT_MOST && !is_cut(text, from))
			from--;
		tries++;
		if (!is_cut(text, from) || !tokens_part(t, text, from, at, to, &n))
			continue;
		*seam = (struct tokenizer_seam){ at, at - from, n };
		return 0;
	}
	return -EAGAIN;
}

/* ---- tokens to text ---- */

int tokenizer_decode(struct tokenizer *t, const int32_t *tokens, size_t n, char **text,
		     size_t *size)
{
	if (t->bpe)
		return bpe_decode(t->bpe, tokens, n, text, size);
	if (t->pieces)
		return piece_text_decode(t->pieces, tokens, n, text, size);
	*text = malloc(n + 1);
	if (!*text)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (tokens[i] < 0 || tokens[i] > 255) {
			free(*text);
			return -EINVAL;
		}
		(*text)[i] = (char)tokens[i];
	}
	(*text)[n] = 0;
	*size = n;
	return 0;
}

/* A character has at most 4 bytes. SentencePiece decodes each byte of an incomplete character as
 * U+FFFD, so up to 3 of these at the end may still become a character. */
size_t tokenizer_shown(const char *text, size_t size)
{
	static const char replaced[] = "\xef\xbf\xbd";
	size_t back = 0;

	for (int i = 0; i < 3 && size >= 3 && memcmp(text + size - 3, replaced, 3) == 0; i++)
		size -= 3;
	while (back < 3 && back < size && (text[size - 1 - back] & 0xc0) == 0x80)
		back++;
	if (back < size) {
		unsigned char first = (unsigned char)text[size - 1 - back];
		size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

		if (first >= 0xc2 && first < 0xf5 && length > back + 1)
			return size - back - 1;
	}
	return size;
}
