/* words.h - words for a remote shell, and text that a remote machine wrote. */
#ifndef CLI_FLEET_WORDS_H
#define CLI_FLEET_WORDS_H

#include <stddef.h>

/* Returns the words as one line for a shell, to be freed. The shell gets exactly these words,
 * whatever characters they have. */
char *words_quote(char *const *words);

/* Copies at most room - 1 bytes of text that may be anything. What could change a terminal's state
 * becomes '?': control characters and bytes that are not UTF-8. A tab becomes a space. A character
 * is never cut. Spaces and carriage returns at the end are dropped. */
void words_clean(const char *text, size_t size, char *out, size_t room);

#endif
