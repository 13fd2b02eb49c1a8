/* sketch.h - anneals paths by an estimate that needs no simulation. In large clusters a
 * simulation takes half a millisecond, and the first plan is far from good. Internal to
 * schedule/.
 *
 * The estimate has no timetable. The time of a data node is the sum of its round trips without
 * waiting, divided by its slots. The cost is the mean of these times in the 8-norm, plus waiting
 * times. Microbatches of a data node travel in waves, as many at a time as the data node has
 * slots. If more microbatches of a wave visit a node than the node has slots, each surplus
 * microbatch waits for about half a round trip. In addition, each pair of microbatches of a wave
 * at a node may collide, which costs a little. */
#ifndef SCHEDULE_SKETCH_H
#define SCHEDULE_SKETCH_H

#include <stdint.h>

#include "schedule/problem/progress.h"

/* Anneals the paths of s in place, for `steps` proposals or until the limits of g are reached.
 * The resulting paths are legal, but the simulated iteration may take longer than with the old
 * paths. */
void sketch_paths(struct solution *s, const struct progress *g, int64_t steps);

#endif
