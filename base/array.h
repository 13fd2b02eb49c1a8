/* array.h - arrays that grow: room doubles, so that n elements are moved at most n times in all; and the median. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Room for `want` elements of `size` bytes. array: the address of a pointer to an array from malloc
 * (any where *room is 0), which may move, with *room >= want; free() it. False where there is no
 * memory for so much: array and *room are as they were. */
bool array_grow(void *array, size_t *room, size_t want, size_t size);

/* Does the same, but ends the program when memory runs out (base/alloc.h). For all arrays whose
 * length is not determined by a file or a peer's message. */
void array_reserve(void *array, size_t *room, size_t want, size_t size);

/* For an array of which only the newest `most` of `size` bytes each are wanted: drops the oldest of n once there are
 * twice as many. Returns how many are left. */
size_t array_keep_newest(void *array, size_t n, size_t most, size_t size);

/* The middle one of x (n), the upper of two; sorts them. 0 for none. */
double array_median(double *x, size_t n);

#endif
