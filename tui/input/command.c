/* The table of typed commands, and the search in it. The palette, the help and the manual are made
 * from this table. */
#include "tui/input/command.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/faults.h"
#include "wire/names.h"

/* Names of verbs must be those in the record (wire/names.h). */
static const struct {
#define ROOM(NAME, name) char NAME[sizeof(name)];
	COMMAND_VERBS(ROOM)
#undef ROOM
} verbs = {
#define NAMED(NAME, name) name,
	COMMAND_VERBS(NAMED)
#undef NAMED
};

static const struct command_entry entries[] = {
	[TYPED_SKIP] = { verbs.SKIP, "STAGES|SHARE%:STAGES", "skip so many stages, with a preview",
			 ACTION_SKIP },
	[TYPED_WIRE] = { verbs.WIRE, "fp32|bf16|q8|q6",
			 "format of activations between nodes, with a preview", ACTION_NONE },
	[TYPED_SUM_WIRE] = { verbs.SUM_WIRE, "fp32|q8|q6|q4",
			     "format of the sums of gradients, with a preview", ACTION_NONE },
	[TYPED_FINISH] = { verbs.FINISH, "ITERATIONS", "lower the learning rate, then end the run",
			   ACTION_NONE },
	[TYPED_FAIL] = { verbs.FAIL, "NODE", "mark a node failed, with a preview", ACTION_FAIL },
	[TYPED_RECOVER] = { verbs.RECOVER, "NODE", "use a failed node again", ACTION_RECOVER },
	[TYPED_INJECT] = { verbs.INJECT, "KIND NODE [>PEER] [xFACTOR|PERCENT%] [TIME]", FAULT_NAMES,
			   ACTION_INJECT },
	[TYPED_HEAL] = { verbs.HEAL, "FAULT", "heal one injected failure", ACTION_HEAL },
	[TYPED_HEAL_ALL] = { verbs.HEAL_ALL, "", "heal every injected failure", ACTION_HEAL_ALL },
	[TYPED_PAUSE] = { verbs.PAUSE, "", "pause at the end of the iteration", ACTION_PAUSE },
	[TYPED_RESUME] = { verbs.RESUME, "", "continue after a pause", ACTION_PAUSE },
	[TYPED_STEP] = { verbs.STEP, "", "run one iteration, then pause", ACTION_STEP },
	[TYPED_STAGES] = { verbs.STAGES, "", "which stages would be chosen for these nodes",
			   ACTION_NONE },
	[TYPED_HOURS] = { verbs.HOURS, "HOURS", "what recipes reach in so many hours",
			  ACTION_NONE },
	[TYPED_CUT] = { verbs.CUT, "[LAYERS]", "cut the model, as 0,7,5, or as stages proposed",
			ACTION_NONE },
	[TYPED_UNDO] = { verbs.UNDO, "[COMMAND]", "undo a command in the journal", ACTION_UNDO },
	[TYPED_ACKNOWLEDGE] = { verbs.ACK, "", "acknowledge the alerts", ACTION_ACKNOWLEDGE },
	[TYPED_ARM] = { verbs.ARM, "[TIME|off]", "take the operator's lease, or return it",
			ACTION_NONE },
	[TYPED_BRANCH] = { "branch", "[STAGES [NODE]]", "what if: other skips, without a node",
			   ACTION_BRANCH },
	[TYPED_FOLLOW] = { "follow", "MICROBATCH|off", "follow one microbatch", ACTION_FOLLOW },
	[TYPED_NODE] = { "node", "NODE", "select a node", ACTION_NONE },
	[TYPED_FIND] = { "find", "TEXT", "list the matching nodes only", ACTION_FILTER },
	[TYPED_COMPARE] = { "compare", "[RUN-DIR...]", "compare losses of runs on this machine",
			    ACTION_NONE },
	[TYPED_VIEW] = { "view", "1-9|NAME", "show a view", ACTION_NONE },
	[TYPED_THEME] = { "theme", "NAME", "change the colours", ACTION_THEME },
	[TYPED_MOUSE] = { "mouse", "", "turn the mouse on or off", ACTION_MOUSE },
	[TYPED_EXPORT] = { "export", "[text|svg|jsonl|csv|trace]", "save the view or the run",
			   ACTION_EXPORT },
	[TYPED_COPY] = { "copy", "", "copy this view, or the selected journal entry", ACTION_COPY },
	[TYPED_WHY] = { "why", "", "why the followed microbatch waits", ACTION_WHY },
	[TYPED_FREEZE] = { "freeze", "", "freeze the screen; the training continues",
			   ACTION_FREEZE },
	[TYPED_SPEED] = { verbs.SPEED, "TIMES", "speed of a replay; 0 stops it", ACTION_NONE },
	[TYPED_HELP] = { "help", "", "show the keys", ACTION_HELP },
	[TYPED_STOP] = { verbs.STOP, "", "end the run", ACTION_NONE },
	[TYPED_QUIT] = { "quit", "", "leave the console", ACTION_QUIT },
};

size_t command_count(void)
{
	return sizeof(entries) / sizeof(entries[0]);
}

const struct command_entry *command_at(size_t i)
{
	return &entries[i];
}

int command_named(const char *word)
{
	for (size_t i = 0; i < command_count(); i++)
		if (strcmp(entries[i].name, word) == 0)
			return (int)i;
	return -1;
}

static int match_letters(const char *name, const char *typed, size_t n)
{
	if (strncmp(name, typed, n) == 0)
		return 2;
	for (size_t i = 0; i < n; name++) {
		if (!*name)
			return 0;
		if (tolower((unsigned char)*name) == tolower((unsigned char)typed[i]))
			i++;
	}
	return 1;
}

size_t command_match(const char *typed, size_t *out, size_t most)
{
	size_t n = strcspn(typed, " "), got = 0;

	for (int want = 2; want >= 1; want--)
		for (size_t i = 0; i < command_count() && got < most; i++)
			if (match_letters(entries[i].name, typed, n) == want)
				out[got++] = i;
	return got;
}

int command_seconds(const char *text, long *out)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (end == text || v < 0 || v > 1000000)
		return -EINVAL;
	if (strcmp(end, "m") == 0)
		v *= 60;
	else if (strcmp(end, "h") == 0)
		v *= 3600;
	else if (*end && strcmp(end, "s") != 0)
		return -EINVAL;
	*out = v;
	return 0;
}
