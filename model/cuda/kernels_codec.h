/* kernels_codec.h - the formats of model/codec/codec.h on the GPU, with the same bits as on the
 * CPU. Each thread encodes or decodes one group. Included by kernels.h. */

#include "model/codec/codec_element.h"

KERNEL(channel_means, channel_means_args)
{
	size_t c = (size_t)BLOCK_X * THREADS + THREAD;
	float sum = 0;

	if (c >= a.n)
		return;
	for (size_t r = 0; r < a.rows; r++)
		sum = ADD(sum, a.x[r * a.n + c]);
	a.means[c] = (uint16_t)codec_mean(sum, (float)a.rows);
}

/* Returns number i minus its channel's mean. */
DEVICE float codec_centred(const struct codec_args *a, size_t i)
{
	return a->means ? SUB(a->x[i], codec_float(a->means[i % a->channels])) : a->x[i];
}

KERNEL(quantise, codec_args)
{
	size_t group = (size_t)BLOCK_X * THREADS + THREAD, first = group * a.group;
	size_t end = first + a.group < a.n ? first + a.group : a.n;
	uint8_t *to = a.bytes + group * (2 + a.group * a.bits / 8);
	uint32_t largest = 0, scale, held = 0;
	unsigned n_held = 0;

	if (first >= a.n)
		return;
	for (size_t i = first; i < end; i++) {
		uint32_t size = BITS(codec_centred(&a, i)) & 0x7fffffff;

		largest = size > largest ? size : largest;
	}
	scale = codec_scale(largest, a.bits);
	*to++ = (uint8_t)scale;
	*to++ = (uint8_t)(scale >> 8);
	for (size_t i = first; i < end; i++) {
		uint32_t code = 0;

		if (scale != 0 && scale != CODEC_NAN)
			code = codec_code(codec_centred(&a, i), codec_float(scale));
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
	uint32_t scale, held = 0;
	unsigned n_held = 0;

	if (first >= a.n)
		return;
	scale = from[0] | (uint32_t)from[1] << 8;
	from += 2;
	for (size_t i = first; i < end; i++) {
		float y;

		for (; n_held < a.bits; n_held += 8)
			held |= (uint32_t)*from++ << n_held;
		y = codec_number((int32_t)(held << (32 - a.bits)) >> (32 - a.bits), scale);
		a.x[i] = a.means ? codec_restore(y, a.means[i % a.channels]) : y;
		held >>= a.bits;
		n_held -= a.bits;
	}
}
