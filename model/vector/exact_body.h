/* exact_body.h - the operations of exact.h, included once by each exact_*.c, which defines
 * EXACT(name). Loops that compilers vectorise. */
#include <math.h>
#include <string.h>

#include "model/vector/exact.h"

#define INLINE_ static inline
#define MUL(a, b) ((a) * (b))
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define DIV(a, b) ((a) / (b))
#define SQRT(a) sqrtf(a)
#define NOT_A_NUMBER __builtin_nanf("")

#include "model/adamw_element.h"

void EXACT(add)(float *to, const float *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = adamw_tidy(to[i] + from[i]);
}

void EXACT(adamw)(float *w, float *m, float *v, const float *g, size_t n,
		  const struct adamw_factors *f)
{
	/* With this copy of the factors the compiler knows that no array overlaps them. */
	struct adamw_factors h = *f;

	for (size_t i = 0; i < n; i++)
		adamw_element(&h, &w[i], &m[i], &v[i], g[i]);
}

void EXACT(to_bf16)(uint16_t *to, const float *x, size_t stride, size_t rows, size_t n)
{
	for (size_t r = 0; r < rows; r++) {
		const float *restrict from = x + r * stride;
		uint16_t *restrict at = to + r * n;

		for (size_t i = 0; i < n; i++) {
			uint32_t bits, rounded;

			memcpy(&bits, &from[i], sizeof(bits));
			rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
			at[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded);
		}
	}
}
