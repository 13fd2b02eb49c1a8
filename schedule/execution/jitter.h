/* jitter.h - tasks and transfers that take longer or shorter than planned: what a robust plan is
 * made for.
 *
 * Every task and every transfer of every microbatch is multiplied by a factor of its own, drawn
 * from a log-normal distribution with mean 1; `jitter` is the standard deviation of its logarithm.
 * A factor depends on the seed, the sample, the microbatch and the step alone, not on the nodes:
 * all plans are tried on the same samples. Pure.
 */
#ifndef SCHEDULE_JITTER_H
#define SCHEDULE_JITTER_H

#include <stdbool.h>
#include <stdint.h>

struct jitter {
	double jitter; /* 0 .. JITTER_MOST; 0: none */
	uint64_t seed;
	uint32_t sample;
};

#define JITTER_MOST 2.0
#define JITTER_MOST_SAMPLES 1000

/* Of microbatch i (by place in the plan): the task at a step as simulate.c counts them (the chain
 * 0 .. 2 * length, then W by hop), or the transfer after it. */
double jitter_factor(const struct jitter *n, int microbatch, int step, bool transfer);

#endif
