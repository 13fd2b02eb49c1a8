/* arena.h - memory that is released all at once: the arrays of one struct.
 *
 * The struct contains an arena, which is {0} at first. Each array of the struct is taken from this
 * arena.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *newest;
};

/* Allocates n elements of `size` bytes, all zero. They live until arena_free. Ends the program when
 * memory runs out (base/alloc.h), so the result is never NULL. */
void *arena_array(struct arena *a, size_t n, size_t size) __attribute__((returns_nonnull));

/* Releases all arrays. The arena can be used again. */
void arena_free(struct arena *a);

#endif
