/* product.h - matrix products, by oneDNN, in the calling thread alone.
 *
 * Row-major; ld* are floats between rows. beta 0 overwrites c, 1 adds to it. M, N, K > 0.
 */
#ifndef MODEL_CPU_PRODUCT_H
#define MODEL_CPU_PRODUCT_H

#include <stddef.h>

/* c (M, N) = a (M, K) b (N, K)^T + beta c */
void product_nt(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
		size_t ldb, float beta, float *c, size_t ldc);
/* c (M, N) = a (M, K) b (K, N) + beta c */
void product_nn(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
		size_t ldb, float beta, float *c, size_t ldc);
/* c (M, N) = a (K, M)^T b (K, N) + beta c */
void product_tn(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
		size_t ldb, float beta, float *c, size_t ldc);

#endif
