/* curve.h - series over iterations, tokens or time, with the run's marks below.
 *
 * A column of dots is a fixed number of iterations (a power of two). A curve that is full is
 * halved, and a short curve is widened by a power of two; it is never scaled continuously. The
 * ends of the value axis move in steps.
 */
#ifndef TUI_CURVE_H
#define TUI_CURVE_H

#include "tui/run/other_runs.h"
#include "tui/run/state.h"
#include "tui/screen/graph.h"
#include "tui/screen/screen.h"

/* The quantity on the x axis. */
enum loss_axis { LOSS_BY_ITERATION, LOSS_BY_TOKENS, LOSS_BY_TIME, LOSS_AXES };

/* n elements of `stride` bytes each, in ascending order of iterations. A u64 iteration and a float
 * value are at the given offsets. */
struct series {
	const void *base;
	size_t n, stride, iteration_at, value_at;
	enum style style;
	/* There are many values: draws a moving average, and the values faintly behind it. */
	bool smooth;
	const struct other_run *other; /* the run that the series belongs to; NULL: this run */
};

#define SERIES(array, count, type, field, style, smooth) \
	{ \
		array, count, sizeof(struct type), offsetof(struct type, iteration), \
			offsetof(struct type, field), style, smooth, NULL \
	}

/* The series that a view shows, its axis, and its part of the axis. */
struct curve_view {
	struct series own[2];            /* series of this run; the second one is sparse */
	const struct other_runs *others; /* other runs; NULL: none */
	enum loss_axis axis;
	enum graph graph;
	int zoom;                        /* the view shows the newest 1 / 2^zoom of the axis */
	bool from_zero;                  /* the axis of values begins at 0 */
	uint64_t cursor;                 /* place of the cursor; 0: the newest value of this run */
	bool end_below_last; /* the last place is written below the last value, not at the right */
};

/* The values at the cursor, as drawn: of this run, then of other runs. */
struct curve_reading {
	char place[48]; /* text of the place: "it 40", "1.3M tokens" */
	struct curve_value {
		double loss, validation; /* values at the cursor; NAN: the run has none there */
	} values[1 + OTHER_RUNS];
};

/* Draws the values at the left, the curves, and marks and the last iteration in the bottom row; and
 * the cursor, if there are other runs. The values at the left are those of the part that is shown.
 * *reading is written if there are other runs; it may be NULL otherwise. */
void curve_draw(struct screen *out, struct rect at, const struct state *s,
		const struct curve_view *view, struct curve_reading *reading);
/* Gives the ends of the axis that curve_draw shows, and the place of the cursor. Returns false if
 * no value is known. */
bool curve_ends(const struct state *s, const struct curve_view *view, uint64_t *from,
		uint64_t *last, uint64_t *cursor);
/* Returns the letter that marks this run (0) or another one on the curves. */
char curve_letter(uint32_t run);
/* Returns the style of another run's curve. */
enum style curve_style(uint32_t other);

#endif
