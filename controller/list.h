/* list.h - arrays that grow; the median. */
#ifndef CONTROLLER_LIST_H
#define CONTROLLER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for one more element of `size` bytes in an array that holds n of *room. list: the address of
 * the array's pointer. False when memory is out: then nothing changed. */
bool list_grow(void *list, uint32_t n, uint32_t *room, size_t size);

/* An array of which only the newest `most` of `size` bytes each are wanted: drops the oldest of *n once
 * there are twice as many. */
void list_keep_newest(void *list, uint32_t *n, uint32_t most, size_t size);

/* The middle one of x (n), the upper of two; sorts them. 0 for none. */
double list_median(double *x, size_t n);

#endif
