/* stages.h - numbers of a run that follow from the stages of its model. They change together when
 * the stages are chosen after the controller has begun. */
#ifndef CONTROLLER_RUN_STAGES_H
#define CONTROLLER_RUN_STAGES_H

#include "base/error.h"

struct run;
struct stage_layers;

/* Counts the parameters of each stage. */
int stages_count(struct run *run, struct error *err);
/* Writes the model for agents and the record, in place of an earlier text. -EINVAL: too long. */
int stages_print_model(struct run *run, struct error *err);

/* The stages of a run that were chosen: their layers, and the stage of each node. */
struct stages_chosen {
	const struct stage_layers *layers;
	/* (n_nodes) A node that is not used has a stage too, in case that it is used later; that
	 * stage is not stage 0, whose nodes are the data shards. */
	const int *stage_of;
	const int *slots; /* (n_nodes) number of microbatches that each node holds at once */
	int n_microbatches; /* of an iteration; a multiple of the nodes in stage 0 */
};
/* Gives the run these stages, in its model and its clusters. Nothing has been planned yet. */
int stages_take(struct run *run, const struct stages_chosen *s, struct error *err);

#endif
