/* Tests rounding to bf16 against its definition. The result is the nearer of the two neighbouring
 * bf16 numbers. If both are equally near, it is the even number. Every instruction set must give
 * exactly these bits. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "model/codec/codec.h"
#include "model/vector/vector.h"

enum { HALVES = 1 << 16 };

static const struct codec bf16 = { FORMAT_BF16, 0, 0 };

static float float_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* Returns the number that a bf16 has: sign, exponent, seven bits of fraction. An infinity counts as
 * 2^128, which would be the next number. */
static double value(uint32_t half)
{
	uint32_t exponent = half >> 7 & 0xff, fraction = half & 0x7f;
	double size = exponent == 0 ? ldexp(fraction, -126 - 7)
				    : ldexp(128 + fraction, (int)exponent - 127 - 7);

	return half >> 15 ? -size : size;
}

static uint16_t nearest(float x)
{
	uint16_t sign = signbit(x) ? 0x8000 : 0, low = 0, high = 0x7f80;
	double size = fabs((double)x), below, above;

	if (isnan(x))
		return 0x7fc0;
	if (isinf(x))
		return sign | 0x7f80;
	while (high - low > 1) { /* the loop keeps value(low) <= size < value(high) */
		uint16_t middle = (uint16_t)((low + high) / 2);

		if (value(middle) <= size)
			low = middle;
		else
			high = middle;
	}
	below = size - value(low);
	above = value(high) - size;
	if (below == above)
		return sign | (low & 1 ? high : low);
	return sign | (below < above ? low : high);
}

static void check(const float *x, size_t n)
{
	uint16_t *got = malloc(n * sizeof(*got));

	for (size_t set = 0; vector_ops_at(set); set++) {
		vector_ops_at(set)->to_bf16(got, x, n, 1, n);
		for (size_t i = 0; i < n; i++)
			if (got[i] != nearest(x[i]))
				fail_msg("%s: %08x becomes %04x, expected %04x",
					 vector_ops_at(set)->name, bits_of(x[i]), got[i],
					 nearest(x[i]));
	}
	codec_encode(&bf16, got, x, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(got[i], nearest(x[i]));
	free(got);
}

/* The numbers include denormals, infinities and NaN. */
TEST(every_upper_half_rounds_to_the_nearest)
{
	static const uint32_t lower[] = { 0, 1, 0x7fff, 0x8000, 0x8001, 0xffff };
	enum { LOWER = sizeof(lower) / sizeof(lower[0]) };
	float *x = malloc((LOWER + 1) * HALVES * sizeof(*x));
	struct rng r;

	rng_init(&r, 1);
	for (uint32_t half = 0; half < HALVES; half++) {
		for (uint32_t i = 0; i < LOWER; i++)
			x[i * HALVES + half] = float_of(half << 16 | lower[i]);
		x[LOWER * HALVES + half] = float_of(half << 16 | rng_below(&r, HALVES));
	}
	check(x, (size_t)(LOWER + 1) * HALVES);
	free(x);
}

TEST(random_floats_round_to_the_nearest)
{
	enum { N = 300007 };
	float *x = malloc(N * sizeof(*x));
	struct rng r;

	rng_init(&r, 2);
	for (size_t i = 0; i < N; i++)
		x[i] = i % 2 ? float_of((uint32_t)rng_next(&r)) : (float)rng_normal(&r);
	check(x, N);
	free(x);
}

/* Unpacking is exact, also from an odd address, as in the middle of a message. */
TEST(unpacking_is_exact)
{
	uint16_t *halves = malloc((HALVES + 1) * sizeof(*halves));
	char *odd = (char *)halves + 1;
	float *x = malloc(HALVES * sizeof(*x));

	for (size_t set = 0; vector_ops_at(set); set++) {
		for (uint32_t i = 0; i < HALVES; i++) {
			uint16_t half = (uint16_t)i;

			memcpy(odd + i * sizeof(half), &half, sizeof(half));
		}
		memset(x, 0, HALVES * sizeof(*x));
		vector_ops_at(set)->from_bf16(x, odd, HALVES);
		for (uint32_t i = 0; i < HALVES; i++)
			assert_int_equal(bits_of(x[i]), i << 16);
	}
	free(halves);
	free(x);
}

TEST(rounding_twice_is_rounding_once)
{
	enum { N = 5000 }; /* enough numbers for several pieces and a part of a piece */
	float x[N], once[N];
	uint16_t packed[N];
	struct rng r;

	rng_init(&r, 3);
	for (size_t i = 0; i < N; i++)
		x[i] = once[i] = float_of((uint32_t)rng_next(&r));
	assert_int_equal(codec_round(&bf16, once, N), 0);
	codec_encode(&bf16, packed, x, N);
	codec_decode(&bf16, x, packed, N);
	assert_memory_equal(x, once, sizeof(x));
	assert_int_equal(codec_round(&bf16, once, N), 0);
	assert_memory_equal(x, once, sizeof(x));
}
