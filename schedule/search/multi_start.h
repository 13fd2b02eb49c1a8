/* multi_start.h - chooses the start of the annealing among several. With up to 60 microbatches,
 * all starts are annealed briefly, then the better half of them for twice as long, and so on
 * until a single start is left.
 *
 * If nodes may be placed, the starts have different placements: the given one and random ones.
 * The annealing itself exchanges two nodes at a time, which changes a placement only a little.
 * The random placements have short sums of gradients: within the limit or, without a limit, as
 * short as in the best placement that place.h has found.
 *
 * If data nodes send six microbatches or more and no lanes are planned, microbatches of a data
 * node are tied at first: they take the same path. If the stages are given, half of the starts
 * tie all microbatches of a data node. All other starts tie groups of two. Few paths are then
 * possible, and the best of these are good starts. If there is a plan to start from, its repaired
 * paths are one of the starts.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_MULTI_START_H
#define SCHEDULE_MULTI_START_H

#include "schedule/improve/anneal.h"
#include "schedule/bound/bound.h"
#include "schedule/problem/progress.h"

/* Anneals several placements, among them the placement of `a`. `a` adopts the best solution. A
 * solution that is better than the solution of `a` is reported to g. Errors are those of
 * progress_note. */
int multi_start_run(struct progress *g, struct anneal *a, struct error *err);

/* For large clusters: makes a sketch (sketch.h) from the solution of `a` with sketch_steps
 * proposals. Compares the sketch with this solution, after annealing both for `steps` steps. If
 * `steps` is 0, only simulates both. `a` adopts the better of the two. */
int multi_start_sketched(struct progress *g, struct anneal *a, int64_t sketch_steps, int64_t steps,
			 struct error *err);

/* Anneals starts with tied microbatches and the placement of `a`, which adopts the best start.
 * Meanwhile improves the bound b; NULL: none. */
int multi_start_tied(struct progress *g, struct anneal *a, struct bound *b, struct error *err);

#endif
