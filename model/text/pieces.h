/* pieces.h - calls libsentencepiece, which is C++. For piece_text.c only. */
#ifndef MODEL_PIECES_H
#define MODEL_PIECES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pieces; /* opaque */

/* Reads a model from the bytes of a .model file. On failure writes the reason to why (room).
 * -EINVAL, -ENOMEM; -ENOTSUP: this program was built without libsentencepiece. */
int pieces_new(struct pieces **out, const void *model, size_t size, char *why, size_t room);
void pieces_free(struct pieces *s);

uint32_t pieces_vocab(const struct pieces *s);
int32_t pieces_begin(const struct pieces *s); /* the piece that begins a text; -1: none */
int32_t pieces_end(const struct pieces *s);   /* the piece that ends a text; -1: none */
/* Returns the number of the piece with this text, or -1. */
int32_t pieces_find(const struct pieces *s, const char *piece);

/* Encode and decode; the caller frees the results. -ENOMEM, -EINVAL. */
int pieces_encode(struct pieces *s, const char *text, size_t size, int32_t **tokens, size_t *n);
int pieces_decode(struct pieces *s, const int32_t *tokens, size_t n, char **text, size_t *size);

#ifdef __cplusplus
}
#endif

#endif
