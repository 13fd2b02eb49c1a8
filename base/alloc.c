/* Allocators that end the program when memory runs out.
 *
 * A small allocation fails so rarely that the error path after each one would never be tested. A
 * program that ends at the first failure is simpler. A training run survives the end of such a
 * program as it survives any killed agent or controller. */
#include "base/alloc.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_OUT_OF_MEMORY = 1 };

/* Set before the program starts a second thread, and never changed later, so no lock is needed. */
static void (*restore_before_exit)(void);

void alloc_before_exit(void (*restore)(void))
{
	restore_before_exit = restore;
}

/* Writes the message without stdio, which may allocate memory or hold a lock. */
_Noreturn void alloc_failed(size_t n, size_t size)
{
	char line[256];
	size_t bytes;
	ssize_t written;
	int length;

	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = SIZE_MAX;
	length = snprintf(line, sizeof(line), "%s: out of memory: %zu bytes\n",
			  program_invocation_short_name, bytes);
	if (length >= (int)sizeof(line))
		length = (int)sizeof(line) - 1;
	if (restore_before_exit)
		restore_before_exit();
	written = write(STDERR_FILENO, line, (size_t)length);
	(void)written;
	_exit(EXIT_OUT_OF_MEMORY);
}

void *alloc_array(size_t n, size_t size)
{
	void *block = calloc(n ? n : 1, size ? size : 1);

	if (!block)
		alloc_failed(n, size);
	return block;
}

void *alloc_new(size_t size)
{
	return alloc_array(1, size);
}

void *alloc_resize(void *block, size_t n, size_t size)
{
	void *resized = reallocarray(block, n ? n : 1, size ? size : 1);

	if (!resized)
		alloc_failed(n, size);
	return resized;
}

void *alloc_copy(const void *from, size_t size)
{
	void *copy = alloc_resize(NULL, size, 1);

	if (size > 0)
		memcpy(copy, from, size);
	return copy;
}

char *alloc_string(const char *text)
{
	return alloc_copy(text, strlen(text) + 1);
}

char *alloc_vformat(const char *format, va_list ap)
{
	char *text = NULL;

	if (vasprintf(&text, format, ap) < 0)
		alloc_failed(1, strlen(format));
	return text;
}

char *alloc_format(const char *format, ...)
{
	char *text;
	va_list ap;

	va_start(ap, format);
	text = alloc_vformat(format, ap);
	va_end(ap);
	return text;
}
