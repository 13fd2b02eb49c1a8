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
	/* True if the record gives steps and position, or if the weights follow from the seed. */
	bool is_known;
};

/* If the record names the origin of the weights with which the run began, loads these weights. If
 * the weights were made from the seed, leaves the stages as they are. If `weights` is NULL and
 * the run's folder has the stage files, uses these files. If not, makes the stage files again
 * from the model in the folder `weights` (NULL: the folder that the controller read). -ESTALE:
 * the model in that folder has changed. -ENOENT: neither the files nor the folder exist. -EIO: no
 * temporary folder. Even if the weights cannot be loaded, sets *out from the record. */
int first_weights_load(struct first_weights *out, struct store *s, const char *run,
		       const char *weights, struct stage *const *stages, struct error *err);

#endif
