/* beam.h - a beam's cut: of the states that a level reached, the cheapest go on. Internal to
 * schedule/.
 */
#ifndef SCHEDULE_BEAM_H
#define SCHEDULE_BEAM_H

#include <stddef.h>
#include <string.h>

enum { BEAM_STATE_MOST = 64 }; /* bytes */

/* The `width` cheapest of n states, in order (of two alike the earlier first), to the front; how many.
 * A state has `size` bytes, at most BEAM_STATE_MOST, and its cost, a double, at cost_at. Inline, so that
 * both are constants where it counts. */
static inline int beam_cut(void *list, int n, size_t size, size_t cost_at, int width)
{
	char *states = list, state[BEAM_STATE_MOST];
	int kept = 0;

	for (int i = 0; i < n; i++) {
		int at = kept < width ? kept++ : width;
		double cost, other;

		memcpy(state, states + (size_t)i * size, size);
		memcpy(&cost, state + cost_at, sizeof(cost));
		for (; at > 0; at--) {
			memcpy(&other, states + (size_t)(at - 1) * size + cost_at, sizeof(other));
			if (!(other > cost))
				break;
			if (at < width)
				memcpy(states + (size_t)at * size,
				       states + (size_t)(at - 1) * size, size);
		}
		if (at < width)
			memcpy(states + (size_t)at * size, state, size);
	}
	return kept;
}

#endif
