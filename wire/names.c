/* names.c - the names of phases, states, notes and verbs, generated from the lists of names.h.
 * All programs and the record use these functions, so a thing has the same name everywhere. */
#include "wire/names.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/gpu_figures.h"

#define NAME(NAME, name, ...) name,
static const char *const phases[] = { RUN_PHASES(NAME) };
static const char *const notes[] = { NOTE_KINDS(NAME) };
static const char *const verbs[] = { COMMAND_VERBS(NAME) };
static const char *const states[] = { NODE_STATES(NAME) };
#undef NAME

static const struct {
	const char *shown, *brief;
	enum node_presence presence;
} shown[] = {
#define ROW(NAME, name, shown, brief, presence) { shown, brief, presence },
	NODE_STATES(ROW)
#undef ROW
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *name_at(const char *const *list, size_t n, unsigned i)
{
	return i < n ? list[i] : "?";
}

static int index_of(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return (int)i;
	return -1;
}

const char *phase_name(unsigned phase)
{
	return name_at(phases, COUNT(phases), phase);
}

const char *note_name(unsigned kind)
{
	return name_at(notes, COUNT(notes), kind);
}

bool note_stands(unsigned kind)
{
	return kind == NOTE_WARNING || kind == NOTE_ALERT;
}

const char *verb_name(unsigned verb)
{
	return name_at(verbs, COUNT(verbs), verb);
}

const char *node_state_name(unsigned state)
{
	return name_at(states, COUNT(states), state);
}

int phase_named(const char *name)
{
	return index_of(phases, COUNT(phases), name);
}

int note_named(const char *name)
{
	return index_of(notes, COUNT(notes), name);
}

int node_state_named(const char *name)
{
	return index_of(states, COUNT(states), name);
}

const char *node_state_shown(unsigned state)
{
	return state < COUNT(shown) ? shown[state].shown : "?";
}

const char *node_state_brief(unsigned state)
{
	return state < COUNT(shown) ? shown[state].brief : "?";
}

enum node_presence node_presence(unsigned state)
{
	return state < COUNT(shown) ? shown[state].presence : NODE_TAKES_PART;
}

char *gpu_throttling_text(unsigned throttling, char out[GPU_THROTTLING_TEXT])
{
	/* Names of the reasons for throttling a GPU, in the order of their bits. */
	static const char *const words[] = { "heat", "power brake", "hardware", "power limit" };
	int n = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < COUNT(words); i++)
		if (throttling >> i & 1)
			n += snprintf(out + n, (size_t)(GPU_THROTTLING_TEXT - n), "%s%s",
				      n ? ", " : "", words[i]);
	return out;
}

int gpu_throttling_named(const char *text)
{
	char each[GPU_THROTTLING_TEXT];

	for (unsigned bits = 0; text && bits <= GPU_THROTTLING_ALL; bits++)
		if (strcmp(gpu_throttling_text(bits, each), text) == 0)
			return (int)bits;
	return -1;
}
