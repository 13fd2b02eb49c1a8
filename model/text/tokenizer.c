/* Bytes are tokens as they stand; a SentencePiece model is used where one is given. */
#include "model/text/tokenizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/text/pieces.h"

enum { MODEL_MOST = 64 << 20 /* bytes of a .model file */ };

struct tokenizer {
	struct pieces *pieces; /* NULL: bytes */
};

static int open_pieces(struct tokenizer *t, const char *path, struct error *err)
{
	char *model, why[256] = "";
	size_t size;
	int rc = file_read(path, MODEL_MOST, &model, &size, err);

	if (rc)
		return rc;
	if (size > 0 && model[0] == '{')
		rc = error_set(
			err, -ENOTSUP,
			"%s: a tokenizer.json: only SentencePiece models (tokenizer.model) "
			"are read; token shards made elsewhere can be trained on",
			path);
	if (!rc)
		rc = pieces_new(&t->pieces, model, size, why, sizeof(why));
	free(model);
	if (why[0])
		return error_set(err, rc, "%s: no SentencePiece model could be read: %s", path,
				 why);
	return rc;
}

int tokenizer_open(struct tokenizer **out, const char *path, struct error *err)
{
	struct tokenizer *t = alloc_new(sizeof(*t));
	int rc = 0;

	if (path)
		rc = open_pieces(t, path, err);
	if (rc)
		free(t);
	else
		*out = t;
	return rc;
}

void tokenizer_free(struct tokenizer *t)
{
	if (t && t->pieces)
		pieces_free(t->pieces);
	free(t);
}

uint32_t tokenizer_vocab(const struct tokenizer *t)
{
	return t->pieces ? pieces_vocab(t->pieces) : 256;
}

int32_t tokenizer_begin(const struct tokenizer *t)
{
	return t->pieces ? pieces_begin(t->pieces) : -1;
}

int tokenizer_encode(struct tokenizer *t, const char *text, size_t size, int32_t **tokens,
		     size_t *n)
{
	if (t->pieces)
		return pieces_encode(t->pieces, text, size, tokens, n);
	*tokens = malloc((size + 1) * sizeof(**tokens));
	if (!*tokens)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++)
		(*tokens)[i] = (unsigned char)text[i];
	*n = size;
	return 0;
}

int tokenizer_decode(struct tokenizer *t, const int32_t *tokens, size_t n, char **text,
		     size_t *size)
{
	if (t->pieces)
		return pieces_decode(t->pieces, tokens, n, text, size);
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
