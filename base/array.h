/* array.h - arrays that grow, and the median.
 *
 * An array doubles its room when it grows, so that appending n elements moves fewer than 2 * n
 * elements in all.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for `want` elements of `size` bytes. `array` is the address of a pointer to a block
 * from malloc; the pointer may have any value while *room is 0. The block may move; the caller
 * frees it. Returns false when there is not enough memory: array and *room are then unchanged. */
bool array_grow(void *array, size_t *room, size_t want, size_t size);

/* Like array_grow, but ends the program when memory runs out (base/alloc.h). Use it for arrays that
 * grow with what the program reads or keeps, not for a size that a peer states. */
void array_reserve(void *array, size_t *room, size_t want, size_t size);

/* An array that grows: `LIST(struct x) xs;` declares xs.list[0] to xs.list[xs.n - 1]. A list that
 * is all zero is empty. The caller frees xs.list. */
#define LIST(type) \
	struct { \
		type *list; \
		size_t n; \
		size_t room; \
	}

/* Adds an element to *l, a LIST, and returns the element's address, which is valid until the list
 * grows again. The element's bytes are not initialised. Ends the program when memory runs out. */
#define LIST_ADD(l) \
	(array_reserve(&(l)->list, &(l)->room, (l)->n + 1, sizeof(*(l)->list)), \
	 &(l)->list[(l)->n++])

/* If the array has 2 * `most` elements or more, drops its oldest elements and keeps `most`
 * elements. The newest elements are at the end. Returns the number of elements left. */
size_t array_keep_newest(void *array, size_t n, size_t most, size_t size);

/* Sorts the n numbers and returns their median. If n is even, the median is the upper of the two
 * middle numbers. If n is 0, returns 0. */
double array_median(double *x, size_t n);

#endif
