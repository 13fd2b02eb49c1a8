#include "tui/input/command.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/faults.h"

static const struct command_entry entries[] = {
	{ "skip", "STAGES", "skip that many stages a microbatch, after a preview",
	  ACTION_SKIP },
	{ "fail", "NODE", "mark a node failed, after a preview", ACTION_FAIL },
	{ "recover", "NODE", "take a node back", ACTION_RECOVER },
	{ "inject", "KIND NODE [>PEER] [xFACTOR|PERCENT%] [TIME]",
	  FAULT_NAMES, ACTION_INJECT },
	{ "heal", "FAULT", "heal one injected failure", ACTION_HEAL },
	{ "heal-all", "", "heal every injected failure", ACTION_HEAL_ALL },
	{ "pause", "", "pause at the iteration's end", ACTION_PAUSE },
	{ "resume", "", "go on", ACTION_PAUSE },
	{ "step", "", "one iteration, then pause", ACTION_STEP },
	{ "undo", "[COMMAND]", "undo a command of the journal", ACTION_UNDO },
	{ "acknowledge", "", "acknowledge the alerts", ACTION_ACKNOWLEDGE },
	{ "arm", "[TIME|off]", "take the operator's lease (10m), or give it back",
	  ACTION_NONE },
	{ "branch", "[STAGES [NODE]]",
	  "what if that many stages were skipped, and the node left out", ACTION_BRANCH },
	{ "follow", "MICROBATCH|off", "follow one microbatch", ACTION_FOLLOW },
	{ "node", "NODE", "select a node", ACTION_NONE },
	{ "find", "TEXT", "list the nodes that match", ACTION_FILTER },
	{ "view", "1-8|NAME", "show a view", ACTION_NONE },
	{ "theme", "NAME", "change the colours", ACTION_THEME },
	{ "mouse", "", "mouse on or off", ACTION_MOUSE },
	{ "export", "[text|svg|jsonl|csv|trace]",
	  "save the view, the run's figures, or its tasks for Perfetto", ACTION_EXPORT },
	{ "copy", "", "copy this view, or the journal's chosen entry", ACTION_COPY },
	{ "why", "", "why the followed microbatch waits", ACTION_WHY },
	{ "freeze", "", "freeze the picture", ACTION_FREEZE },
	{ "speed", "TIMES", "of a replay; 0 stops it", ACTION_NONE },
	{ "help", "", "the keys", ACTION_HELP },
	{ "stop", "", "end the run", ACTION_NONE },
	{ "quit", "", "leave the console", ACTION_QUIT },
};

size_t command_count(void)
{
	return sizeof(entries) / sizeof(entries[0]);
}

const struct command_entry *command_at(size_t i)
{
	return &entries[i];
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
