/* Implements model/cpu/product.h by plain loops, so that the reference in the GPU's check needs no
 * library. */
#include "model/cpu/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool product_has_bf16(void)
{
	return false;
}

int product_limit(const char *set, bool bf16, struct error *err)
{
	(void)set;
	(void)bf16;
	(void)err;
	return 0;
}

int product_check(struct error *err)
{
	(void)err;
	return 0;
}

const char *product_set(bool bf16)
{
	(void)bf16;
	return "v4";
}

void product_describe(bool bf16, char *text, size_t size)
{
	(void)bf16;
	snprintf(text, size, "plain loops");
}

struct product_thread *product_thread_new(size_t a_room, size_t b_room)
{
	(void)a_room;
	(void)b_room;
	return NULL;
}

void product_thread_free(struct product_thread *t)
{
	(void)t;
}

void product_nt(struct product_thread *t, size_t m, size_t n, size_t k, const float *a,
		size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
	(void)t;
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			double sum = beta != 0 ? (double)c[i * ldc + j] : 0;

			for (size_t l = 0; l < k; l++)
				sum += (double)a[i * lda + l] * (double)b[j * ldb + l];
			c[i * ldc + j] = (float)sum;
		}
}

/* c (m, n) += a b: to row i of c, adds each row l of b, multiplied by element (i, l) of a. */
static void add_rows(size_t m, size_t n, size_t k, const float *a, size_t by_row, size_t by_k,
		     const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
	for (size_t i = 0; i < m; i++) {
		if (beta == 0)
			memset(c + i * ldc, 0, n * sizeof(*c));
		for (size_t l = 0; l < k; l++)
			for (size_t j = 0; j < n; j++)
				c[i * ldc + j] += a[i * by_row + l * by_k] * b[l * ldb + j];
	}
}

void product_nn(struct product_thread *t, size_t m, size_t n, size_t k, const float *a,
		size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
	(void)t;
	add_rows(m, n, k, a, lda, 1, b, ldb, beta, c, ldc);
}

void product_tn(struct product_thread *t, size_t m, size_t n, size_t k, const float *a,
		size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
	(void)t;
	add_rows(m, n, k, a, 1, lda, b, ldb, beta, c, ldc);
}
