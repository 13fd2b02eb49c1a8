/* world.h - one simulated run: its cluster, its failures and the checks at its end. */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

struct ground; /* ground.h */

struct outcome {
	char wrong[600];   /* the check that failed; "": none */
	uint64_t hash;     /* hash of the trace */
	uint64_t delivered; /* messages */
	uint64_t commits;
	/* failures and commands */
	uint32_t kills, drains, takeovers, cuts, narrows, resets, sleeps, flips, acts;
	uint32_t rewinds;  /* restores of a checkpoint */
	uint32_t recuts;   /* how often the model was cut into other stages */
	uint32_t stacked;  /* commits with which stages started from trained stages */
	uint32_t exchanged; /* exchanges of stages at a phase of the skip schedule */
	double lasted_s;
};

/* Runs a seed, and prints its trace if `prints` is true. */
void world_run(struct ground *g, uint64_t seed, bool prints, struct outcome *out);

#endif
