/* command.h - the commands that can be typed after ':', as a table for palette, help and
 * manual. */
#ifndef TUI_COMMAND_H
#define TUI_COMMAND_H

#include <stddef.h>

#include "tui/input/keymap.h"

struct command_entry {
	const char *name;
	const char *arguments; /* "N", "KIND NODE [PEER] [xFACTOR|PERCENT%] [TIME]" */
	const char *help;
	enum action action; /* whose key does the same; ACTION_NONE */
};

size_t command_count(void);
/* i < command_count(); borrowed, for good. */
const struct command_entry *command_at(size_t i);
/* Indices of the commands that match what is typed (letters in order, gaps allowed; those that
 * begin so come first). Returns how many, at most `most`. */
size_t command_match(const char *typed, size_t *out, size_t most);
/* "10m", "90s", "2h", "45" (seconds). -EINVAL. */
int command_seconds(const char *text, long *out);

#endif
