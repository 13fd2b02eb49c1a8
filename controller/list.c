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
