/* rate_limit.h - how much of something may happen: so much at once, and then so much a second.
 *
 * Of what a peer can have done as often as it likes. Zeroed, it is whole.
 */
#ifndef CONTROLLER_RATE_LIMIT_H
#define CONTROLLER_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct rate_limit {
	double spent;
	int64_t at_us;      /* when it was so much */
	uint32_t n_dropped; /* by the caller, since it last told */
};

/* Takes n, unless that is more than there is. most: at once; per_s: what comes back. */
bool rate_limit_take(struct rate_limit *b, double n, double most, double per_s, int64_t now_us);

#endif
