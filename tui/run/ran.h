/* ran.h - the plans that a run has gone through: what each said, and what was measured under it.
 *
 * Made of the iterations that the console knows; pure.
 */
#ifndef TUI_RAN_H
#define TUI_RAN_H

#include "tui/run/state.h"

enum { RAN_MOST = 16 };

struct ran {
	uint64_t epoch;
	char algorithm[16]; /* "" not known */
	uint32_t path_length;
	uint64_t first, last;       /* iterations under it; 0 none yet */
	float said_s, said_sync_s;  /* for the last of them: beliefs are corrected meanwhile */
	float took_s, took_sync_s;  /* medians over the newest 256 of them */
};

/* The newest first, at most so many: the one in force, whether or not it has run, and those before it that have. Where
 * there are more, of each algorithm and skip ratio the newest. */
uint32_t ran_list(const struct state *s, struct ran *list, uint32_t most);

#endif
