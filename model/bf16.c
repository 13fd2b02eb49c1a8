/* Rounds arrays to bf16 and back with the kernels of the instruction set in use; all sets give
 * the same bits. */
#include "model/bf16.h"

#include "model/vector/vector.h"

void bf16_pack(uint16_t *to, const float *x, size_t n)
{
	vector_ops()->to_bf16(to, x, n, 1, n);
}

void bf16_unpack(float *to, const void *x, size_t n)
{
	vector_ops()->from_bf16(to, x, n);
}

void bf16_round(float *x, size_t n)
{
	uint16_t some[1024];
	const size_t most = sizeof(some) / sizeof(some[0]);

	for (size_t i = 0; i < n; i += most) {
		size_t left = n - i < most ? n - i : most;

		bf16_pack(some, x + i, left);
		bf16_unpack(x + i, some, left);
	}
}
