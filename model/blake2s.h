/* blake2s.h - BLAKE2s's compression of a block (RFC 7693, section 3.2), for the CPU and the GPU.
 *
 * The including file defines INLINE_, the storage class of a small function, and WORD: a
 * uint32_t, or a vector of these, with one element for each of several messages of equal length.
 * There is no key, and a digest has 32 bytes.
 */
#ifndef MODEL_BLAKE2S_H
#define MODEL_BLAKE2S_H

#include <stdbool.h>
#include <stdint.h>

enum { BLAKE2S_BLOCK = 64, BLAKE2S_WORDS = 8, BLAKE2S_DIGEST = 4 * BLAKE2S_WORDS };

#define BLAKE2S_IV0 0x6a09e667u
#define BLAKE2S_IV1 0xbb67ae85u
#define BLAKE2S_IV2 0x3c6ef372u
#define BLAKE2S_IV3 0xa54ff53au
#define BLAKE2S_IV4 0x510e527fu
#define BLAKE2S_IV5 0x9b05688cu
#define BLAKE2S_IV6 0x1f83d9abu
#define BLAKE2S_IV7 0x5be0cd19u

/* Sets the initial state for no key, a digest of 32 bytes, no salt and no tree. */
INLINE_ void blake2s_begin(WORD h[BLAKE2S_WORDS])
{
	const WORD none = { 0 };

	h[0] = none + (BLAKE2S_IV0 ^ 0x01010000u ^ BLAKE2S_DIGEST);
	h[1] = none + BLAKE2S_IV1;
	h[2] = none + BLAKE2S_IV2;
	h[3] = none + BLAKE2S_IV3;
	h[4] = none + BLAKE2S_IV4;
	h[5] = none + BLAKE2S_IV5;
	h[6] = none + BLAKE2S_IV6;
	h[7] = none + BLAKE2S_IV7;
}

#define BLAKE2S_ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))
#define BLAKE2S_MIX(a, b, c, d, x, y)                  \
	(v[a] = v[a] + v[b] + m[x],                    \
	 v[d] = BLAKE2S_ROTATE(v[d] ^ v[a], 16),       \
	 v[c] = v[c] + v[d],                           \
	 v[b] = BLAKE2S_ROTATE(v[b] ^ v[c], 12),       \
	 v[a] = v[a] + v[b] + m[y],                    \
	 v[d] = BLAKE2S_ROTATE(v[d] ^ v[a], 8),        \
	 v[c] = v[c] + v[d],                           \
	 v[b] = BLAKE2S_ROTATE(v[b] ^ v[c], 7))
#define BLAKE2S_ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15) \
	(BLAKE2S_MIX(0, 4, 8, 12, s0, s1), BLAKE2S_MIX(1, 5, 9, 13, s2, s3),                \
	 BLAKE2S_MIX(2, 6, 10, 14, s4, s5), BLAKE2S_MIX(3, 7, 11, 15, s6, s7),              \
	 BLAKE2S_MIX(0, 5, 10, 15, s8, s9), BLAKE2S_MIX(1, 6, 11, 12, s10, s11),            \
	 BLAKE2S_MIX(2, 7, 8, 13, s12, s13), BLAKE2S_MIX(3, 4, 9, 14, s14, s15))

/* Adds block m to the state. `bytes`: length of the message up to the end of m. The permutations of
 * the words are written out, so that all values stay in registers. */
INLINE_ void blake2s_block(WORD h[BLAKE2S_WORDS], const WORD m[16], uint64_t bytes, bool last)
{
	const WORD none = { 0 };
	WORD v[16] = { h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7],
		       none + BLAKE2S_IV0, none + BLAKE2S_IV1,
		       none + BLAKE2S_IV2, none + BLAKE2S_IV3,
		       none + (BLAKE2S_IV4 ^ (uint32_t)bytes),
		       none + (BLAKE2S_IV5 ^ (uint32_t)(bytes >> 32)),
		       none + (last ? ~BLAKE2S_IV6 : BLAKE2S_IV6), none + BLAKE2S_IV7 };

	BLAKE2S_ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	BLAKE2S_ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
	BLAKE2S_ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);
	BLAKE2S_ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);
	BLAKE2S_ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);
	BLAKE2S_ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);
	BLAKE2S_ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);
	BLAKE2S_ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);
	BLAKE2S_ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);
	BLAKE2S_ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);
	for (int i = 0; i < BLAKE2S_WORDS; i++)
		h[i] ^= v[i] ^ v[i + 8];
}

#undef BLAKE2S_ROUND
#undef BLAKE2S_MIX
#undef BLAKE2S_ROTATE

#endif
