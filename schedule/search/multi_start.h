/* multi_start.h - chooses the start of the annealing among several. With up to 60 microbatches, all
 * starts are annealed for a moment, then the better half of them for twice as long, and so on until
 * one is left.
 *
 * If nodes may be placed, the starts are the given placement and random ones. Exchanges of two
 * nodes during annealing change a placement only a little, so different placements are needed at
 * the start. The random placements have short sums: within the limit or, without a limit, as short
 * as in the best placement that place.h has found.
 *
 * If data nodes send six microbatches or more and no lanes are planned, microbatches are tied at
 * first: those of a data node take the same path, in groups of two or, in half of the starts with
 * given stages, all of them. That leaves few possible paths, and the best of these are good starts.
 * If there is a plan to start from, its repaired paths are one of the starts.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_MULTI_START_H
#define SCHEDULE_MULTI_START_H

#include "schedule/improve/anneal.h"
#include "schedule/bound/bound.h"
#include "schedule/problem/progress.h"

/* Anneals several placements, one of which is that of a; a adopts the best. Improvements on a are
 * reported to g. Errors are those of progress_note. */
int multi_start_run(struct progress *g, struct anneal *a, struct error *err);

/* For large clusters: compares the solution of a with a sketch of it (sketch.h) of sketch_steps
 * proposals. Both are annealed for `steps` steps first (0: only simulated). a adopts the better
 * one. */
int multi_start_sketched(struct progress *g, struct anneal *a, int64_t sketch_steps, int64_t steps,
			 struct error *err);

/* Anneals starts with tied microbatches, with the placement of a, which adopts the best start. b:
 * the bound, which is improved meanwhile; NULL: none. */
int multi_start_tied(struct progress *g, struct anneal *a, struct bound *b, struct error *err);

#endif
