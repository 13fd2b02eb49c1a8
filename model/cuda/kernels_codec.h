/* kernels_codec.h - the formats of model/codec/codec.h on the GPU, with the same bits as on the
 * CPU. Each thread encodes or decodes one group. Included by kernels.h. */

#include "model/vector/codec_element.h"

/* The order of additions is fixed, so one thread adds all rows of a channel. The thread reads
 * several rows before it adds them, because it would otherwise wait for the memory after each
 * row. */
enum { MEANS_ROWS = 16 };

KERNEL(channel_means, channel_means_args)
{
	size_t c = (size_t)BLOCK_X * THREADS + THREAD;
	float sum = 0, some[MEANS_ROWS];

	if (c >= a.n)
		return;
	for (size_t r = 0; r < a.rows; r += MEANS_ROWS) {
		UNROLL
		for (size_t i = 0; i < MEANS_ROWS; i++)
			some[i] = r + i < a.rows ? a.x[(r + i) * a.n + c] : 0;
		UNROLL
		for (size_t i = 0; i < MEANS_ROWS; i++)
			if (r + i < a.rows)
				sum = ADD(sum, some[i]);
	}
	a.means[c] = (uint16_t)codec_mean(sum, (float)a.rows);
}

/* Returns number i minus the mean of its channel. */
DEVICE float codec_centred(const struct codec_args *a, size_t i, size_t channel)
{
	return a->means ? SUB(a->x[i], codec_float(a->means[channel])) : a->x[i];
}

DEVICE size_t first_channel(const struct codec_args *a, size_t i)
{
	return a->means ? i % a->channels : 0;
}

DEVICE size_t next_channel(const struct codec_args *a, size_t channel)
{
	return channel + 1 < a->channels ? channel + 1 : 0;
}

KERNEL(quantise, codec_args)
{
	size_t group = (size_t)BLOCK_X * THREADS + THREAD, first = group * a.group;
	size_t end = first + a.group < a.n ? first + a.group : a.n;
	uint8_t *to = a.bytes + group * (2 + a.group * a.bits / 8);
	size_t channel = first_channel(&a, first);
	uint32_t largest = 0, scale, held = 0;
	unsigned n_held = 0;

	if (first >= a.n)
		return;
	for (size_t i = first; i < end; i++, channel = next_channel(&a, channel)) {
		uint32_t size = BITS(codec_centred(&a, i, channel)) & 0x7fffffff;

		largest = size > largest ? size : largest;
	}
	scale = codec_scale(largest, a.bits);
	*to++ = (uint8_t)scale;
	*to++ = (uint8_t)(scale >> 8);
	channel = first_channel(&a, first);
	for (size_t i = first; i < end; i++, channel = next_channel(&a, channel)) {
		uint32_t code = 0;

		if (scale != 0 && scale != CODEC_NAN)
			code = codec_code(codec_centred(&a, i, channel), codec_float(scale));
		held |= (code & ((1u << a.bits) - 1)) << n_held;
		for (n_held += a.bits; n_held >= 8; n_held -= 8, held >>= 8)
			*to++ = (uint8_t)held;
	}
	if (n_held)
		*to = (uint8_t)held;
}

KERNEL(dequantise, codec_args)
{
	size_t group = (size_t)BLOCK_X * THREADS + THREAD, first = group * a.group;
	size_t end = first + a.group < a.n ? first + a.group : a.n;
	const uint8_t *from = a.bytes + group * (2 + a.group * a.bits / 8);
	size_t channel = first_channel(&a, first);
	uint32_t scale, held = 0;
	unsigned n_held = 0;

	if (first >= a.n)
		return;
	scale = from[0] | (uint32_t)from[1] << 8;
	from += 2;
	for (size_t i = first; i < end; i++, channel = next_channel(&a, channel)) {
		float y;

		for (; n_held < a.bits; n_held += 8)
			held |= (uint32_t)*from++ << n_held;
		y = codec_number((int32_t)(held << (32 - a.bits)) >> (32 - a.bits), scale);
		a.x[i] = a.means ? codec_restore(y, a.means[channel]) : y;
		held >>= a.bits;
		n_held -= a.bits;
	}
}

/* ---- bf16: each thread converts one number ---- */

KERNEL(bf16_encode, codec_args)
{
	size_t i = (size_t)BLOCK_X * THREADS + THREAD;

	if (i < a.n)
		((uint16_t *)(void *)a.bytes)[i] = to_bf16(a.x[i]);
}

KERNEL(bf16_decode, codec_args)
{
	size_t i = (size_t)BLOCK_X * THREADS + THREAD;

	if (i < a.n)
		a.x[i] = from_bf16(((const uint16_t *)(const void *)a.bytes)[i]);
}
