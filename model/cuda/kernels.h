/* kernels.h - the GPU's kernels, written in the common subset of C and CUDA C++.
 *
 * device.cu compiles them for the GPU. A test compiles them as C and runs each block's threads
 * in turn between barriers, so that the arithmetic is checked on machines without a GPU too. A
 * kernel has one argument, a struct by value; every sum has a fixed order, so results are the same
 * from run to run. All arrays are row-major, in device memory.
 *
 * The including file defines these macros, and those that adamw_element.h and kernels_flash.h name:
 *
 *     KERNEL(name, arguments)     begins a kernel; arguments: a struct
 *     DEVICE                      begins a function that kernels call
 *     THREAD, THREADS             index of the thread in its block; threads of a block
 *     BLOCK_X, BLOCK_Y, BLOCKS_X  index of the block; number of blocks side by side
 *     BARRIER()                   waits for all threads of the block
 *     SHARED                      the block's shared memory, floats
 *     BITS(f), FROM_BITS(u)       a float's bits as uint32_t, and back
 *     CLEAR_EIGHT(to)             clears eight uint16_t
 *     LOAD_SIXTEEN(u, from)       loads 16 bytes into four uint32_t
 *     STORE_SIXTEEN(to, u)        stores them
 *
 * CLEAR_EIGHT, LOAD_SIXTEEN and STORE_SIXTEEN need addresses that are multiples of 16. */

#include "model/adamw_element.h"
#define WORD uint32_t
#include "model/blake2s.h"
#undef WORD
#include "model/cuda/kernel_args.h"

/* Returns the sum of v over all threads of the block. Overwrites THREADS floats of SHARED, which
 * the caller may use again after the call. */
DEVICE float block_sum(float v)
{
	float sum;

	SHARED[THREAD] = v;
	BARRIER();
	for (unsigned half = THREADS / 2; half > 0; half /= 2) {
		if (THREAD < half)
			SHARED[THREAD] += SHARED[THREAD + half];
		BARRIER();
	}
	sum = SHARED[0];
	BARRIER();
	return sum;
}

DEVICE float block_most(float v)
{
	float most;

	SHARED[THREAD] = v;
	BARRIER();
	for (unsigned half = THREADS / 2; half > 0; half /= 2) {
		if (THREAD < half)
			SHARED[THREAD] = fmaxf(SHARED[THREAD], SHARED[THREAD + half]);
		BARRIER();
	}
	most = SHARED[0];
	BARRIER();
	return most;
}

