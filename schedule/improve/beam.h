/* beam.h - keeps the cheapest states of a level of a beam search. Internal to schedule/.
 *
 * The beam always holds the cheapest of the states added so far. Therefore a state whose partial
 * cost is already too high can be dropped before its whole cost is known. */
#ifndef SCHEDULE_BEAM_H
#define SCHEDULE_BEAM_H

#include <math.h>
#include <stdbool.h>

#define BEAM_MOST 8

struct beam {
	int width; /* the beam keeps at most this many states, which is at most BEAM_MOST */
	int n;     /* number of states kept */
	/* Indices of the kept states in their level, cheapest first. Of states with equal costs,
	 * the lower index comes first. */
	int at[BEAM_MOST];
	double cost[BEAM_MOST];
};

/* Returns true if a state that costs this much or more cannot enter the beam. */
static inline bool beam_excludes(const struct beam *b, double cost)
{
	return b->n == b->width && cost > b->cost[b->n - 1];
}

/* Adds a state, or lowers its cost if the beam has it already. */
static inline void beam_offer(struct beam *b, int place, double cost)
{
	int i = 0;

	while (i < b->n && b->at[i] != place)
		i++;
	if (i == b->n) {
		if (b->n < b->width)
			b->n++;
		else if (cost > b->cost[--i] || (cost == b->cost[i] && place > b->at[i]))
			return;
	}
	for (; i > 0 && (b->cost[i - 1] > cost || (b->cost[i - 1] == cost && b->at[i - 1] > place));
	     i--) {
		b->at[i] = b->at[i - 1];
		b->cost[i] = b->cost[i - 1];
	}
	b->at[i] = place;
	b->cost[i] = cost;
}

#endif
