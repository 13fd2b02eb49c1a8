/* command.h - the commands that can be typed after ':', a table for the palette, the help and the
 * manual. */
#ifndef TUI_COMMAND_H
#define TUI_COMMAND_H

#include <stddef.h>

#include "tui/input/keymap.h"

struct command_entry {
	const char *name;
	/* Arguments of the command, such as "N" or "KIND NODE [PEER] [xFACTOR|PERCENT%] [TIME]". */
	const char *arguments;
	const char *help;
	enum action action; /* the action with the same effect; ACTION_NONE: there is none */
};

/* Indices of the table, in the order of the palette. */
enum {
	TYPED_SKIP,
	TYPED_WIRE,
	TYPED_SUM_WIRE,
	TYPED_FINISH,
	TYPED_FAIL,
	TYPED_RECOVER,
	TYPED_INJECT,
	TYPED_HEAL,
	TYPED_HEAL_ALL,
	TYPED_PAUSE,
	TYPED_RESUME,
	TYPED_STEP,
	TYPED_STAGES,
	TYPED_HOURS,
	TYPED_CUT,
	TYPED_UNDO,
	TYPED_ACKNOWLEDGE,
	TYPED_ARM,
	TYPED_BRANCH,
	TYPED_FOLLOW,
	TYPED_NODE,
	TYPED_FIND,
	TYPED_COMPARE,
	TYPED_VIEW,
	TYPED_THEME,
	TYPED_MOUSE,
	TYPED_EXPORT,
	TYPED_COPY,
	TYPED_WHY,
	TYPED_FREEZE,
	TYPED_SPEED,
	TYPED_HELP,
	TYPED_STOP,
	TYPED_QUIT
};

size_t command_count(void);
/* Returns the index of the command with this name; -1: there is none. */
int command_named(const char *word);
/* Returns a static entry of the table. i must be below command_count(). */
const struct command_entry *command_at(size_t i);
/* Gives the indices of the commands whose names contain the typed letters in this order. Commands
 * that begin with the letters come first. Returns the number of indices, at most `most`. */
size_t command_match(const char *typed, size_t *out, size_t most);
/* Parses a time: "10m", "90s", "2h", "45" (seconds). -EINVAL: the text is not a time. */
int command_seconds(const char *text, long *out);

#endif
