/* alloc.h - memory for small things: these functions always succeed or end the program.
 *
 * When the system has no memory left, an allocator below prints one line to standard error, for
 * example "skippipe-agent: out of memory: 4096 bytes", and ends the program with exit status 1.
 * Callers therefore need no error path. A training run continues after the end of one of its
 * programs, whatever the cause.
 *
 * free() releases every block. Sizes are in bytes; a size of 0 gives a valid block too.
 *
 * Do not use these functions for sizes that a file, a peer's message or a model's shape determines:
 * if such a request is too large, the caller must refuse it with an error.
 *
 * The program ends through _exit, which calls no atexit handlers and no destructors of libraries.
 * Some handlers and destructors wait for other threads or allocate memory.
 */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stdarg.h>
#include <stddef.h>

/* Allocates `size` bytes, all zero. */
void *alloc_new(size_t size) __attribute__((malloc, returns_nonnull));

/* Allocates n elements of `size` bytes, all zero. */
void *alloc_array(size_t n, size_t size) __attribute__((malloc, returns_nonnull));

/* Changes a block to n elements of `size` bytes, as realloc does; NULL allocates a new block. The
 * added bytes are not initialised. */
void *alloc_resize(void *block, size_t n, size_t size) __attribute__((returns_nonnull));

/* Allocates a copy of `size` bytes. */
void *alloc_copy(const void *from, size_t size) __attribute__((malloc, returns_nonnull));

/* Allocates a copy of a string. */
char *alloc_string(const char *text) __attribute__((malloc, returns_nonnull));

/* Allocates a string and formats it like printf. */
char *alloc_format(const char *format, ...)
	__attribute__((malloc, returns_nonnull, format(printf, 1, 2)));
char *alloc_vformat(const char *format, va_list ap)
	__attribute__((malloc, returns_nonnull, format(printf, 1, 0)));

/* Prints the message for a failed allocation of n elements of `size` bytes, and ends the
 * program. */
_Noreturn void alloc_failed(size_t n, size_t size);

/* Sets the function that alloc_failed calls before it prints its message; NULL: none. The console's
 * function restores the terminal. The function must not allocate. */
void alloc_before_exit(void (*restore)(void));

#endif
