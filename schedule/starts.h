/* starts.h - which placement to go on from, where nodes may be placed: the one given and others
 * are annealed side by side for a moment, the better half of them for twice as long, and so on
 * until one is left. Exchanges of two nodes within an annealing change a placement but little.
 *
 * The others are random ones whose sums are soon done: as soon as the limit asks for; without one,
 * as soon as a placement was found at all (place.h). Internal to schedule/.
 */
#ifndef SCHEDULE_STARTS_H
#define SCHEDULE_STARTS_H

#include "schedule/anneal.h"
#include "schedule/progress.h"

/* a has the placement given; it takes over what wins. Improvements on a are told to g.
 * -ENOMEM; errors of progress_note. */
int starts_run(struct progress *g, struct anneal *a, struct error *err);

#endif
