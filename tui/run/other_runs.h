/* other_runs.h - losses of other runs. The Loss view draws them together with the losses of this
 * run. */
#ifndef TUI_OTHER_RUNS_H
#define TUI_OTHER_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

enum { OTHER_RUNS = 4, OTHER_POINTS = 8192 };

struct other_point {
	uint64_t iteration;
	int64_t elapsed_us; /* real time since the first iteration of its run began */
	float loss;
};

/* Losses of a run in order of iterations. A long run's curve has only every second, fourth, eighth
 * loss and so on, so that it has at most OTHER_POINTS points. */
struct other_curve {
	LIST(struct other_point) points;
	/* The curve keeps every step-th point that is added; 0: no point was added yet. */
	uint64_t step;
	uint64_t n_added;
};

struct other_run {
	char name[64]; /* name of the run's folder */
	uint64_t tokens_per_iteration;
	struct other_curve train, validation;
	int64_t began_us;            /* wall-clock time at which the first iteration began */
	/* Number of iterations that were read so far, and number of iterations in the record. */
	uint64_t n_read, n_expected;
};

struct other_runs {
	/* Array of n: the runs; all others are compared with the first one. */
	struct other_run list[OTHER_RUNS];
	uint32_t n;
};

/* Adds a point. Ignores it if its iteration is not above the newest point's iteration. If its time
 * is earlier than the newest point's time, replaces its time by the newest point's time. */
void other_curve_add(struct other_curve *c, struct other_point p);
/* Adds the last point of a run, which is kept whatever `step` is. Call it once, after all other
 * points. */
void other_curve_end(struct other_curve *c, struct other_point p);
/* Frees all runs. */
void other_runs_clear(struct other_runs *o);

#endif
