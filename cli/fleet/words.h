/* words.h - quotes words for a remote shell, and cleans text that a remote machine wrote. */
#ifndef CLI_FLEET_WORDS_H
#define CLI_FLEET_WORDS_H

#include <stddef.h>

/* Returns the words quoted, as one line for a shell, which the caller frees. The shell then sees
 * exactly these words, whatever characters they contain. */
char *words_quote(char *const *words);

/* Copies at most room - 1 bytes of a text with any contents. Control characters and bytes that are
 * not UTF-8 become '?', because they could change the terminal's state. A tab becomes a space. A
 * character is never cut. Spaces and carriage returns at the end are dropped. */
void words_clean(const char *text, size_t size, char *out, size_t room);

#endif
