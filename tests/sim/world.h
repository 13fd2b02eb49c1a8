/* world.h - one run from a seed: what it is, what befalls it, and its end. */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

struct ground; /* ground.h */

struct outcome {
	char wrong[600];   /* what did not hold; "" nothing */
	uint64_t hash;     /* of the trace */
	uint64_t delivered; /* messages */
	uint64_t commits;
	uint32_t kills, takeovers, cuts, resets, sleeps, flips, acts; /* what befell it */
	uint32_t rewinds;  /* it went back to a checkpoint */
	double lasted_s;
};

/* tells: prints the trace. */
void world_run(struct ground *g, uint64_t seed, bool tells, struct outcome *out);

#endif
