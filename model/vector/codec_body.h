/* codec_body.h - the operations of codec.h on arrays, included once by each exact_*.c.
 *
 * The loops are written so that compilers vectorise them. Groups are padded to whole blocks. The
 * codes of a block fill whole 32-bit words, whether a code has 8, 6 or 4 bits.
 */
#include <stdbool.h>
#include <string.h>

#include "model/vector/exact.h"

INLINE_ uint32_t codec_bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

INLINE_ float codec_float_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

#define BITS(x) codec_bits_of(x)
#define FROM_BITS(u) codec_float_of(u)

#include "model/vector/codec_element.h"

enum { BLOCK = 32, GROUP_MOST = 128 };

INLINE_ uint32_t read_half(const unsigned char *from)
{
	uint16_t half;

	memcpy(&half, from, sizeof(half));
	return half;
}

INLINE_ void write_half(unsigned char *to, uint32_t half)
{
	uint16_t low = (uint16_t)half;

	memcpy(to, &low, sizeof(low));
}

/* Writes a block's codes: 4 * bits bytes. */
INLINE_ void pack_block(unsigned char *to, const uint32_t codes[BLOCK], unsigned bits)
{
	uint32_t words[BLOCK / 4];

	if (bits == 8)
		for (int i = 0; i < BLOCK; i++)
			to[i] = (unsigned char)codes[i];
	if (bits == 4)
		for (int i = 0; i < BLOCK / 2; i++)
			to[i] = (unsigned char)((codes[2 * i] & 15) | codes[2 * i + 1] << 4);
	if (bits != 6)
		return;
	for (int i = 0; i < BLOCK / 4; i++)
		words[i] = (codes[4 * i] & 63) | (codes[4 * i + 1] & 63) << 6 |
			   (codes[4 * i + 2] & 63) << 12 | (codes[4 * i + 3] & 63) << 18;
	for (int i = 0; i < BLOCK / 4; i += 2) { /* eight codes of 6 bits are six bytes */
		uint64_t both = words[i] | (uint64_t)words[i + 1] << 24;

		memcpy(to + 3 * i, &both, 6);
	}
}

INLINE_ void unpack_block(int32_t codes[BLOCK], const unsigned char *from, unsigned bits)
{
	if (bits == 8)
		for (int i = 0; i < BLOCK; i++)
			codes[i] = (int8_t)from[i];
	if (bits == 4)
		for (int i = 0; i < BLOCK / 2; i++) {
			codes[2 * i] = (int8_t)(from[i] << 4) >> 4;
			codes[2 * i + 1] = (int8_t)from[i] >> 4;
		}
	if (bits != 6)
		return;
	for (int i = 0; i < BLOCK / 4; i++) { /* four codes of 6 bits are three bytes */
		const unsigned char *at = from + 3 * i;
		uint32_t word = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;

		for (int k = 0; k < 4; k++)
			codes[4 * i + k] = (int32_t)(word << (26 - 6 * k)) >> 26;
	}
}

/* Encodes a group of n numbers, which are padded with zeros to whole blocks. */
INLINE_ void encode_group(unsigned char *to, const float x[GROUP_MOST], size_t n, unsigned bits)
{
	uint32_t largest = 0, half;
	float scale;

	for (size_t i = 0; i < (n + BLOCK - 1) / BLOCK * BLOCK; i++) {
		uint32_t size = BITS(x[i]) & 0x7fffffff;

		largest = size > largest ? size : largest;
	}
	half = codec_scale(largest, bits);
	write_half(to, half);
	to += 2;
	if (half == 0 || half == CODEC_NAN) {
		memset(to, 0, (n * bits + 7) / 8);
		return;
	}
	scale = codec_float(half);
	for (size_t at = 0; at < n; at += BLOCK) {
		unsigned char last[BLOCK];
		uint32_t codes[BLOCK];

		for (int i = 0; i < BLOCK; i++)
			codes[i] = codec_code(x[at + (size_t)i], scale);
		if (n - at >= BLOCK) {
			pack_block(to + at * bits / 8, codes, bits);
		} else {
			pack_block(last, codes, bits);
			memcpy(to + at * bits / 8, last, ((n - at) * bits + 7) / 8);
		}
	}
}