/* Rounds a float to bf16, its upper half: to nearest, ties to even. NaN stays NaN. */
DEVICE uint16_t to_bf16(float x)
{
	uint32_t bits = BITS(x);

	if ((bits & 0x7fffffff) > 0x7f800000)
		return 0x7fc0;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

DEVICE float from_bf16(uint16_t x)
{
	return FROM_BITS((uint32_t)x << 16);
}

/* ---- reading and writing eight numbers at once, at a multiple of 16 bytes ---- */

DEVICE bool whole_eights(unsigned n)
{
	return n % 8 == 0;
}

DEVICE bool in_place(const void *p)
{
	return (uintptr_t)p % 16 == 0;
}

DEVICE void get_eight_float(const float *from, float to[8])
{
	uint32_t words[8];

	LOAD_SIXTEEN(words, from);
	LOAD_SIXTEEN(words + 4, from + 4);
	UNROLL
	for (unsigned e = 0; e < 8; e++)
		to[e] = FROM_BITS(words[e]);
}

DEVICE void put_eight_float(float *to, const float from[8])
{
	uint32_t words[8];

	UNROLL
	for (unsigned e = 0; e < 8; e++)
		words[e] = BITS(from[e]);
	STORE_SIXTEEN(to, words);
	STORE_SIXTEEN(to + 4, words + 4);
}

DEVICE void get_eight_bf16(const uint16_t *from, float to[8])
{
	uint32_t words[4];

	LOAD_SIXTEEN(words, from);
	UNROLL
	for (unsigned e = 0; e < 4; e++) {
		to[2 * e] = FROM_BITS(words[e] << 16);
		to[2 * e + 1] = FROM_BITS(words[e] & 0xffff0000);
	}
}

DEVICE void put_eight_bf16(uint16_t *to, const float from[8])
{
	uint32_t words[4];

	UNROLL
	for (unsigned e = 0; e < 4; e++)
		words[e] = PAIR(from[2 * e], from[2 * e + 1]);
	STORE_SIXTEEN(to, words);
}

/* ---- kernels whose reals may be float or bf16 ---- */

#define REAL float
#define GET(x) (x)
#define PUT(x) (x)
#define GET_EIGHT(from, to) get_eight_float(from, to)
#define PUT_EIGHT(to, from) put_eight_float(to, from)
#define TYPED(name) name##_float
#include "model/cuda/kernels_real.h"
#undef REAL
#undef GET
#undef PUT
#undef GET_EIGHT
#undef PUT_EIGHT
#undef TYPED

#define REAL uint16_t
#define GET(x) from_bf16(x)
#define PUT(x) to_bf16(x)
#define GET_EIGHT(from, to) get_eight_bf16(from, to)
#define PUT_EIGHT(to, from) put_eight_bf16(to, from)
#define TYPED(name) name##_bf16
#include "model/cuda/kernels_real.h"
#undef REAL
#undef GET
#undef PUT
#undef GET_EIGHT
#undef PUT_EIGHT
#undef TYPED

#include "model/cuda/kernels_attention.h"
#include "model/cuda/kernels_flash.h"
#include "model/cuda/kernels_codec.h"

KERNEL(norm_sum, norm_sum_args)
{
	enum { EACH = NORM_PARTS / GROUPS };
	unsigned column = BLOCK_X * COLUMNS + THREAD % COLUMNS, first = THREAD / COLUMNS * EACH;
	float sum = 0;

	UNROLL
	for (unsigned i = first; i < first + EACH; i++)
		if (column < a.n && i < a.count)
			sum += a.parts[(size_t)i * a.n + column];
	SHARED[THREAD] = sum;
	BARRIER();
	if (THREAD >= COLUMNS || column >= a.n)
		return;
	for (unsigned g = 1; g < GROUPS; g++)
		sum += SHARED[g * COLUMNS + THREAD];
	a.dw[column] += sum;
}

KERNEL(embed, embed_args)
{
	const float *from = a.table + (size_t)a.tokens[BLOCK_X] * a.c;

	for (unsigned i = THREAD; i < a.c; i += THREADS)
		a.out[(size_t)BLOCK_X * a.c + i] = from[i];
}

KERNEL(embed_backward, embed_backward_args)
{
	unsigned i = BLOCK_Y * THREADS + THREAD, r = BLOCK_X;
	int32_t token = a.tokens[a.order[BLOCK_X]];
	float sum = 0;

	if (i >= a.c || (BLOCK_X > 0 && a.tokens[a.order[BLOCK_X - 1]] == token))
		return;
	/* Adds eight rows at a time while all eight belong to this token, so that their loads
	 * overlap. */
	while (r + 8 <= a.rows && a.tokens[a.order[r + 7]] == token)
		for (unsigned end = r + 8; r < end; r++)
			sum += a.dx[(size_t)a.order[r] * a.c + i];
	for (; r < a.rows && a.tokens[a.order[r]] == token; r++)
		sum += a.dx[(size_t)a.order[r] * a.c + i];
	a.gradient[(size_t)token * a.c + i] += sum;
}

KERNEL(adamw, adamw_args)
{
	size_t i = (size_t)BLOCK_X * THREADS + THREAD;

	if (i < a.n)
		adamw_element(&a.f, &a.w[i], &a.m[i], &a.v[i], a.g[i]);
}

KERNEL(hash, hash_args)
{
	size_t leaf = (size_t)BLOCK_X * THREADS + THREAD, at = leaf * (HASH_LEAF / sizeof(float));
	size_t end = a.n - at < HASH_LEAF / sizeof(float) ? a.n : at + HASH_LEAF / sizeof(float);
	uint64_t bytes = 0;
	uint32_t h[BLAKE2S_WORDS], m[16];

	if (at >= a.n)
		return;
	blake2s_begin(h);
	while (at < end) {
		size_t left = end - at;

		for (unsigned w = 0; w < 16; w++)
			m[w] = w < left ? BITS(a.x[at + w]) : 0;
		at += 16;
		bytes += 4 * (left < 16 ? left : 16);
		blake2s_block(h, m, bytes, at >= end);
	}
	for (unsigned w = 0; w < BLAKE2S_WORDS; w++)
		a.to[leaf * BLAKE2S_WORDS + w] = h[w];
}

KERNEL(squares, squares_args)
{
	size_t number = (size_t)BLOCK_X * THREADS + THREAD;
	size_t at = number / SQUARES_LANES * SQUARES_BLOCK;
	size_t end = at + SQUARES_BLOCK < a.n ? at + SQUARES_BLOCK : a.n;
	double *sums = (double *)(void *)SHARED, sum = 0;

	for (size_t i = at + number % SQUARES_LANES; i < end; i += SQUARES_LANES)
		sum += (double)a.x[i] * (double)a.x[i];
	sums[THREAD] = sum;
	BARRIER();
	for (unsigned span = 1; span < SQUARES_LANES; span *= 2) {
		if (THREAD % (2 * span) == 0)
			sums[THREAD] += sums[THREAD + span];
		BARRIER();
	}
	if (THREAD % SQUARES_LANES == 0 && at < a.n)
		a.to[number / SQUARES_LANES] = sums[THREAD];
}

KERNEL(add, add_args)
{
	size_t i = (size_t)BLOCK_X * THREADS + THREAD;

	if (i < a.n)
		a.to[i] = adamw_tidy(ADD(a.to[i], a.from[i]));
}
