/* tokenizer.h - text as tokens and back: bytes, byte-level BPE, or the pieces of a SentencePiece
 * model.
 *
 * bpe.h reads a tokenizer.json of the transformers library. libsentencepiece, if the build found
 * it, reads SentencePiece models (tokenizer.model of LLaMA and others).
 */
#ifndef MODEL_TOKENIZER_H
#define MODEL_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct tokenizer; /* opaque; one thread at a time */

/* Opens a tokenizer. path: a tokenizer.json, a SentencePiece model, or a folder with one of them;
 * NULL: every byte is a token. The files beside a tokenizer are read too (beside.h). -ENOTSUP: this
 * program was built without SentencePiece, or a tokenizer.json has an unsupported setting; -EINVAL:
 * the file is no tokenizer; -ENOENT: the folder has none; or an error of the system. */
int tokenizer_open(struct tokenizer **out, const char *path, struct error *err);
void tokenizer_free(struct tokenizer *t); /* NULL is allowed */

/* Returns true if the folder of a model or a checkpoint contains a tokenizer. This includes
 * tokenizers that tokenizer_open refuses, such as a vocab.json without a tokenizer.json. */
bool tokenizer_is_in(const char *folder);
/* Copies a tokenizer to the folder `to`, as tokenizer.json or tokenizer.model. `from`: the
 * tokenizer's file, or a folder. If `from` is a folder or a file with such a name, the files beside
 * the tokenizer are copied too (beside.h). */
int tokenizer_copy(const char *from, const char *to, struct error *err);

uint32_t tokenizer_vocab(const struct tokenizer *t); /* returns a number above all tokens */
/* Returns the token that every text begins with; -1: none. */
int32_t tokenizer_begin(const struct tokenizer *t);
/* Returns the token that every document of a corpus begins with; -1: none. This is the token that a
 * text begins with, or else <|endoftext|>, as in llm.c. */
int32_t tokenizer_document(const struct tokenizer *t);
/* Returns the token that ends a text, if the tokenizer's files name one; otherwise -1. */
int32_t tokenizer_end(const struct tokenizer *t);
/* Returns true if each byte is a token, so that any bytes can be encoded, not only UTF-8. */
bool tokenizer_is_bytes(const struct tokenizer *t);

/* Encodes text (size bytes) to *tokens (*n), which the caller frees. Does not add the token that
 * begins a document. -ENOMEM; -EINVAL: the text is not UTF-8, or has a byte without a token. *n is
 * then the index of this byte, or `size` if the index is unknown. */
int tokenizer_encode(struct tokenizer *t, const char *text, size_t size, int32_t **tokens,
		     size_t *n);

/* A place at which a long text may be cut: the tokens of its parts, joined, are the tokens of the
 * whole text. The first part ends at `at`. The next part begins `context` bytes before `at`. Its
 * first `skip` tokens are dropped, because they repeat the last tokens of the first part. */
struct tokenizer_seam {
	size_t at, context, skip;
};
/* Finds the last seam in the text. -EAGAIN: the text has none, so the caller must give more
 * text. */
int tokenizer_find_seam(struct tokenizer *t, const char *text, size_t size,
			struct tokenizer_seam *seam);

/* Decodes tokens to *text (*size), which the caller frees; a NUL follows the text. Tokens that a
 * tokenizer.json calls special are omitted. -EINVAL: no such token. */
int tokenizer_decode(struct tokenizer *t, const int32_t *tokens, size_t n, char **text,
		     size_t *size);
/* Returns how many bytes of decoded text can be shown while more tokens will follow. These are all
 * bytes, except for bytes at the end that may be a part of a character. */
size_t tokenizer_shown(const char *text, size_t size);

#endif
