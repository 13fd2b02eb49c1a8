/* not_text.h - files that take the place of a text by mistake, and the mark before a text. */
#ifndef BASE_NOT_TEXT_H
#define BASE_NOT_TEXT_H

#include <stddef.h>

/* Returns why the first `size` bytes of a file do not begin a text in UTF-8: the file is a Git LFS
 * pointer, is compressed, or is UTF-16. The reason completes "FILE: " and says how to get the text.
 * Returns NULL for any other file. */
const char *not_text_reason(const void *data, size_t size);

/* Returns the size of the byte order mark in UTF-8 with which some editors begin a file: 3, or 0 if
 * the text does not begin with the mark. */
size_t byte_order_mark(const void *text, size_t size);

#endif
