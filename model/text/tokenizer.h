/* tokenizer.h - text as tokens and back: bytes, or the pieces of a SentencePiece model.
 *
 * SentencePiece models (tokenizer.model of LLaMA and others) are read by libsentencepiece,
 * where the build found it. tokenizer.json of the transformers library is not read: no library
 * of Debian's does.
 */
#ifndef MODEL_TOKENIZER_H
#define MODEL_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct tokenizer; /* opaque */

/* path NULL: every byte is a token. Else a SentencePiece model. -ENOTSUP: built without
 * SentencePiece, or a tokenizer.json; -EINVAL: no such model; the system's errors. */
int tokenizer_open(struct tokenizer **out, const char *path, struct error *err);
void tokenizer_free(struct tokenizer *t); /* NULL is allowed */

uint32_t tokenizer_vocab(const struct tokenizer *t); /* tokens are below */
/* Returns the token that every document begins with; -1: none. */
int32_t tokenizer_begin(const struct tokenizer *t);

/* Text (size bytes) to *tokens (*n), freed by the caller; without the token that begins a
 * document. -ENOMEM, -EINVAL. */
int tokenizer_encode(struct tokenizer *t, const char *text, size_t size, int32_t **tokens,
		     size_t *n);
/* Tokens to text: *text (*size), NUL-terminated besides, freed by the caller. -EINVAL: no such
 * token. */
int tokenizer_decode(struct tokenizer *t, const int32_t *tokens, size_t n, char **text,
		     size_t *size);

#endif
