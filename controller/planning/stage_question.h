/* stage_question.h - asks how the members would best be divided into stages: the fleet that the
 * connected members are, the model, and the present stages for comparison.
 *
 * A question is a copy. A thread can answer it while the members change (stage_choice.h). */
#ifndef CONTROLLER_PLANNING_STAGE_QUESTION_H
#define CONTROLLER_PLANNING_STAGE_QUESTION_H

#include "base/error.h"
#include "schedule/fleet/candidate.h"
#include "schedule/fleet/fleet.h"

struct members;

struct stage_question {
	struct fleet *fleet; /* owned */
	int *node_of;        /* (fleet->n_nodes) the run's node of each node of the fleet; owned */
	struct model_shape shape;
	struct candidate_frame frame; /* borrows fleet and shape */
	int n_stages;                 /* wanted; 0: any number */
	/* The run's stages as they are now. Its seconds are INFINITY until they are planned. */
	struct candidate present;
	bool has_present; /* false: the run has no stages yet */
};

/* Asks about all connected members but those that an operator or the controller has excluded for a
 * fault. n_microbatches: of an iteration. -EINVAL: no member's speed is known. The caller frees
 * *out. */
int stage_question_new(const struct members *members, int n_microbatches,
		       struct stage_question **out, struct error *err);
void stage_question_free(struct stage_question *q); /* NULL is allowed */

#endif
