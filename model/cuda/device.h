/* device.h - the little that a stage asks of a GPU: memory, copies, matrix products, kernels.
 *
 * Everything is queued in order on one stream. Calls without a result note the first failure;
 * device_status reports it. device.cu is the real one; tests have another, on the CPU.
 */
#ifndef MODEL_CUDA_DEVICE_H
#define MODEL_CUDA_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device; /* opaque */

/* -ENODEV: no such device, or no driver. */
int device_open(struct device **out, uint32_t number, struct error *err);
void device_close(struct device *d); /* NULL is allowed */

/* Waits for what is queued. 0, or -EIO after a failure: the device is of no more use. */
int device_status(struct device *d);

/* -ENOMEM says how much is missing. Freed by device_close. */
int device_allocate(struct device *d, size_t size, void **out, struct error *err);
/* Host memory that copies at full speed. Freed by device_close. */
int device_allocate_host(struct device *d, size_t size, void **out, struct error *err);

void device_put(struct device *d, void *to, const void *from_host, size_t size);
void device_get(struct device *d, void *to_host, const void *from, size_t size); /* waits */
void device_copy(struct device *d, void *to, const void *from, size_t size);
void device_clear(struct device *d, void *to, size_t size);

/* Row-major products, fp32; beta 0 overwrites c, 1 adds. nt: a (M, K) b (N, K)^T;
 * nn: a (M, K) b (K, N); tn: a (K, M)^T b (K, N). */
enum device_product { PRODUCT_NT, PRODUCT_NN, PRODUCT_TN };

void device_product(struct device *d, enum device_product kind, size_t m, size_t n, size_t k,
		    const float *a, size_t lda, const float *b, size_t ldb, float beta,
		    float *c, size_t ldc);

/* The kernels of kernels.h: args points to the kernel's struct; shared is in floats. */
enum device_kernel {
	KERNEL_EMBED,
	KERNEL_EMBED_BACKWARD,
	KERNEL_NORM,
	KERNEL_NORM_BACKWARD,
	KERNEL_NORM_WEIGHT,
	KERNEL_ROTATE,
	KERNEL_SWIGLU,
	KERNEL_SWIGLU_BACKWARD,
	KERNEL_CROSS_ENTROPY,
	KERNEL_ATTENTION,
	KERNEL_ATTENTION_DOT,
	KERNEL_ATTENTION_DQ,
	KERNEL_ATTENTION_DKV,
	KERNEL_ADAMW,
	KERNEL_COUNT
};

void device_launch(struct device *d, enum device_kernel kernel, size_t blocks_x,
		   size_t blocks_y, unsigned threads, size_t shared, const void *args);

#ifdef __cplusplus
}
#endif

#endif
