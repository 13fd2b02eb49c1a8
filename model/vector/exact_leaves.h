/* exact_leaves.h - digests of a hash's leaves (model/hash.h), with EXACT_LANES leaves computed side
 * by side: each lane of a vector belongs to another leaf. Included once by each exact_*.c.
 *
 * A vector that is read from memory has consecutive words of one leaf. The vectors are therefore
 * transposed: n vectors, one from each leaf, form a square of n rows of n words. Each of log2(n)
 * rounds interleaves row i with row i + n/2.
 */
#include <string.h>

#include "model/vector/exact.h"
#include "model/hash.h"

/* This warning is about vectors in calls, but here vectors pass only between inlined functions. */
#pragma GCC diagnostic ignored "-Wpsabi"

typedef uint32_t lanes __attribute__((vector_size(4 * EXACT_LANES)));

#undef INLINE_
#define INLINE_ static inline __attribute__((always_inline))
#define WORD lanes

#include "model/blake2s.h"

#if EXACT_LANES == 4
#define FIRST_HALVES(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define SECOND_HALVES(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#elif EXACT_LANES == 8
#define FIRST_HALVES(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define SECOND_HALVES(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define FIRST_HALVES(a, b) \
	__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define SECOND_HALVES(a, b) \
	__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

INLINE_ void turn(lanes rows[EXACT_LANES])
{
	lanes next[EXACT_LANES];

	for (int round = 1; round < EXACT_LANES; round *= 2) {
		for (int i = 0; i < EXACT_LANES / 2; i++) {
			next[2 * i] = FIRST_HALVES(rows[i], rows[i + EXACT_LANES / 2]);
			next[2 * i + 1] = SECOND_HALVES(rows[i], rows[i + EXACT_LANES / 2]);
		}
		memcpy(rows, next, sizeof(next));
	}
}

/* Loads the block at offset `at` of each leaf, transposed so that a lane has the words of one
 * leaf. */
INLINE_ void load_blocks(lanes m[16], const unsigned char *const leaf[EXACT_LANES], size_t at)
{
	for (int w = 0; w < 16; w += EXACT_LANES) {
		for (int l = 0; l < EXACT_LANES; l++)
			memcpy(&m[w + l], leaf[l] + at + 4 * w, sizeof(m[0]));
		turn(m + w);
	}
}

/* Computes the digests of leaves that have the same length > 0. h: receives the digests, word by
 * word. */
static void digest_leaves(lanes h[8], const unsigned char *const leaf[EXACT_LANES], size_t bytes)
{
	size_t last = (bytes - 1) / BLAKE2S_BLOCK * BLAKE2S_BLOCK;
	unsigned char padded[EXACT_LANES][BLAKE2S_BLOCK] = { { 0 } };
	const unsigned char *end[EXACT_LANES];
	lanes m[16];

	blake2s_begin(h);
	for (size_t at = 0; at < last; at += BLAKE2S_BLOCK) {
		load_blocks(m, leaf, at);
		blake2s_block(h, m, at + BLAKE2S_BLOCK, false);
	}
	for (int l = 0; l < EXACT_LANES; l++) {
		memcpy(padded[l], leaf[l] + last, bytes - last);
		end[l] = padded[l];
	}
	load_blocks(m, end, 0);
	blake2s_block(h, m, bytes, true);
}

/* If there are fewer leaves than lanes, the other lanes repeat the first leaf, and their digests
 * are dropped. */
void EXACT(leaves)(unsigned char *digests, const unsigned char *data, size_t bytes)
{
	const unsigned char *leaf[EXACT_LANES];
	lanes h[8];

	while (bytes > 0) {
		size_t n = bytes / HASH_LEAF < EXACT_LANES ? bytes / HASH_LEAF : EXACT_LANES;
		size_t length = n ? HASH_LEAF : bytes;

		n = n ? n : 1;
		for (size_t l = 0; l < EXACT_LANES; l++)
			leaf[l] = data + (l < n ? l : 0) * length;
		digest_leaves(h, leaf, length);
		for (size_t l = 0; l < n; l++, digests += HASH_DIGEST)
			for (size_t w = 0; w < BLAKE2S_WORDS; w++) {
				uint32_t word = h[w][l];

				memcpy(digests + 4 * w, &word, sizeof(word));
			}
		data += n * length;
		bytes -= n * length;
	}
}
