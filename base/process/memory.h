/* memory.h - the memory of this process. */
#ifndef BASE_PROCESS_MEMORY_H
#define BASE_PROCESS_MEMORY_H

#include <stdint.h>

/* Returns the resident memory of this process in bytes; 0: the kernel does not report it. */
uint64_t memory_resident(void);

#endif
