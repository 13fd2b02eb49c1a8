/* Arrays that grow by doubling, shared by all folders so that the overflow checks exist in one
 * place. */
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { FIRST = 8 };

/* Returns the new room of an array, in elements: at least `room` and at least `want`. */
static size_t grown_room(size_t room, size_t want)
{
	size_t more = room < FIRST ? FIRST : room;

	while (more < want && more <= SIZE_MAX / 2)
		more *= 2;
	return more < want ? want : more;
}

/* `array` is the address of a pointer of any type; memcpy reads and writes the pointer without
 * breaking the aliasing rules. */
bool array_grow(void *array, size_t *room, size_t want, size_t size)
{
	size_t more = grown_room(*room, want), bytes;
	void *block = NULL, *grown;

	if (*room > 0)
		memcpy(&block, array, sizeof(block));
	if (block && want <= *room)
		return true;
	/* Does not call reallocarray, because AddressSanitizer's version ends the program if the
	 * size overflows. */
	if (__builtin_mul_overflow(more, size, &bytes))
		return false;
	grown = realloc(block, bytes);
	if (!grown)
		return false;
	memcpy(array, &grown, sizeof(grown));
	*room = more;
	/* cppcheck sees a leak, although the caller's pointer owns the block. */
	/* cppcheck-suppress memleak */
	return true;
}

void array_reserve(void *array, size_t *room, size_t want, size_t size)
{
	if (!array_grow(array, room, want, size))
		alloc_failed(grown_room(*room, want), size);
}

size_t array_keep_newest(void *array, size_t n, size_t most, size_t size)
{
	if (n < 2 * most)
		return n;
	memmove(array, (char *)array + (n - most) * size, most * size);
	return most;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double array_median(double *x, size_t n)
{
	qsort(x, n, sizeof(*x), ascending);
	return n ? x[n / 2] : 0;
}
