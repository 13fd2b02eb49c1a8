/* faults.c - looks up the kinds of injected failures in the table of faults.h.
 * Programs, messages and the record share this table, so a kind has one name everywhere. */
#include "wire/faults.h"

#include <stddef.h>
#include <string.h>

static const struct fault_description faults[] = {
	[FAULT_NONE] = { .name = "none", .words = "nothing", .what = "" },
#define ROW(NAME, text, ...) [FAULT_##NAME] = { .name = text, __VA_ARGS__ },
	FAULT_KINDS(ROW)
#undef ROW
};

const struct fault_description *fault_describe(unsigned kind)
{
	return &faults[kind <= FAULT_LAST ? kind : FAULT_NONE];
}

const char *fault_name(unsigned kind)
{
	return kind <= FAULT_LAST ? faults[kind].name : "?";
}

int fault_named(const char *name)
{
	for (int i = 0; i <= FAULT_LAST; i++)
		if (strcmp(faults[i].name, name) == 0)
			return i;
	return -1;
}

const char *fault_refusal(unsigned kind, float factor)
{
	if (kind == FAULT_NONE || kind > FAULT_LAST)
		return "no such fault";
	if (faults[kind].factor == FACTOR_TIMES &&
	    !(factor >= 1 && factor <= (float)FACTOR_MOST_TIMES))
		return "a slowdown is 1 to 1000 times";
	if (faults[kind].factor == FACTOR_PROBABILITY && !(factor >= 0 && factor <= 0.99f))
		return "a loss is a probability of at most 0.99";
	return NULL;
}
