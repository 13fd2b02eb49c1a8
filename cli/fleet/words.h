/* words.h - quotes words for a remote shell, and cleans text that a remote machine wrote. */
#ifndef CLI_FLEET_WORDS_H
#define CLI_FLEET_WORDS_H

#include <stddef.h>

/* Makes a line that runs the words as a command, whatever bytes they contain. The line means the
 * same to every login shell (sh, bash, zsh, fish, csh), and sh runs the command. No word of the
 * line is longer than 1,000 bytes, because shells limit words. The caller frees the line. */
char *words_login_line(char *const *words);

/* Copies a text that may have any bytes to `out`, at most room - 1 bytes. Control characters and
 * bytes that are not UTF-8 could change the terminal's state; they become '?'. A tab becomes a
 * space. Spaces and carriage returns at the end are dropped. The copy ends at a whole character. */
void words_clean(const char *text, size_t size, char *out, size_t room);

#endif
