
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { FIRST = 8 };

bool array_grow(void *array, size_t *room, size_t want, size_t size)
{
	size_t more = *room < FIRST ? FIRST : *room;
	void *was = NULL, *grown;

	if (*room > 0)
		memcpy(&was, array, sizeof(was)); /* a pointer of any type */
	if (was && want <= *room)
		return true;
	while (more < want && more <= SIZE_MAX / 2)
		more *= 2;
	if (more < want || more > SIZE_MAX / size)
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
