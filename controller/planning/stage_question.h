/* stage_question.h - the input for choosing how the members are best divided into stages: the
 * connected members described as a fleet, the model, and the present stages for comparison.
 *
 * A question is a copy of this data, so a thread can make the choice while the members change
 * (stage_choice.h). */
#ifndef CONTROLLER_PLANNING_STAGE_QUESTION_H
#define CONTROLLER_PLANNING_STAGE_QUESTION_H

#include "base/error.h"
#include "model/config.h"
#include "schedule/fleet/candidate.h"
#include "schedule/fleet/fleet.h"

struct members;

struct stage_question {
	struct fleet *fleet; /* owned */
	/* Array of fleet->n_nodes, owned: the run's node number of each node in the fleet */
	int *node_of;
	struct model_shape shape;
	struct candidate_frame frame; /* borrows the fields fleet and shape */
	int n_stages;                 /* wanted number of stages; 0: any number */
	/* The run's present stages. `seconds` is INFINITY until they have been planned. */
	struct candidate present;
	bool has_present; /* false: the run has no stages yet */
	/* Stages to compare with the present ones, without a choice. `seconds` is INFINITY until a
	 * plan for them was made. */
	struct candidate wanted;
	bool has_wanted;
};

/* Makes the question for all connected members, except those that the operator has excluded, or
 * that the controller has excluded because of a fault. n_microbatches: number of microbatches in
 * an iteration. -EINVAL: no member's speed is known. The caller frees *out. */
int stage_question_new(const struct members *members, int n_microbatches,
		       struct stage_question **out, struct error *err);
/* Lets the choice also change the number of sequences in a microbatch. An iteration keeps its
 * number of sequences. Call it only before a run has its first plan. */
void stage_question_resize(struct stage_question *q);
/* Changes the question: instead of a choice, the answer compares the iteration times of the present
 * stages and of the stages in stage_of. stage_of: for each node of the run, its stage; < 0: the
 * node is not used. */
void stage_question_compare(struct stage_question *q, const struct model_config *model,
			    const int *stage_of);
void stage_question_free(struct stage_question *q); /* q may be NULL */

#endif
