/* sketch.h - anneals paths by an estimate that needs no simulation. In large clusters a simulation
 * takes half a millisecond, and the first plan is far from good. Internal to schedule/.
 *
 * The estimate does not use points in time. The time of a data node is the sum of its round trips
 * without waiting, divided by its slots; the cost is the mean over the data nodes in the 8-norm.
 * Microbatches of a data node travel in waves, as many at a time as the data node has slots. If
 * more microbatches of a wave visit a node than the node can hold, each microbatch beyond that
 * number waits for about half a trip. Below that number each pair of microbatches can collide. */
#ifndef SCHEDULE_SKETCH_H
#define SCHEDULE_SKETCH_H

#include <stdint.h>

#include "schedule/problem/progress.h"

/* Anneals the paths of s in place, for `steps` proposals or until g is over. The resulting paths
 * are legal, but in the execution model they can take longer than before. */
void sketch_paths(struct solution *s, const struct progress *g, int64_t steps);

#endif
