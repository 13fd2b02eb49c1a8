/* ground.h - the files that all simulated runs share: keys, a text, a model of a few hundred
 * numbers.
 *
 * The keys are the same in every test. They are part of messages, so other keys would change the
 * hash of the trace.
 */
#ifndef TESTS_SIM_GROUND_H
#define TESTS_SIM_GROUND_H

#include "tests/sim/sim.h"
#include "wire/keys.h"

struct ground {
	char folder[64], run[96], key[96], admitted[96], corpus[96], model[96], cluster[96];
	struct keys_identity *agents[SIM_AGENTS], *controller;
	struct keys_public controller_key;
};

/* Creates the files in a new folder under /dev/shm or $TMPDIR. Returns NULL after an error, which
 * it has printed. */
struct ground *ground_new(void);
/* Also deletes the folder. NULL is allowed. */
void ground_free(struct ground *g);
/* Deletes what the previous run has left: its folder, the agents' folders (RUN.agentN), and the
 * counts of failures, which are beside the list of admitted keys. */
void ground_clear(const struct ground *g);

#endif
