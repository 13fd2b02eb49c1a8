/* arena.h - memory that is released all at once: the arrays of one struct.
 *
 * The struct has an arena, {0} at first, and takes its arrays from it one after the other.
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
