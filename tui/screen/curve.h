/* curve.h - one or two series over iterations, with the run's marks below.
 *
 * A column of dots is a fixed number of iterations (a power of two). A curve that is full is
 * halved, and a short curve is widened by a power of two; it is never scaled continuously. The
 * ends of the value axis move in steps.
 */
#ifndef TUI_CURVE_H
#define TUI_CURVE_H

#include "tui/screen/screen.h"
#include "tui/run/state.h"
#include "tui/input/ui.h"

/* n elements of `stride` bytes in ascending order, with a u64 iteration and a float value at the
 * given offsets. */
struct series {
	const void *base;
	size_t n, stride, iteration_at, value_at;
	enum style style;
	/* There are many values: draws a moving average, and the values faintly behind it. */
	bool smooth;
};

/* Draws the values at the left, the curves, and marks and the last iteration in the bottom row.
 * Either series may be empty. zoom: the newest 1 / 2^zoom of the iterations is shown; the values at
 * the left are those of this part. */
void curve_draw(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct series series[2], int zoom, bool from_zero);

#endif
