/* Adds the squares of an array on the CPU, in the order of squares.h. The order is fixed, so that
 * threads and GPUs get the same bits. */
#include "model/squares.h"

#include <string.h>

static double block_sum(const float *x, size_t n)
{
	typedef double doubles __attribute__((vector_size(SQUARES_LANES * sizeof(double))));
	typedef float floats __attribute__((vector_size(SQUARES_LANES * sizeof(float))));
	doubles sums = { 0 };
	double s[SQUARES_LANES];
	size_t i = 0;

	for (; i + SQUARES_LANES <= n; i += SQUARES_LANES) {
		floats some;
		doubles y;

		memcpy(&some, x + i, sizeof(some));
		y = __builtin_convertvector(some, doubles);
		sums += y * y;
	}
	memcpy(s, &sums, sizeof(s));
	for (; i < n; i++)
		s[i % SQUARES_LANES] += (double)x[i] * (double)x[i];
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

void squares_of_blocks(double *sums, const float *x, size_t n)
{
	for (size_t at = 0; at < n; at += SQUARES_BLOCK)
		*sums++ = block_sum(x + at, n - at < SQUARES_BLOCK ? n - at : SQUARES_BLOCK);
}

double squares_total(const double *sums, size_t blocks)
{
	double total = 0;

	for (size_t b = 0; b < blocks; b++)
		total += sums[b];
	return total;
}

double squares_sum(const float *x, size_t n)
{
	double total = 0, sum;

	for (size_t at = 0; at < n; at += SQUARES_BLOCK) {
		squares_of_blocks(&sum, x + at, n - at < SQUARES_BLOCK ? n - at : SQUARES_BLOCK);
		total += sum;
	}
	return total;
}
