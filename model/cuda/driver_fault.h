/* driver_fault.h - the CUDA runtime's error codes at the first contact with a GPU: whether the
 * CPU may compute instead, and what the operator can do.
 *
 * The CPU computes instead only if there is nothing to repair, because there is no GPU or no
 * driver. An installed GPU that does not work is an error, because its owner expects the GPU to
 * compute.
 */
#ifndef MODEL_CUDA_DRIVER_FAULT_H
#define MODEL_CUDA_DRIVER_FAULT_H

#include <stdint.h>

#include "base/error.h"

/* The runtime's codes (driver_types.h), which are the same since CUDA 10.1. */
enum {
	DRIVER_OK = 0,
	DRIVER_CANNOT_START = 3,
	DRIVER_STUB = 34,
	DRIVER_TOO_OLD = 35, /* the runtime also returns this if there is no driver */
	DRIVER_DEVICE_BUSY = 46,
	DRIVER_NO_DEVICE = 100,
	DRIVER_NOT_READY = 802,
	DRIVER_MISMATCH = 803,
	DRIVER_NO_COMPATIBILITY = 804,
	DRIVER_UNKNOWN = 999
};

/* Explains the failure of a call. code: the call's code, or DRIVER_OK if the machine has no device.
 * text: the runtime's words for the code. driver, program: CUDA versions as 1000 * major + 10 *
 * minor; driver is 0 if there is no driver. Returns -ENODEV (the CPU may compute instead) or -EIO,
 * with the remedy in *err. */
int driver_fault(int code, const char *text, int driver, int program, uint32_t number,
		 struct error *err);

#endif
