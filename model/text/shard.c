/* Recognises files of tokens by their first bytes. Text never has a NUL byte, and tokens of 16 or
 * 32 bits nearly always contain NUL bytes. */
#include "model/text/shard.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/not_text.h"

/* Magic numbers of llm.c's files, which are dates. */
enum {
	MAGIC_16 = 20240520,
	VERSION_16 = 1,
	MAGIC_32 = 20240801,
	VERSION_32 = 7,
	MAGIC_EVALUATION = 20240522,
	MAGICS_FROM = 20240301,
	MAGICS_TO = 20241231,
};

static uint32_t word_at(const unsigned char *data, size_t i)
{
	return shard_token(data + 4 * i, 4);
}

static int read_header(struct shard *out, const char *path, const unsigned char *data, size_t size,
		       struct error *err)
{
	uint32_t magic = word_at(data, 0), version = word_at(data, 1),
		 expected = magic == MAGIC_16 ? VERSION_16 : VERSION_32;

	if (magic != MAGIC_16 && magic != MAGIC_32)
		return error_set(err, -EINVAL,
				 "%s: a file of llm.c with magic number %" PRIu32
				 ", %s: expected tokens (%d or %d)",
				 path, magic,
				 magic == MAGIC_EVALUATION ? "an evaluation"
							   : "a model or its state",
				 MAGIC_16, MAGIC_32);
	if (version != expected)
		return error_set(err, -EINVAL,
				 "%s: token shard of version %" PRIu32 ", expected %" PRIu32, path,
				 version, expected);
	if (size < SHARD_HEADER)
		return error_set(err, -EINVAL, "%s: cut short: %zu bytes, the header has %d", path,
				 size, SHARD_HEADER);
	*out = (struct shard){ magic == MAGIC_16 ? 2 : 4, word_at(data, 2) };
	return 0;
}

int shard_recognize(struct shard *out, const char *path, const void *data, size_t size,
		    struct error *err)
{
	const char *dot = strrchr(path, '.');
	const unsigned char *nul = memchr(data, 0, size);
	const char *reason = not_text_reason(data, size);

	if (size >= 12 && word_at(data, 0) >= MAGICS_FROM && word_at(data, 0) <= MAGICS_TO)
		return read_header(out, path, data, size, err);
	if (reason)
		return error_set(err, -EINVAL, "%s: %s", path, reason);
	if (dot && strcmp(dot, ".bin") == 0)
		return error_set(err, -EINVAL,
				 "%s: a .bin without the header of a token shard. The raw 16-bit "
				 "tokens of nanoGPT can be converted: skippipe tokenize --raw "
				 "--out SHARD.bin --corpus %s",
				 path, path);
	if (nul)
		return error_set(err, -EINVAL,
				 "%s: not a text: byte %zu is NUL (unpack a compressed file, or "
				 "convert UTF-16 to UTF-8, first)",
				 path, (size_t)(nul - (const unsigned char *)data) + 1);
	return 1;
}

void shard_write_header(uint32_t header[SHARD_HEADER / 4], const struct shard *s)
{
	memset(header, 0, SHARD_HEADER);
	header[0] = s->width == 2 ? MAGIC_16 : MAGIC_32;
	header[1] = s->width == 2 ? VERSION_16 : VERSION_32;
	header[2] = s->tokens;
}
