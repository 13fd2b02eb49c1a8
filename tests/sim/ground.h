/* ground.h - what all runs of the simulation stand on: keys, a text, a model of a few hundred numbers.
 *
 * Keys are the same each time, as what they are is part of what is sent.
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

/* In a folder of its own under /dev/shm, or $TMPDIR. NULL: it cannot be had; printed. */
struct ground *ground_new(void);
void ground_free(struct ground *g); /* NULL is allowed; takes the folder away */
void ground_remove(const char *folder); /* and all in it; it need not be there */

#endif
