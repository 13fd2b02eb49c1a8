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
	enum action action; /* action with the command's effect; ACTION_NONE: none */
};

/* Indices into the table, in the order in which the palette lists the commands. */
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
/* Returns the index of the command `word`; -1: there is no such command. */
int command_named(const char *word);
/* Returns the entry with index i, which must be below command_count(). The entry is static. */
const struct command_entry *command_at(size_t i);
/* Finds the commands whose names contain the typed letters in this order, and writes their indices
 * to `out`. Commands that begin with the letters come first. Returns the number of indices, `most`
 * at most. */
size_t command_match(const char *typed, size_t *out, size_t most);
/* Parses a time such as "10m", "90s", "2h" or "45", which is in seconds. -EINVAL: the text is not a
 * time. */
int command_seconds(const char *text, long *out);

#endif
