extern "C" {
#include "base/error.h" /* C's, and not written for C++ */
}

#include "model/cuda/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cublas_v2.h>
#include <cuda_runtime.h>

#define DEVICE static __device__ __forceinline__
#define KERNEL(name, args) __global__ void name##_kernel(struct args a)
#define THREAD threadIdx.x
#define THREADS blockDim.x
#define BLOCK_X blockIdx.x
#define BLOCK_Y blockIdx.y
#define BARRIER() __syncthreads()
#define SHARED block_shared

extern __shared__ float block_shared[];

#include "model/cuda/kernels.h"

enum { ALLOCATIONS = 16 };

struct device {
	cudaStream_t stream;
	cublasHandle_t cublas;
	void *memory[ALLOCATIONS], *host[ALLOCATIONS];
	int n_memory, n_host;
	bool failed;
};

static void note(struct device *d, cudaError_t e)
{
	if (e != cudaSuccess)
		d->failed = true;
}

template <typename A>
static void start(struct device *d, void (*kernel)(A), dim3 blocks, unsigned threads,
		  size_t shared, const void *args)
{
	size_t bytes = shared * sizeof(float);

	/* More than 48 KiB has to be asked for. */
	if (bytes > 48 << 10)
		note(d,
		     cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
					  (int)bytes));
	kernel<<<blocks, threads, bytes, d->stream>>>(*(const A *)args);
	note(d, cudaGetLastError());
}

extern "C" {

int device_open(struct device **out, uint32_t number, struct error *err)
{
	struct device *d;
	int n = 0;
	cudaError_t e = cudaGetDeviceCount(&n);

	if (e != cudaSuccess)
		return error_set(err, -ENODEV, "device cuda:%u: %s", number,
				 cudaGetErrorString(e));
	if (number >= (uint32_t)n)
		return error_set(err, -ENODEV, "device cuda:%u: there are %d", number, n);
	d = (struct device *)calloc(1, sizeof(*d));
	if (!d)
		return error_set(err, -ENOMEM, "no memory for a device");
	note(d, cudaSetDevice((int)number));
	note(d, cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking));
	if (cublasCreate(&d->cublas) != CUBLAS_STATUS_SUCCESS ||
	    cublasSetStream(d->cublas, d->stream) != CUBLAS_STATUS_SUCCESS)
		d->failed = true;
	if (d->failed) {
		device_close(d);
		return error_set(err, -ENODEV, "device cuda:%u cannot be used", number);
	}
	*out = d;
	return 0;
}

void device_close(struct device *d)
{
	if (!d)
		return;
	for (int i = 0; i < d->n_memory; i++)
		cudaFree(d->memory[i]);
	for (int i = 0; i < d->n_host; i++)
		cudaFreeHost(d->host[i]);
	if (d->cublas)
		cublasDestroy(d->cublas);
	if (d->stream)
		cudaStreamDestroy(d->stream);
	free(d);
}

int device_status(struct device *d)
{
	note(d, cudaStreamSynchronize(d->stream));
	return d->failed ? -EIO : 0;
}

int device_allocate(struct device *d, size_t size, void **out, struct error *err)
{
	size_t left = 0, all = 0;

	if (d->n_memory == ALLOCATIONS || cudaMalloc(out, size) != cudaSuccess) {
		cudaGetLastError();
		cudaMemGetInfo(&left, &all);
		return error_set(err, -ENOMEM,
				 "the device has %.1f of %.1f MiB free, %.1f MiB less than are "
				 "wanted",
				 (double)left / 0x1p20, (double)all / 0x1p20,
				 ((double)size - (double)left) / 0x1p20);
	}
	d->memory[d->n_memory++] = *out;
	return 0;
}

int device_allocate_host(struct device *d, size_t size, void **out, struct error *err)
{
	if (d->n_host == ALLOCATIONS || cudaMallocHost(out, size) != cudaSuccess) {
		cudaGetLastError();
		return error_set(err, -ENOMEM, "no %.1f MiB of pinned host memory",
				 (double)size / 0x1p20);
	}
	d->host[d->n_host++] = *out;
	return 0;
}

void device_put(struct device *d, void *to, const void *from_host, size_t size)
{
	note(d, cudaMemcpyAsync(to, from_host, size, cudaMemcpyHostToDevice, d->stream));
}

void device_get(struct device *d, void *to_host, const void *from, size_t size)
{
	note(d, cudaMemcpyAsync(to_host, from, size, cudaMemcpyDeviceToHost, d->stream));
	note(d, cudaStreamSynchronize(d->stream));
}

void device_copy(struct device *d, void *to, const void *from, size_t size)
{
	note(d, cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, d->stream));
}

void device_clear(struct device *d, void *to, size_t size)
{
	note(d, cudaMemsetAsync(to, 0, size, d->stream));
}

/* cuBLAS counts columns first: a row-major product is the product of the transposes, the other
 * way round. */
void device_product(struct device *d, enum device_product kind, size_t m, size_t n, size_t k,
		    const float *a, size_t lda, const float *b, size_t ldb, float beta,
		    float *c, size_t ldc)
{
	cublasOperation_t first = kind == PRODUCT_NT ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasOperation_t second = kind == PRODUCT_TN ? CUBLAS_OP_T : CUBLAS_OP_N;
	float one = 1;

	if (cublasSgemm(d->cublas, first, second, (int)n, (int)m, (int)k, &one, b, (int)ldb, a,
			(int)lda, &beta, c, (int)ldc) != CUBLAS_STATUS_SUCCESS)
		d->failed = true;
}

void device_launch(struct device *d, enum device_kernel kernel, size_t blocks_x,
		   size_t blocks_y, unsigned threads, size_t shared, const void *args)
{
	dim3 blocks((unsigned)blocks_x, (unsigned)blocks_y);

	switch (kernel) {
#define CASE(NUMBER, name) \
	case NUMBER: \
		start(d, name##_kernel, blocks, threads, shared, args); \
		break
		CASE(KERNEL_EMBED, embed);
		CASE(KERNEL_EMBED_BACKWARD, embed_backward);
		CASE(KERNEL_NORM, norm);
		CASE(KERNEL_NORM_BACKWARD, norm_backward);
		CASE(KERNEL_NORM_WEIGHT, norm_weight);
		CASE(KERNEL_ROTATE, rotate);
		CASE(KERNEL_SWIGLU, swiglu);
		CASE(KERNEL_SWIGLU_BACKWARD, swiglu_backward);
		CASE(KERNEL_CROSS_ENTROPY, cross_entropy);
		CASE(KERNEL_ATTENTION, attention);
		CASE(KERNEL_ATTENTION_DOT, attention_dot);
		CASE(KERNEL_ATTENTION_DQ, attention_dq);
		CASE(KERNEL_ATTENTION_DKV, attention_dkv);
		CASE(KERNEL_ADAMW, adamw);
#undef CASE
	case KERNEL_COUNT:
		break;
	}
}

} /* extern "C" */
