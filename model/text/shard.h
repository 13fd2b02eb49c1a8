/* shard.h - recognises files of tokens, and files that are not text.
 *
 * A token shard has 256 little-endian words (a magic number, a version, the number of tokens,
 * zeros), then little-endian tokens. A token has 16 bits, or 32 bits for vocabularies above 65,536.
 * Both layouts are those of llm.c's .bin files.
 */
#ifndef MODEL_SHARD_H
#define MODEL_SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { SHARD_HEADER = 1024 /* bytes of a header */, SHARD_VOCAB_16 = 1 << 16 };

struct shard {
	size_t width;    /* bytes of a token: 2 or 4 */
	uint32_t tokens; /* number of tokens that the header states */
};

/* Looks at the first `size` bytes of a file. Returns 0 and fills *out for the header of a shard,
 * and returns 1 if the file may be text. -EINVAL: the file is neither, because it is a .bin of
 * another layout (nanoGPT's for example) or has a NUL byte. The error gives the reason. */
int shard_recognize(struct shard *out, const char *path, const void *data, size_t size,
		    struct error *err);
/* Writes the header of a shard. */
void shard_write_header(uint32_t header[SHARD_HEADER / 4], const struct shard *s);

/* Returns a token of `width` bytes. */
static inline uint32_t shard_token(const unsigned char *at, size_t width)
{
	uint32_t low = at[0] | (uint32_t)at[1] << 8;

	return width == 2 ? low : low | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

#endif
