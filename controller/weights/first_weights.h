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

/* Reads the model's configuration from --from, and its hyperparameters if it was trained by this
 * program. */
int first_weights_model(struct run *run, struct model_config *c, struct hyperparameters *r,
			struct error *err);
/* Cuts the model of a new run into the files of its stages. Called before the network opens. */
int first_weights_cut(struct run *run, struct error *err);
/* Reads from the record of a resumed run with which weights it began, and since when it has its
 * stages. */
int first_weights_resume(struct run *run, struct error *err);
/* Makes the order to load the assigned stage from its file. Returns false if the run begins with
 * the seed's weights. */
bool first_weights_order(const struct run *run, const struct msg_assign *a, struct msg *out);
/* Returns the position in each data shard, in microbatches, at which the next iteration begins:
 * after those that the first weights were trained on, and those of this run. */
uint64_t first_weights_position(const struct run *run);
/* Checks the run's corpus against the one that the first weights were trained on. Returns false and
 * a reason if they differ and the operator has not allowed this (--new-corpus). */
bool first_weights_corpus(const struct run *run, struct error *err);

#endif
