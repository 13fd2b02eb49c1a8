/* first_weights.h - the weights with which a run begins, if --from names them: their stages' files
 * in the run folder, and the orders to load them. */
#ifndef CONTROLLER_WEIGHTS_FIRST_WEIGHTS_H
#define CONTROLLER_WEIGHTS_FIRST_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/config.h"
#include "wire/msg.h"

struct run;

/* Reads the configuration of the model in --from. If this program trained the model, also reads the
 * model's hyperparameters. */
int first_weights_model(struct run *run, struct model_config *c, struct hyperparameters *r,
			struct error *err);
/* Divides the model of a new run into its stages, and writes the stages' files. Called before the
 * network opens. */
int first_weights_cut(struct run *run, struct error *err);
/* Reads two facts from the record of a resumed run: its first weights, and the commit after which
 * the run got its present stages. */
int first_weights_resume(struct run *run, struct error *err);
/* Writes to *out the order to load the assigned stage from its file. Returns false if the run
 * begins with weights made from the seed. */
bool first_weights_order(const struct run *run, const struct msg_assign *a, struct msg *out);
/* Returns the position in each data shard, in microbatches, at which the next iteration begins.
 * This position is after the microbatches on which the first weights were trained, and after the
 * microbatches of this run. */
uint64_t first_weights_position(const struct run *run);
/* Checks that the run's corpus is the corpus on which the first weights were trained. Returns false
 * and a reason if they differ and the operator has not allowed this (--new-corpus). */
bool first_weights_corpus(const struct run *run, struct error *err);

#endif
