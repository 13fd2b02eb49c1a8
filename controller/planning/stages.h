/* stages.h - numbers of a run that depend on the stages of its model. These numbers change
 * together if the stages are chosen after the controller has started. */
#ifndef CONTROLLER_PLANNING_STAGES_H
#define CONTROLLER_PLANNING_STAGES_H

#include "base/error.h"

struct run;
struct stage_layers;

/* Counts the parameters of each stage of the run. */
int stages_count(struct run *run, struct error *err);
/* Writes the model's text for agents and the record, and replaces an earlier text. -EINVAL: the
 * text is too long. */
int stages_print_model(struct run *run, struct error *err);

/* The stages chosen for a run: their layers, and the stage of each node. */
struct stages_chosen {
	const struct stage_layers *layers;
	/* array of n_nodes. An unused node has a stage too, in case it is used later. This stage is
	 * never stage 0, because each node of stage 0 has a data shard. */
	const int *stage_of;
	/* Array of n_nodes: number of microbatches that each node holds at once */
	const int *slots;
	/* Number of microbatches in an iteration; a multiple of the number of nodes in stage 0 */
	int n_microbatches;
};
/* Sets these stages in the run's model and clusters. Must be called before any plan is made. */
int stages_take(struct run *run, const struct stages_chosen *s, struct error *err);

#endif