/* Decodes a group of n numbers. The numbers that pad the last block are undefined. */
INLINE_ void decode_group(float x[GROUP_MOST], const unsigned char *from, size_t n, unsigned bits)
{
	uint32_t scale = read_half(from);

	from += 2;
	for (size_t at = 0; at < n; at += BLOCK) {
		unsigned char last[BLOCK] = { 0 };
		int32_t codes[BLOCK];

		if (n - at >= BLOCK) {
			unpack_block(codes, from + at * bits / 8, bits);
		} else {
			memcpy(last, from + at * bits / 8, ((n - at) * bits + 7) / 8);
			unpack_block(codes, last, bits);
		}
		for (int i = 0; i < BLOCK; i++)
			x[at + (size_t)i] = codec_number(codes[i], scale);
	}
}

/* Subtracts from each of n numbers the mean of the number's channel, or adds this mean. channel:
 * channel of the first number. Returns the channel of the number that follows the last number. */
INLINE_ size_t shift_by_means(float *to, const float *from, size_t n, const struct quantiser *q,
			      size_t channel, bool remove)
{
	for (size_t at = 0, run; at < n; at += run) {
		const unsigned char *means = q->means + 2 * channel;

		run = q->channels - channel < n - at ? q->channels - channel : n - at;
		for (size_t i = 0; i < run; i++) {
			uint32_t mean = read_half(means + 2 * i);

			to[at + i] = remove ? SUB(from[at + i], codec_float(mean))
					    : codec_restore(from[at + i], mean);
		}
		channel = channel + run == q->channels ? 0 : channel + run;
	}
	return channel;
}

INLINE_ void quantise_all(unsigned char *to, const float *x, size_t n, const struct quantiser *q,
			  unsigned bits, size_t group)
{
	size_t channel = 0;

	for (size_t i = 0; i < n; i += group) {
		size_t some = n - i < group ? n - i : group;
		float centred[GROUP_MOST];

		if (some < group)
			memset(centred, 0, sizeof(centred));
		if (q->means)
			channel = shift_by_means(centred, x + i, some, q, channel, true);
		else
			memcpy(centred, x + i, some * sizeof(*x));
		encode_group(to, centred, some, bits);
		to += 2 + (some * bits + 7) / 8;
	}
}

INLINE_ void dequantise_all(float *to, const unsigned char *from, size_t n,
			    const struct quantiser *q, unsigned bits, size_t group)
{
	size_t channel = 0;

	for (size_t i = 0; i < n; i += group) {
		size_t some = n - i < group ? n - i : group;
		float centred[GROUP_MOST];

		decode_group(centred, from, some, bits);
		if (q->means)
			channel = shift_by_means(to + i, centred, some, q, channel, false);
		else
			memcpy(to + i, centred, some * sizeof(*to));
		from += 2 + (some * bits + 7) / 8;
	}
}

/* Compiles the loops for each combination of bits and size of group. */
#define EACH_FORM(call, q) \
	do { \
		bool small = (q)->group == BLOCK; \
\
		if ((q)->bits == 8 && small) \
			call(8, BLOCK); \
		else if ((q)->bits == 6 && small) \
			call(6, BLOCK); \
		else if ((q)->bits == 8) \
			call(8, GROUP_MOST); \
		else if ((q)->bits == 6) \
			call(6, GROUP_MOST); \
		else \
			call(4, GROUP_MOST); \
	} while (0)

void EXACT(quantise)(unsigned char *to, const float *x, size_t n, const struct quantiser *q)
{
#define QUANTISE(bits, group) quantise_all(to, x, n, q, bits, group)
	EACH_FORM(QUANTISE, q);
#undef QUANTISE
}

void EXACT(dequantise)(float *to, const unsigned char *from, size_t n, const struct quantiser *q)
{
#define DEQUANTISE(bits, group) dequantise_all(to, from, n, q, bits, group)
	EACH_FORM(DEQUANTISE, q);
#undef DEQUANTISE
}

void EXACT(channel_means)(unsigned char *to, const float *x, size_t rows, size_t n)
{
	enum { SOME = 256 };

	for (size_t at = 0; at < n; at += SOME) {
		size_t some = n - at < SOME ? n - at : SOME;
		float sums[SOME] = { 0 };

		for (size_t r = 0; r < rows; r++)
			for (size_t i = 0; i < some; i++)
				sums[i] = ADD(sums[i], x[r * n + at + i]);
		for (size_t i = 0; i < some; i++)
			write_half(to + 2 * (at + i), codec_mean(sums[i], (float)rows));
	}
}

#undef BITS
#undef FROM_BITS
