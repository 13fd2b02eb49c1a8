/* curve.h - draws series over iterations, tokens or time, with the run's marks below.
 *
 * A column of dots stands for a fixed number of iterations, a power of two. When a curve reaches
 * the right end, this number is doubled. A short curve is widened by a power of two. The y axis
 * grows in steps. Thus a curve never moves continuously.
 */
#ifndef TUI_CURVE_H
#define TUI_CURVE_H

#include "tui/run/other_runs.h"
#include "tui/run/state.h"
#include "tui/screen/graph.h"
#include "tui/screen/screen.h"

/* The quantity on the x axis. */
enum loss_axis { LOSS_BY_ITERATION, LOSS_BY_TOKENS, LOSS_BY_TIME, LOSS_AXES };

/* An array of n elements, `stride` bytes each, in ascending order of iterations. At the given
 * offsets an element has its iteration (u64) and its value (float). */
struct series {
	const void *base;
	size_t n, stride, iteration_at, value_at;
	enum style style;
	/* True: a series with many values is drawn as its moving average, with the values faintly
	 * behind the average. */
	bool smooth;
	const struct other_run *other; /* the run to which the series belongs; NULL: this run */
};

#define SERIES(array, count, type, field, style, smooth) \
	{ \
		array, count, sizeof(struct type), offsetof(struct type, iteration), \
			offsetof(struct type, field), style, smooth, NULL \
	}

/* The series that a view shows, and the part of the x axis that is shown. */
struct curve_view {
	struct series own[2];            /* series of this run; the second one has few values */
	const struct other_runs *others; /* other runs; NULL: none */
	enum loss_axis axis;
	enum graph graph;
	int zoom;       /* the newest 1 / 2^zoom of the x axis is shown */
	bool from_zero; /* the y axis begins at 0 */
	/* X at which the runs are compared; 0: at the newest value of this run. */
	uint64_t cursor;
	/* true: the last x is written below the last value; false: at the right end. */
	bool end_below_last;
};

/* The values of the curves at the cursor: values[0] of this run, then of the other runs. */
struct curve_reading {
	char place[48]; /* x of the cursor as text: "it 40", "1.3M tokens" */
	struct curve_value {
		double loss, validation; /* NAN: the run has no value there */
	} values[1 + OTHER_RUNS];
};

/* Draws the y axis at the left, and the curves. Writes the marks and the last x in the bottom row.
 * If there are other runs, also draws the cursor and sets *reading. Without other runs, `reading`
 * may be NULL. The y axis fits the part of the curves that is shown. */
void curve_draw(struct screen *out, struct rect at, const struct state *s,
		const struct curve_view *view, struct curve_reading *reading);
/* Sets the ends of the x axis as curve_draw shows it, and the x of the cursor. Returns false if no
 * value is known. */
bool curve_ends(const struct state *s, const struct curve_view *view, uint64_t *from,
		uint64_t *last, uint64_t *cursor);
/* Returns the letter of a run: 0 is this run, 1 the first of the other runs, and so on. */
char curve_letter(uint32_t run);
/* Returns the style of another run's curve. */
enum style curve_style(uint32_t other);

#endif
