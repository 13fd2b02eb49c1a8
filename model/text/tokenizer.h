/* tokenizer.h - text as tokens and back: bytes, byte-level BPE, or the pieces of a SentencePiece
 * model.
 *
 * A tokenizer.json of the transformers library is read by bpe.h. SentencePiece models
 * (tokenizer.model of LLaMA and others) are read by libsentencepiece, where the build found it.
 */
#ifndef MODEL_TOKENIZER_H
#define MODEL_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct tokenizer; /* opaque; one thread at a time */

/* path NULL: every byte is a token. Else a tokenizer.json, a SentencePiece model, or a folder with
 * one of them. -ENOTSUP: built without SentencePiece, or a tokenizer.json that asks for what is
 * not supported; -EINVAL: no such model; -ENOENT: the folder has none; the system's errors. */
int tokenizer_open(struct tokenizer **out, const char *path, struct error *err);
void tokenizer_free(struct tokenizer *t); /* NULL is allowed */

/* Returns true if the folder of a model or a checkpoint has a tokenizer. */
bool tokenizer_is_in(const char *folder);
/* Copies the file of a tokenizer, or those that a folder has, to another folder, as
 * tokenizer.json or tokenizer.model. */
int tokenizer_copy(const char *from, const char *to, struct error *err);

uint32_t tokenizer_vocab(const struct tokenizer *t); /* tokens are below */
/* Returns the token that every document begins with; -1: none. */
int32_t tokenizer_begin(const struct tokenizer *t);
/* Returns true if each byte is a token, so that any text can be encoded, not only UTF-8. */
bool tokenizer_is_bytes(const struct tokenizer *t);

/* Text (size bytes) to *tokens (*n), freed by the caller; without the token that begins a
 * document. -ENOMEM; -EINVAL: it is not UTF-8, or has a byte for which there is no token. */
int tokenizer_encode(struct tokenizer *t, const char *text, size_t size, int32_t **tokens,
		     size_t *n);

/* Where a long text may be cut, so that its parts together have the tokens of the whole. The part
 * up to `at` is encoded. The next part begins with the `context` bytes before `at`, and its first
 * `skip` tokens are left away, because the part before has them. */
struct tokenizer_seam {
	size_t at, context, skip;
};
/* Finds the last such place in the text. -EAGAIN: there is none; more text is needed. */
int tokenizer_find_seam(struct tokenizer *t, const char *text, size_t size,
			struct tokenizer_seam *seam);

/* Tokens to text: *text (*size), NUL-terminated besides, freed by the caller. Tokens that a
 * tokenizer.json calls special are not shown. -EINVAL: no such token. */
int tokenizer_decode(struct tokenizer *t, const int32_t *tokens, size_t n, char **text,
		     size_t *size);
/* Returns how many bytes of decoded text can be shown while tokens are still to come: without the
 * bytes at its end that may be a part of a character. */
size_t tokenizer_shown(const char *text, size_t size);

#endif
