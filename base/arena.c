/* A list of blocks that are released together. A struct with many arrays needs one call to release
 * them all, and no array can be forgotten. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"

struct arena_block {
	struct arena_block *older;
	alignas(max_align_t) unsigned char bytes[];
};

void *arena_array(struct arena *a, size_t n, size_t size)
{
	struct arena_block *b;
	size_t bytes;

	/* A size that overflows is larger than any memory, so alloc_new ends the program. */
	if (__builtin_mul_overflow(n, size, &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(*b), &bytes))
		bytes = SIZE_MAX;
	b = alloc_new(bytes);
	b->older = a->newest;
	a->newest = b;
	return b->bytes;
}

void arena_free(struct arena *a)
{
	while (a->newest) {
		struct arena_block *b = a->newest;

		a->newest = b->older;
		free(b);
	}
	*a = (struct arena){ 0 };
}
