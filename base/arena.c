#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>

struct arena_block {
	struct arena_block *older;
	alignas(max_align_t) unsigned char bytes[];
};

void *arena_array(struct arena *a, size_t n, size_t size)
{
	size_t bytes;
	struct arena_block *b = NULL;

	if (!__builtin_mul_overflow(n, size, &bytes) &&
	    !__builtin_add_overflow(bytes, sizeof(*b), &bytes))
		b = calloc(1, bytes);
	if (!b) {
		a->failed = true;
		return NULL;
	}
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
