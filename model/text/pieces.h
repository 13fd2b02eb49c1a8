/* pieces.h - libsentencepiece, which is C++, for tokenizer.c alone. */
#ifndef MODEL_PIECES_H
#define MODEL_PIECES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pieces; /* opaque */

/* From the bytes of a .model file. Why it failed goes to why (room). -EINVAL, -ENOMEM,
 * -ENOTSUP: built without it. */
int pieces_new(struct pieces **out, const void *model, size_t size, char *why, size_t room);
void pieces_free(struct pieces *s);

uint32_t pieces_vocab(const struct pieces *s);
int32_t pieces_begin(const struct pieces *s); /* -1: none */

/* Results are malloc's, the caller's. -ENOMEM, -EINVAL. */
int pieces_encode(struct pieces *s, const char *text, size_t size, int32_t **tokens, size_t *n);
int pieces_decode(struct pieces *s, const int32_t *tokens, size_t n, char **text, size_t *size);

#ifdef __cplusplus
}
#endif

#endif
