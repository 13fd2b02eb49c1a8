/* piece_text.h - text as the pieces of a SentencePiece model, and as the tokens that files beside
 * the model add to it.
 *
 * The tokens are the same as those of the transformers library (LlamaTokenizer). Text is cut at
 * added tokens, and each part between added tokens is encoded by itself. With "legacy" a space is
 * put before each part, if the model asks for this. Without "legacy" a space is put only before the
 * beginning of the text.
 */
#ifndef MODEL_PIECE_TEXT_H
#define MODEL_PIECE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/text/beside.h"

struct piece_text; /* opaque */

/* Reads a model from the bytes of a .model file; path: for error messages. beside: settings from
 * the files beside it, or NULL. -EINVAL, -ENOMEM; -ENOTSUP: this program was built without
 * libsentencepiece, or a setting is not supported. */
int piece_text_new(struct piece_text **out, const void *model, size_t size, const char *path,
		   const struct beside *beside, struct error *err);
void piece_text_free(struct piece_text *p); /* NULL is allowed */

uint32_t piece_text_vocab(const struct piece_text *p);
int32_t piece_text_begin(const struct piece_text *p); /* the token that begins a text; -1: none */
int32_t piece_text_end(const struct piece_text *p); /* the token that ends a text; -1: none */

/* Encode and decode; the caller frees the results. -ENOMEM, -EINVAL. Decoding omits special
 * tokens. */
int piece_text_encode(struct piece_text *p, const char *text, size_t size, int32_t **tokens,
		      size_t *n);
int piece_text_decode(struct piece_text *p, const int32_t *tokens, size_t n, char **text,
		      size_t *size);

#endif
