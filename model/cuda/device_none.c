/* The device of programs built without CUDA: there is none. */
#ifndef SKIPPIPE_CUDA

#include "model/cuda/device.h"

#include <errno.h>

int device_open(struct device **out, uint32_t number, struct error *err)
{
	(void)out;
	return error_set(err, -ENODEV, "device cuda:%u: this program was built without CUDA",
			 number);
}

void device_close(struct device *d)
{
	(void)d;
}

/* Nobody gets as far as calling these. */

int device_status(struct device *d)
{
	(void)d;
	return -EIO;
}

int device_allocate(struct device *d, size_t size, void **out, struct error *err)
{
	(void)d;
	(void)size;
	(void)out;
	return error_set(err, -ENODEV, "no device");
}

int device_allocate_host(struct device *d, size_t size, void **out, struct error *err)
{
	return device_allocate(d, size, out, err);
}

void device_put(struct device *d, void *to, const void *from_host, size_t size)
{
	(void)d;
	(void)to;
	(void)from_host;
	(void)size;
}

void device_get(struct device *d, void *to_host, const void *from, size_t size)
{
	device_put(d, to_host, from, size);
}

void device_copy(struct device *d, void *to, const void *from, size_t size)
{
	device_put(d, to, from, size);
}

void device_clear(struct device *d, void *to, size_t size)
{
	device_put(d, to, NULL, size);
}

void device_product(struct device *d, enum device_product kind, size_t m, size_t n, size_t k,
		    const float *a, size_t lda, const float *b, size_t ldb, float beta,
		    float *c, size_t ldc)
{
	(void)d;
	(void)kind;
	(void)m;
	(void)n;
	(void)k;
	(void)a;
	(void)lda;
	(void)b;
	(void)ldb;
	(void)beta;
	(void)c;
	(void)ldc;
}

void device_launch(struct device *d, enum device_kernel kernel, size_t blocks_x,
		   size_t blocks_y, unsigned threads, size_t shared, const void *args)
{
	(void)d;
	(void)kernel;
	(void)blocks_x;
	(void)blocks_y;
	(void)threads;
	(void)shared;
	(void)args;
}

#endif
