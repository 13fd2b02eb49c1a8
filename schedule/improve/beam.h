/* beam.h - a beam: of the states that a level reached, the cheapest go on. Internal to schedule/.
 *
 * It is kept while the states come, so that one that is too dear for it is seen to be before its
 * cost is known to the end.
 */
#ifndef SCHEDULE_BEAM_H
#define SCHEDULE_BEAM_H

#include <math.h>
#include <stdbool.h>

#define BEAM_MOST 8

struct beam {
	int width, n;         /* width: BEAM_MOST at most */
	int at[BEAM_MOST];    /* places of the states in their level, cheapest first, of two alike
			       * the earlier */
	double cost[BEAM_MOST];
};

/* Whether a state that costs at least so much stays out, whatever comes. */
static inline bool beam_excludes(const struct beam *b, double cost)
{
	return b->n == b->width && cost > b->cost[b->n - 1];
}

/* A state's cost, when it is reached and when it falls. */
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
