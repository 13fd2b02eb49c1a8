/* Implements device.h in programs built without CUDA: device_open fails, so nothing else is ever
 * called. */
#ifndef SKIPPIPE_CUDA

#include "model/cuda/device.h"

#include <errno.h>

uint32_t device_count(void)
{
	return 0;
}

int device_look(uint32_t number, char *text, size_t size, uint64_t *free_bytes,
		struct error *err)
{
	(void)text;
	(void)size;
	(void)free_bytes;
	return device_open(NULL, number, false, err);
}

int device_open(struct device **out, uint32_t number, bool products, struct error *err)
{
	(void)products;
	(void)out;
	return error_set(err, -ENODEV, "device cuda:%u: this program was built without CUDA",
			 number);
}

void device_close(struct device *d)
{
	(void)d;
}

bool device_compiles(uint32_t number)
{
	(void)number;
	return false;
}

void device_bus_id(uint32_t number, char *out, size_t size)
{
	(void)number;
	(void)size;
	out[0] = '\0';
}

/* ---- functions that are never called, because no device can be opened ---- */

int device_status(struct device *d)
{
	(void)d;
	return -EIO;
}

void device_fail(struct device *d, const char *what, const char *why)
{
	(void)d;
	(void)what;
	(void)why;
}

const char *device_failure(const struct device *d)
{
	(void)d;
	return "";
}

size_t device_shared_most(const struct device *d)
{
	(void)d;
	return 0;
}

size_t device_cache(const struct device *d)
{
	(void)d;
	return 0;
}

void device_limit_shared(struct device *d, size_t floats)
{
	(void)d;
	(void)floats;
}

int device_allocate(struct device *d, size_t size, size_t spare, void **out, struct error *err)
{
	(void)d;
	(void)size;
	(void)spare;
	(void)out;
	return error_set(err, -ENODEV, "no device");
}

int device_allocate_host(struct device *d, size_t size, void **out, struct error *err)
{
	return device_allocate(d, size, 0, out, err);
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

void device_put_beside(struct device *d, void *to, const void *from_host, size_t size)
{
	device_put(d, to, from_host, size);
}

void device_get_beside(struct device *d, void *to_host, const void *from, size_t size)
{
	device_put(d, to_host, from, size);
}

void device_order(struct device *d, enum device_stream earlier, enum device_stream later)
{
	(void)d;
	(void)earlier;
	(void)later;
}

void device_mark(struct device *d, enum device_stream stream, unsigned mark)
{
	(void)d;
	(void)stream;
	(void)mark;
}

int device_await(struct device *d, unsigned mark, struct error *err)
{
	(void)d;
	(void)mark;
	return error_set(err, -EIO, "no device");
}

bool device_holds(struct device *d, const void *p)
{
	(void)d;
	(void)p;
	return false;
}

void device_copy(struct device *d, void *to, const void *from, size_t size)
{
	device_put(d, to, from, size);
}

void device_clear(struct device *d, void *to, size_t size)
{
	device_put(d, to, NULL, size);
}

void device_product(struct device *d, const struct device_product *p)
{
	(void)d;
	(void)p;
}

void device_launch(struct device *d, enum device_kernel kernel, bool bf16, size_t blocks_x,
		   size_t blocks_y, unsigned threads, size_t shared, const void *args)
{
	(void)d;
	(void)kernel;
	(void)bf16;
	(void)blocks_x;
	(void)blocks_y;
	(void)threads;
	(void)shared;
	(void)args;
}

unsigned device_resident(struct device *d, enum device_kernel kernel, bool bf16, unsigned threads,
			 size_t shared)
{
	(void)d;
	(void)kernel;
	(void)bf16;
	(void)threads;
	(void)shared;
	return 0;
}

int device_plan_attention(struct device *d, const struct cudnn_shape *shape, size_t *bytes,
			  struct error *err)
{
	(void)shape;
	(void)bytes;
	return device_open(&d, 0, false, err);
}

void device_attention(struct device *d, enum cudnn_pass pass, const struct cudnn_arrays *a)
{
	(void)d;
	(void)pass;
	(void)a;
}

void device_record(struct device *d)
{
	(void)d;
}

struct device_graph *device_recorded(struct device *d)
{
	(void)d;
	return NULL;
}

void device_replay(struct device *d, struct device_graph *g)
{
	(void)d;
	(void)g;
}

void device_graph_free(struct device_graph *g)
{
	(void)g;
}

#endif
