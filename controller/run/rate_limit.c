/* rate_limit.c - a token bucket, which limits how much a peer may cause. */
#include "controller/run/rate_limit.h"

bool rate_limit_take(struct rate_limit *b, double n, double most, double per_s, int64_t now_us)
{
	double back = (double)(now_us - b->at_us) * 1e-6 * per_s;

	b->spent = back < b->spent ? b->spent - back : 0;
	b->at_us = now_us;
	if (b->spent + n > most)
		return false;
	b->spent += n;
	return true;
}
