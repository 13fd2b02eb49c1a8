/* ground.h - the files that all simulated runs share: keys, a text, a model of a few hundred
 * numbers.
 *
 * The keys are the same in every test, because they are a part of the messages and therefore of the
 * trace's hash.
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

/* Creates the files in a new folder under /dev/shm or $TMPDIR. NULL: an error, which was
 * printed. */
struct ground *ground_new(void);
/* Deletes the folder, too. NULL is allowed. */
void ground_free(struct ground *g);
/* Deletes what an earlier run left: its folder, the agents' folders (RUN.agentN), and the counts of
 * failures beside the list of admitted keys. */
void ground_clear(const struct ground *g);

#endif
