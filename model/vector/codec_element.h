/* codec_element.h - the arithmetic of codec.h for a single number, shared by the CPU and the GPU.
 *
 * The including file defines the macros that adamw_element.h names, and BITS and FROM_BITS: a
 * float's bits as uint32_t, and back.
 */
#ifndef MODEL_VECTOR_CODEC_ELEMENT_H
#define MODEL_VECTOR_CODEC_ELEMENT_H

#include <stdint.h>

/* Numbers of this size or more cannot be encoded. The code compares this constant with a float's
 * bits without the sign. These bits grow with the float's magnitude, and those of NaN are the
 * largest. */
#define CODEC_TOO_LARGE 0x7e800000u /* 2^126 */
#define CODEC_SMALLEST 0x0d80u      /* the number 2^-100 in bf16 */
#define CODEC_NAN 0x7fc0u           /* NaN in bf16 */
/* 1.5 * 2^23. If a small number x is added to this constant, the lowest bits of the sum have x,
 * rounded to an integer. */
#define CODEC_ROUNDER 12582912.0f
#define CODEC_ROUNDER_BITS 0x4b400000u

/* Rounds a finite float to bf16. */
INLINE_ uint32_t codec_half(float x)
{
	uint32_t bits = BITS(x);

	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

INLINE_ float codec_float(uint32_t half)
{
	return FROM_BITS(half << 16);
}

/* Returns a group's scale in bf16. largest: bits of the group's largest magnitude, without the
 * sign. */
INLINE_ uint32_t codec_scale(uint32_t largest, unsigned bits)
{
	uint32_t half;

	if (largest >= CODEC_TOO_LARGE)
		return CODEC_NAN;
	half = codec_half(DIV(FROM_BITS(largest), (float)((1 << (bits - 1)) - 1)));
	return half < CODEC_SMALLEST ? 0 : half;
}

/* Returns x's code as an integer in two's complement. The scale must be positive. */
INLINE_ uint32_t codec_code(float x, float scale)
{
	return BITS(ADD(DIV(x, scale), CODEC_ROUNDER)) - CODEC_ROUNDER_BITS;
}

/* Returns the mean, in bf16, of a channel from its sum and the number of tokens. */
INLINE_ uint32_t codec_mean(float sum, float tokens)
{
	float mean = DIV(sum, tokens);
	uint32_t half;

	if ((BITS(mean) & 0x7fffffff) >= CODEC_TOO_LARGE)
		return CODEC_NAN;
	half = codec_half(mean);
	return (half & 0x7fff) < CODEC_SMALLEST ? 0 : half;
}

/* Returns the decoded number for any code and scale. NaN is always the same bit pattern, as in
 * adamw_element.h. */
INLINE_ float codec_number(int32_t code, uint32_t scale)
{
	return (scale & 0x7f80) == 0x7f80 ? NOT_A_NUMBER : MUL((float)code, codec_float(scale));
}

INLINE_ float codec_restore(float y, uint32_t mean)
{
	float x = ADD(y, codec_float(mean));

	return x == x ? x : NOT_A_NUMBER;
}

#endif
