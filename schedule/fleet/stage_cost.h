/* stage_cost.h - memory and time that a stage of some layers needs on a card, from the numbers of
 * the model (base/model_shape.h) and of the card.
 *
 * A pass takes the time of its arithmetic at the speed that the card reaches, or the time in which
 * the card's memory moves the weights, whichever is longer. A backward pass does twice the work of
 * a forward pass, reads the weights, and reads and writes their gradient.
 */
#ifndef SCHEDULE_STAGE_COST_H
#define SCHEDULE_STAGE_COST_H

#include <stdbool.h>

#include "base/model_shape.h"
#include "schedule/fleet/fleet.h"

/* Returns the bytes of a stage with room for `slots` microbatches of `batch` sequences. has_ends:
 * the stage holds the embedding and the head, as stage 0 does. */
double stage_cost_bytes(const struct model_shape *m, int layers, bool has_ends, int batch,
			enum shape_recompute level, int slots);

struct stage_times {
	double forward_s, backward_s, loss_s; /* times for one microbatch */
};
/* Returns the times of one microbatch. `layers` may be an average, because the times of both passes
 * grow linearly with it. */
struct stage_times stage_cost_times(const struct model_shape *m, const struct fleet_machines *e,
				    double layers, int batch, enum shape_recompute level);

/* Returns the number of weights of the stage. */
double stage_cost_weights(const struct model_shape *m, int layers, bool has_ends);

enum { STAGE_MOST_SLOTS = 64 };
struct stage_fit {
	/* Number of microbatches that fit, at most STAGE_MOST_SLOTS; 0: there is too little
	 * memory */
	int slots;
	enum shape_recompute level;
	/* Bytes that are missing for one microbatch; 0: one microbatch fits */
	double missing_bytes;
};
/* Fits a stage into a card's memory. Blocks are recomputed if the card would otherwise have fewer
 * than `wanted` slots. */
struct stage_fit stage_cost_fit(const struct model_shape *m, const struct fleet_machines *e,
				int layers, bool has_ends, int batch, int wanted);

#endif
