/* kernel_check.h - compares every kernel of a GPU, and its products, with plain loops in double. */
#ifndef MODEL_TESTS_KERNEL_CHECK_H
#define MODEL_TESTS_KERNEL_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kernel_sizes {
	uint32_t rows, width;   /* sizes of the kernels that work by rows */
	uint32_t batch, length; /* number of sequences B and length T in attention */
	uint32_t heads, kv_heads, head_size;
	size_t shared; /* floats of shared memory of a block; 0: the device's limit */
};

/* Receives the relative error of each result, in the L2 norm, and the allowed error. */
typedef void kernel_report(const char *kernel, bool bf16, double error, double most);

/* Checks device 0 of device.h. -ENODEV: there is no device; -ENOMEM, -EIO: the device failed. */
int kernel_check(const struct kernel_sizes *s, bool bf16, kernel_report *report,
		 struct error *err);

#endif
