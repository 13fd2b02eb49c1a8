/* first_weights.h - loads the weights with which a run began into the replay's stages. */
#ifndef VERIFY_FIRST_WEIGHTS_H
#define VERIFY_FIRST_WEIGHTS_H

#include "base/error.h"
#include "model/stage.h"
#include "store/store.h"

struct first_weights {
	uint64_t steps; /* number of AdamW steps that made the weights */
	/* Number of microbatches that the weights were trained on. */
	uint64_t position;
};

/* Loads the weights that the record names, and changes nothing if the seed made them. The files are
 * those of the run's folder, or are made again from the model in `weights` (NULL: the folder that
 * the controller read). -ESTALE: the model in that folder has changed. -ENOENT: neither the files
 * nor the folder exist. */
int first_weights_load(struct first_weights *out, struct store *s, const char *run,
		       const char *weights, struct stage *const *stages, struct error *err);

#endif
