/* sketch.h - anneals paths by an estimate that needs no simulation. In large clusters a simulation
 * takes half a millisecond, and the first plan is far from good. Internal to schedule/.
 *
 * The estimate knows no points in time. The time of a data node is the sum of its round trips
 * without waiting, divided by its slots; the cost is the mean over the data nodes in the 8-norm.
 * Microbatches of a data node travel in waves, as many at a time as the data node has slots. If
 * more microbatches of a wave visit a node than the node can hold, each one too many waits for
 * about half a trip. Below that number each pair can collide.
 */
#ifndef SCHEDULE_SKETCH_H
#define SCHEDULE_SKETCH_H

#include <stdint.h>

#include "schedule/problem/progress.h"

/* Anneals the paths of s in place, for `steps` proposals or until g is over. The result is legal,
 * but can be worse than before under the execution model. */
void sketch_paths(struct solution *s, const struct progress *g, int64_t steps);

#endif
