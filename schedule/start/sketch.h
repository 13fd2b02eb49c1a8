/* sketch.h - paths annealed by an estimate that needs no run, for large clusters: there a run takes
 * half a millisecond, and the first plan is far from good. Internal to schedule/.
 *
 * The estimate has no times. A data node takes as long as its round trips, without waiting, fill its
 * slots; the cost is the 8-norm mean of that over the data nodes. Microbatches of one data node go
 * in waves, as many at a time as it has slots. A node that more microbatches of one wave visit
 * than it can hold makes the rest wait for about half a trip; below that each pair may collide.
 */
#ifndef SCHEDULE_SKETCH_H
#define SCHEDULE_SKETCH_H

#include <stdint.h>

#include "schedule/problem/progress.h"

/* Anneals the paths of s in place, over so many proposals or until g says that it is over. What
 * comes out is legal, and may be worse than before under the execution model. -ENOMEM. */
int sketch_paths(struct solution *s, const struct progress *g, int64_t steps);

#endif
