#include "controller/list.h"

#include <stdlib.h>
#include <string.h>

bool list_grow(void *list, uint32_t n, uint32_t *room, size_t size)
{
	uint32_t more = *room ? 2 * *room : 64;
	void *was, *now;

	if (n < *room)
		return true;
	memcpy(&was, list, sizeof(was));
	now = realloc(was, more * size);
	if (!now)
		return false;
	memcpy(list, &now, sizeof(now));
	*room = more;
	/* It lives on behind the caller's pointer. */
	/* cppcheck-suppress memleak */
	return true;
}

void list_keep_newest(void *list, uint32_t *n, uint32_t most, size_t size)
{
	if (*n < 2 * most)
		return;
	memmove(list, (char *)list + (*n - most) * size, most * size);
	*n = most;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double list_median(double *x, size_t n)
{
	qsort(x, n, sizeof(*x), ascending);
	return n ? x[n / 2] : 0;
}
