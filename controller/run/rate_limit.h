/* rate_limit.h - limits how often or how much a peer may cause something. A peer may use a fixed
 * amount at once. The amount that it has used is refilled at a constant rate (a token bucket).
 *
 * A zeroed rate_limit is full. */
#ifndef CONTROLLER_RUN_RATE_LIMIT_H
#define CONTROLLER_RUN_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct rate_limit {
	double spent;
	int64_t at_us;      /* time of the last call */
	/* Number of refusals since the caller's last report; the caller counts them */
	uint32_t n_dropped;
};

/* Takes n from the bucket and returns true. If less than n is left, takes nothing and returns
 * false. most: size of the bucket; per_s: amount refilled per second. */
bool rate_limit_take(struct rate_limit *b, double n, double most, double per_s, int64_t now_us);

#endif
