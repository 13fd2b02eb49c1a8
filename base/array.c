
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

enum { FIRST = 8 };

/* Returns the room after growing: a power of two times FIRST, or the old room when it suffices. */
static size_t grown_room(size_t room, size_t want)
{
	size_t more = room < FIRST ? FIRST : room;

	while (more < want && more <= SIZE_MAX / 2)
		more *= 2;
	return more < want ? want : more;
}

bool array_grow(void *array, size_t *room, size_t want, size_t size)
{
	size_t more = grown_room(*room, want);
	void *was = NULL, *grown;

	if (*room > 0)
		memcpy(&was, array, sizeof(was)); /* a pointer of any type */
	if (was && want <= *room)
		return true;
	if (more > SIZE_MAX / size)
		return false;
	grown = realloc(was, more * size);
	if (!grown)
		return false;
	memcpy(array, &grown, sizeof(grown));
	*room = more;
	/* The array lives on behind the caller's pointer. */
	/* cppcheck-suppress memleak */
	return true;
}

void array_reserve(void *array, size_t *room, size_t want, size_t size)
{
	size_t more = grown_room(*room, want);
	void *block = NULL;

	if (*room > 0)
		memcpy(&block, array, sizeof(block)); /* a pointer of any type */
	if (block && want <= *room)
		return;
	block = alloc_resize(block, more, size);
	memcpy(array, &block, sizeof(block));
	*room = more;
	/* The caller's pointer owns the block. */
	/* cppcheck-suppress memleak */
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
