/* words.h - quotes words for a remote shell, and cleans text that a remote machine wrote. */
#ifndef CLI_FLEET_WORDS_H
#define CLI_FLEET_WORDS_H

#include <stddef.h>

/* Quotes the words and joins them to one line, which the caller frees. A shell that reads the line
 * gets exactly these words, whatever characters they contain. */
char *words_quote(char *const *words);

/* Copies a text that may have any bytes to `out`, at most room - 1 bytes. Control characters and
 * bytes that are not UTF-8 could change the terminal's state; they become '?'. A tab becomes a
 * space. Spaces and carriage returns at the end are dropped. The copy ends at a whole character. */
void words_clean(const char *text, size_t size, char *out, size_t room);

#endif
