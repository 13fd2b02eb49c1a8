/* product.h - matrix products by oneDNN, in the calling thread alone.
 *
 * Row-major; ld*: floats from the beginning of one row to the beginning of the next. beta 0
 * overwrites c, 1 adds to c. M, N, K > 0. With a product_thread, the factors are rounded to bf16
 * and their products summed in fp32. oneDNN's matmul primitives for such products are made once for
 * each shape and kept. Without a product_thread (NULL), everything is in fp32.
 */
#ifndef MODEL_CPU_PRODUCT_H
#define MODEL_CPU_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct product_thread; /* opaque: the primitives and buffers of one thread for products in bf16 */

bool product_has_bf16(void); /* returns true if this CPU has instructions for products in bf16 */
/* Limits oneDNN to an instruction set (device_name.h) for the whole process. Without a limit,
 * oneDNN uses the best set that the CPU has. oneDNN accepts a limit only before its first use.
 * -EBUSY: oneDNN already uses another set. -ENOTSUP: this CPU lacks the set. */
int product_limit(const char *set, bool bf16, struct error *err);
/* Computes a small product. -EPERM: the system does not let oneDNN run the code that it generates,
 * so every other product would fail too. -ENOMEM. */
int product_check(struct error *err);
const char *product_set(bool bf16); /* returns the instruction set that products use now */
/* Prints the library's name and version, and everything else that the order of its sums depends
 * on. */
void product_describe(bool bf16, char *text, size_t size);
/* Makes the memory for products whose factors a and b have at most a_room and b_room numbers,
 * respectively. NULL if memory runs out. */
struct product_thread *product_thread_new(size_t a_room, size_t b_room);
void product_thread_free(struct product_thread *t); /* NULL is allowed */

/* c (M, N) = a (M, K) b (N, K)^T + beta c */
void product_nt(struct product_thread *t, size_t m, size_t n, size_t k, const float *a,
		size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc);
/* c (M, N) = a (M, K) b (K, N) + beta c */
void product_nn(struct product_thread *t, size_t m, size_t n, size_t k, const float *a,
		size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc);
/* c (M, N) = a (K, M)^T b (K, N) + beta c */
void product_tn(struct product_thread *t, size_t m, size_t n, size_t k, const float *a,
		size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc);

#endif
