/* own_memory.h - records a device's allocations, and decides whether a pointer is memory of a
 * device. Plain C, so that the tests need no GPU. */
#ifndef MODEL_CUDA_OWN_MEMORY_H
#define MODEL_CUDA_OWN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

enum { OWN_MEMORY_MOST = 16 };

struct own_memory {
	void *at[OWN_MEMORY_MOST]; /* where each of the n allocations begins, borrowed */
	size_t bytes[OWN_MEMORY_MOST];
	int n;
};

enum pointer_kind { POINTER_HOST, POINTER_DEVICE, POINTER_UNKNOWN /* POINTER_UNKNOWN: the driver has
	 * failed */ };

/* Adds an allocation. The caller makes sure that there is room (n < OWN_MEMORY_MOST). */
void own_memory_add(struct own_memory *o, void *at, size_t bytes);
/* Returns true if the caller must not read or write at p, because p is or may be in a device's
 * memory. Memory that was added is recognised without look_up. For any other pointer the function
 * calls look_up (context), which asks the driver. If the driver has failed, returns true, because
 * the pointer may belong to a device. */
bool own_memory_holds(const struct own_memory *o, const void *p,
		      enum pointer_kind (*look_up)(void *context, const void *p), void *context);

#endif
