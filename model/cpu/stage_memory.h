/* stage_memory.h - allocates all the memory of a stage in one piece, and touches it at the start.
 *
 * Linux grants a process more memory than is free, and kills the process when it later touches too
 * much. A stage therefore compares its need with the free memory at the start, and touches all its
 * memory then.
 */
#ifndef MODEL_CPU_STAGE_MEMORY_H
#define MODEL_CPU_STAGE_MEMORY_H

#include <stddef.h>

#include "base/error.h"

enum { STAGE_ALIGN = 64 }; /* alignment in bytes: a cache line, or an AVX-512 register */

/* Allocates size bytes, zeroed and aligned. most: limit in bytes; 0: memory_usable(). -ENOMEM: the
 * error names the bytes needed, free and missing. */
int stage_memory_new(void **out, size_t size, size_t most, struct error *err);
void stage_memory_free(void *arena); /* NULL is allowed */

#endif
