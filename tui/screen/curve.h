/* curve.h - one or two series over iterations, with the run's marks below.
 *
 * A column of dots is a fixed number of iterations (a power of two): the curve is never
 * refitted, it only halves when it is full, and it widens by a power of two while it is short.
 * The ends of the value axis move in steps.
 */
#ifndef TUI_CURVE_H
#define TUI_CURVE_H

#include "tui/screen/screen.h"
#include "tui/run/state.h"
#include "tui/input/ui.h"

/* n elements of `stride` bytes: a u64 iteration and a float value at these offsets. Ascending.
 */
struct series {
	const void *base;
	size_t n, stride, iteration_at, value_at;
};

/* Fills the rectangle: values at the left, curve, marks and the last iteration on the bottom
 * row. Either series may be empty. */
void curve_draw(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct series series[2], const enum style styles[2], bool from_zero);

#endif
