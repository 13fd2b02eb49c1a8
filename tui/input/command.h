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

/* Their indices, in the order of the palette. */
enum {
	TYPED_SKIP, TYPED_FAIL, TYPED_RECOVER, TYPED_INJECT, TYPED_HEAL, TYPED_HEAL_ALL, TYPED_PAUSE,
	TYPED_RESUME, TYPED_STEP, TYPED_UNDO, TYPED_ACKNOWLEDGE, TYPED_ARM, TYPED_BRANCH, TYPED_FOLLOW,
	TYPED_NODE, TYPED_FIND, TYPED_VIEW, TYPED_THEME, TYPED_MOUSE, TYPED_EXPORT, TYPED_COPY,
	TYPED_WHY, TYPED_FREEZE, TYPED_SPEED, TYPED_HELP, TYPED_STOP, TYPED_QUIT
};

size_t command_count(void);
int command_named(const char *word); /* its index; -1: none */
/* i < command_count(); borrowed, for good. */
const struct command_entry *command_at(size_t i);
/* Indices of the commands that match what is typed (letters in order, gaps allowed; those that
 * begin so come first). Returns how many, at most `most`. */
size_t command_match(const char *typed, size_t *out, size_t most);
/* "10m", "90s", "2h", "45" (seconds). -EINVAL. */
int command_seconds(const char *text, long *out);

#endif
