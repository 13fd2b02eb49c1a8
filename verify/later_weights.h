/* later_weights.h - a checkpoint with which the replay can begin if the weights with which the run
 * began are gone.
 *
 * The record has the hashes of a checkpoint's files, and of the weights that nodes announced. A
 * file in the run's folder can therefore be trusted as much as the record.
 */
#ifndef VERIFY_LATER_WEIGHTS_H
#define VERIFY_LATER_WEIGHTS_H

#include <stdint.h>

#include "base/error.h"
#include "base/route.h"
#include "model/stage.h"
#include "store/store.h"

struct later_weights {
	uint64_t iteration; /* the weights are those after this iteration; 0: there are none */
	uint64_t hashes[ROUTE_HOPS]; /* hash of each stage's file */
};

/* Finds the oldest complete checkpoint: the run's folder has all its files, and no file has
 * changed. When the stages of a run change, the record drops the files of the former stages.
 * Therefore the checkpoint has the run's newest stages. */
int later_weights_find(struct later_weights *out, struct store *s, const char *run,
		       struct error *err);
/* Loads the checkpoint into the n_stages stages. Errors are those of checkpoint_load_stage. */
int later_weights_load(const struct later_weights *w, const char *run, struct stage *const *stages,
		       uint32_t n_stages, struct error *err);

#endif
