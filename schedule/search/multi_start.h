/* multi_start.h - what to go on from: several starts are annealed side by side for a moment, up to 60
 * microbatches the better half of them for twice as long, and so on until one is left.
 *
 * Where nodes may be placed, the starts are the placement given and others: exchanges of two nodes
 * within an annealing change a placement but little. The others are random ones whose sums are soon
 * done: as soon as the limit asks for; without one, as soon as a placement was found at all
 * (place.h).
 *
 * Where data nodes send six microbatches or more and no lanes are planned, they are tied at
 * first: those of a data node take the same path, two and two or, in half of the starts where
 * stages are given, all of them. That leaves few choices, and the best of these are good starts.
 * With a plan to start from, what is left of it is one of them.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_MULTI_START_H
#define SCHEDULE_MULTI_START_H

#include "schedule/improve/anneal.h"
#include "schedule/bound/bound.h"
#include "schedule/problem/progress.h"

/* a has the placement given; it takes over what wins. Improvements on a are told to g.
 * -ENOMEM; errors of progress_note. */
int multi_start_run(struct progress *g, struct anneal *a, struct error *err);

/* In large clusters: the solution of a, and a sketch of it (sketch.h) of so many proposals, annealed for so many steps
 * each (0: only run). */
int multi_start_sketched(struct progress *g, struct anneal *a, int64_t sketch_steps, int64_t steps,
		    struct error *err);

/* As multi_start_run, with tied microbatches, for the placement of a. b: NULL, or worked on meanwhile. */
int multi_start_tied(struct progress *g, struct anneal *a, struct bound *b, struct error *err);

#endif
