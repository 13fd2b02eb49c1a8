#include "schedule/execution/jitter.h"

#include <math.h>

#include "base/rng.h"

double jitter_factor(const struct jitter *n, int microbatch, int step, bool transfer)
{
	uint64_t which = (uint64_t)n->sample << 40 | (uint64_t)microbatch << 16 |
			 (uint64_t)step << 1 | transfer;
	struct rng r;

	if (n->jitter == 0)
		return 1;
	rng_init_stream(&r, n->seed, which);
	return exp(n->jitter * rng_normal(&r) - n->jitter * n->jitter / 2);
}
