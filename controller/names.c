#include "controller/names.h"

#include <string.h>

static const char *const phases[] = { "gathering", "planning", "computing", "reducing", "committing",
				      "evaluating", "paused", "stalled", "finished" };
static const char *const states[] = { "absent", "joining", "syncing", "live", "suspect", "failed",
				      "dead" };
static const char *const faults[] = { "none", "kill", "hang", "slow-node", "slow-link", "loss",
				      "partition", "corrupt" };
static const char *const notes[] = { "log", "event", "command", "prediction", "warning", "alert" };

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static int place(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return (int)i;
	return -1;
}

const char *phase_name(enum run_phase p)
{
	return phases[p];
}

const char *node_state_name(enum node_state s)
{
	return states[s];
}

const char *fault_name(enum fault_kind k)
{
	return faults[k];
}

const char *note_name(enum note_kind k)
{
	return notes[k];
}

int phase_named(const char *name)
{
	return place(phases, COUNT(phases), name);
}

int node_state_named(const char *name)
{
	return place(states, COUNT(states), name);
}

int fault_named(const char *name)
{
	return place(faults, COUNT(faults), name);
}

int note_named(const char *name)
{
	return place(notes, COUNT(notes), name);
}
