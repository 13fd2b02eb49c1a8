/* once.h - a set of numbers: what was seen before. */
#ifndef CONTROLLER_ONCE_H
#define CONTROLLER_ONCE_H

#include <stdbool.h>
#include <stdint.h>

struct once {
	uint64_t *slots; /* (room) open addressing; 0: free */
	uint32_t n, room;
};

/* True when it was not there yet, and where memory is out. number: not 0. */
bool once_add(struct once *o, uint64_t number);
void once_clear(struct once *o);
void once_fini(struct once *o);

#endif
