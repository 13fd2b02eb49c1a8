/* exact.h - the operations that replicas make between a gradient's sum and the next weights, with
 * the same bits on every machine.
 *
 * One source (exact_body.h) is compiled for several instruction sets, like vector_body.h, but the
 * compiler is not allowed to contract a multiplication and an addition. With every instruction set,
 * and on a GPU too (cuda/kernels.h), operations therefore have a fixed order, and each result is
 * rounded correctly. tests/exact_test.c compares the results of all sets and of the GPU's kernels.
 * Callers find the operations in vector.h's table.
 */
#ifndef MODEL_CPU_EXACT_H
#define MODEL_CPU_EXACT_H

#include <stddef.h>
#include <stdint.h>

#include "model/adamw.h"

/* How numbers are divided into groups and coded (codec.h). */
struct quantiser {
	unsigned bits;              /* bits of a code: 8, 6 or 4 */
	size_t group;               /* size of a group: 32, or 128; with 4 bits always 128 */
	const unsigned char *means; /* (channels) means in bf16; NULL: none */
	size_t channels;
};

#define EXACT_DECLARE(set) \
	void exact_add_##set(float *to, const float *from, size_t n); \
	void exact_adamw_##set(float *w, float *m, float *v, const float *g, size_t n, \
			       const struct adamw_factors *f); \
	void exact_to_bf16_##set(uint16_t *to, const float *x, size_t stride, size_t rows, \
				 size_t n); \
	void exact_leaves_##set(unsigned char *digests, const unsigned char *data, size_t bytes); \
	void exact_quantise_##set(unsigned char *to, const float *x, size_t n, \
				  const struct quantiser *q); \
	void exact_dequantise_##set(float *to, const unsigned char *from, size_t n, \
				    const struct quantiser *q); \
	void exact_channel_means_##set(unsigned char *to, const float *x, size_t rows, size_t n);

EXACT_DECLARE(plain)
EXACT_DECLARE(v3)
EXACT_DECLARE(v4)

#endif
