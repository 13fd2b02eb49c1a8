/* other_runs.h - losses of other runs, which the Loss view draws beside those of this run. */
#ifndef TUI_OTHER_RUNS_H
#define TUI_OTHER_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

enum { OTHER_RUNS = 4, OTHER_POINTS = 8192 };

struct other_point {
	uint64_t iteration;
	int64_t elapsed_us; /* real time since the run's first iteration began */
	float loss;
};

/* The losses of a run in order of iterations. For a long run only every second, fourth or eighth
 * loss (and so on) is kept, so that a curve has at most OTHER_POINTS. */
struct other_curve {
	LIST(struct other_point) points;
	uint64_t step; /* every step-th point is kept in the curve; 0: the curve has no points */
	uint64_t n_added;
};

struct other_run {
	char name[64]; /* name of the run's folder */
	uint64_t tokens_per_iteration;
	struct other_curve train, validation;
	int64_t began_us;            /* wall-clock time at which the first iteration began */
	uint64_t n_read, n_expected; /* number of iterations read, and in the record */
};

struct other_runs {
	struct other_run list[OTHER_RUNS]; /* array of n runs; the first one is the reference */
	uint32_t n;
};

/* Adds a point. A point whose iteration is not above that of the newest point is ignored. If the
 * clock goes back, the time of the newest point is used. */
void other_curve_add(struct other_curve *c, struct other_point p);
/* Makes p the last point, even if the step would drop it. Call this once, after all other
 * points. */
void other_curve_end(struct other_curve *c, struct other_point p);
/* Frees all runs. */
void other_runs_clear(struct other_runs *o);

#endif
