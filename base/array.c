#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>

enum { FIRST = 8 };

void *array_grow(void *array, size_t *room, size_t want, size_t size)
{
	size_t more = *room < FIRST ? FIRST : *room;
	void *grown;

	if (array && want <= *room)
		return array;
	while (more < want && more <= SIZE_MAX / 2)
		more *= 2;
	if (more < want || more > SIZE_MAX / size)
		return NULL;
	grown = realloc(array, more * size);
	if (grown)
		*room = more;
	return grown;
}
