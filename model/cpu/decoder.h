/* decoder.h - computes one token after another to generate text, and keeps the keys and values of
 * earlier tokens. A decoder reads the stages' weights in host memory and runs in one thread.
 */
#ifndef MODEL_DECODER_H
#define MODEL_DECODER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/stage.h"

struct decoder; /* opaque */

/* Makes a decoder for stage 0 and then the stages of path (n), which is copied. stages are borrowed
 * until decoder_free, and must not change until then. length: limit of tokens, at most the context.
 * -EINVAL, -ENOMEM. */
int decoder_new(struct decoder **out, struct stage *const *stages, const uint32_t *path,
		size_t n, uint32_t length, struct error *err);
void decoder_free(struct decoder *d); /* NULL is allowed */

/* Takes the next token, and gives the logits (vocab) of the token after it. *logits stays valid
 * until the next call. -ENOSPC: the decoder has already taken `length` tokens; -EINVAL: no such
 * token. */
int decoder_next(struct decoder *d, int32_t token, const float **logits);
/* Forgets all taken tokens except the first n. */
void decoder_rewind(struct decoder *d, uint32_t n);

#endif
