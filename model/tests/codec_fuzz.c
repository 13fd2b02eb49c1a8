/* libFuzzer: bytes of the correct length from outside are refused, or decode to finite numbers.
 * The buffers have exactly the lengths that the codec names, so that AddressSanitizer finds every
 * read beyond them. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/codec/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const float *y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(fabsf(y[i]) < 2e9f))
			abort();
}

/* Returns new memory of `bytes` bytes, filled with the input, repeated. */
static unsigned char *take(const uint8_t *data, size_t size, size_t bytes)
{
	unsigned char *own = malloc(bytes);

	for (size_t i = 0; own && i < bytes; i++)
		own[i] = data[i % size];
	return own;
}

static void try_sum(enum tensor_format format, size_t from, size_t n, const uint8_t *data,
		    size_t size)
{
	static const size_t starts[] = { 0, 3, 200, 201 };
	struct sum_codec c = { format, starts, 4 };
	size_t bytes = sum_codec_bytes(&c, from, n);
	unsigned char *own = take(data, size, bytes);
	float *y = malloc(n * sizeof(*y));

	if (own && y && sum_codec_is_plausible(&c, own, from, n)) {
		sum_codec_decode(&c, y, own, from, n);
		check(y, n);
	}
	free(own);
	free(y);
}

static void try_one(const struct codec *c, size_t n, const uint8_t *data, size_t size)
{
	unsigned char *own = take(data, size, codec_bytes(c, n));
	float *y = malloc(n * sizeof(*y));

	if (own && y && codec_is_plausible(c, own, n)) {
		codec_decode(c, y, own, n);
		check(y, n);
	}
	free(own);
	free(y);
}

/* The first four bytes choose the format and the shape. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum tensor_format format;
	struct codec c;
	size_t n;

	if (size < 5)
		return 0;
	format = (enum tensor_format)(data[0] % FORMAT_COUNT);
	n = 1 + data[1];
	if (tensor_format_suits_sums(format))
		try_sum(format, data[2], n, data + 4, size - 4);
	if (!tensor_format_suits_activations(format))
		return 0;
	c = codec_of_gradient(format);
	try_one(&c, n, data + 4, size - 4);
	c = codec_of_activation(format, 1 + data[2] % 80);
	try_one(&c, (size_t)(1 + data[2] % 80) * (1 + data[3] % 8), data + 4, size - 4);
	return 0;
}
