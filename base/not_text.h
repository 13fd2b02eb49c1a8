/* not_text.h - files that take the place of a text by mistake. */
#ifndef BASE_NOT_TEXT_H
#define BASE_NOT_TEXT_H

#include <stddef.h>

/* Returns why the first `size` bytes of a file do not begin a text in UTF-8: the file is a Git LFS
 * pointer, is compressed, or is UTF-16. The reason completes "FILE: " and says how to get the text.
 * Returns NULL for any other file. */
const char *not_text_reason(const void *data, size_t size);

#endif
