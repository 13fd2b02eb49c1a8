/* array.h - arrays that grow: room doubles, so that n elements are moved at most n times in all. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

/* Room for `want` elements of `size` bytes in an array from malloc (NULL where *room is 0). Returns
 * the array, which may have moved, with *room >= want; free() it. NULL where there is no memory for
 * so much: array and *room are as they were. */
void *array_grow(void *array, size_t *room, size_t want, size_t size);

#endif
