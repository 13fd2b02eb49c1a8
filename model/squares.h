/* squares.h - the sum of squares of an array, with the same bits on every device.
 *
 * The array is cut into blocks of SQUARES_BLOCK numbers, the last of which may be shorter. A block
 * has SQUARES_LANES running sums, each over every eighth number, which are then added in pairs:
 *
 *     ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
 *
 * The sums of the blocks are added in ascending order. All sums are doubles. The product of two
 * floats is exact in double, so a fused multiply-add changes nothing. Several threads, and a GPU,
 * can compute the blocks in any order.
 */
#ifndef MODEL_SQUARES_H
#define MODEL_SQUARES_H

#include <stddef.h>

enum { SQUARES_BLOCK = 1024, SQUARES_LANES = 8 };

/* Returns the number of blocks of n numbers. */
static inline size_t squares_blocks(size_t n)
{
	return (n + SQUARES_BLOCK - 1) / SQUARES_BLOCK;
}

/* Computes the sum of each block of x (n): sums (squares_blocks(n)). */
void squares_of_blocks(double *sums, const float *x, size_t n);
/* Adds the sums of all blocks. */
double squares_total(const double *sums, size_t blocks);
/* Returns the sum of squares of x (n). */
double squares_sum(const float *x, size_t n);

#endif
