/* world.h - one simulated run: its cluster, its mishaps and its checks. */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

struct ground; /* ground.h */

struct outcome {
	char wrong[600];   /* the first check that failed; "": none */
	uint64_t hash;     /* hash of the trace */
	uint64_t delivered; /* number of messages that were delivered */
	uint64_t commits;
	/* Number of mishaps of each kind; acts: number of the operator's commands. */
	uint32_t kills, drains, takeovers, cuts, narrows, resets, sleeps, flips, acts;
	uint32_t rewinds; /* number of restores of a checkpoint */
	uint32_t recuts;  /* number of times that the model was cut into other stages */
	/* Number of commits in which untrained stages took the weights of trained stages. */
	uint32_t stacked;
	/* Number of times that nodes exchanged stages at a phase of the skip schedule. */
	uint32_t exchanged;
	double lasted_s;
};

/* Simulates the run of a seed. prints: prints its trace. */
void world_run(struct ground *g, uint64_t seed, bool prints, struct outcome *out);

#endif
