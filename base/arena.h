/* arena.h - memory that is given back all at once: the arrays of one struct.
 *
 * The struct has an arena, {0} at first, and takes its arrays from it one after the other; whether there
 * was memory for all of them is asked once, after the last.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *newest;
	bool failed; /* there was no memory for an array */
};

/* n elements of `size` bytes, all zero; they live until arena_free. NULL when memory runs out. */
void *arena_array(struct arena *a, size_t n, size_t size);
/* All arrays are gone, and the arena is as new. */
void arena_free(struct arena *a);

#endif
