/* own_memory.c - records a device's allocations, and decides whether a pointer is memory of a
 * device. A stage copies activations to and from its caller's memory. If the CPU accessed a pointer
 * to device memory, the program would crash. */
#include "model/cuda/own_memory.h"

#include <assert.h>

void own_memory_add(struct own_memory *o, void *at, size_t bytes)
{
	assert(o->n < OWN_MEMORY_MOST);
	o->at[o->n] = at;
	o->bytes[o->n++] = bytes;
}

bool own_memory_holds(const struct own_memory *o, const void *p,
		      enum pointer_kind (*look_up)(void *context, const void *p), void *context)
{
	for (int i = 0; i < o->n; i++)
		if ((const char *)p >= (const char *)o->at[i] &&
		    (const char *)p < (const char *)o->at[i] + o->bytes[i])
			return true;
	return look_up(context, p) != POINTER_HOST;
}
