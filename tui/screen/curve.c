/* Draws curves over iterations. The scale changes in steps only, so that a growing curve does not
 * move with every iteration. */
#include "tui/screen/curve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/screen/graph.h"

struct axes {
	uint64_t from, last;
	uint64_t per; /* iterations per column of dots */
	int wide;     /* columns of dots per iteration, if `per` is 1 */
	double low, high;
	int w, h; /* dots */
};

static uint64_t x_of(const struct series *s, size_t i)
{
	uint64_t v;

	memcpy(&v, (const char *)s->base + i * s->stride + s->iteration_at, sizeof(v));
	return v;
}

static double y_of(const struct series *s, size_t i)
{
	float v;

	memcpy(&v, (const char *)s->base + i * s->stride + s->value_at, sizeof(v));
	return (double)v;
}

static int dot_x(const struct axes *a, uint64_t iteration)
{
	return (int)((iteration - a->from) / a->per) * a->wide;
}

static int dot_y(const struct axes *a, double v)
{
	double part = (v - a->low) / (a->high - a->low);

	if (!(part > 0))
		part = 0;
	return (int)((part > 1 ? 1 : part) * (a->h - 1) + 0.5);
}

/* Returns a step (1, 2 or 5 times a power of 10) that divides the range into at most six. */
static double step_of(double range)
{
	static const double tenths[] = { 1, 2, 5 };
	double unit = 1e-3;

	for (;; unit *= 10)
		for (int i = 0; i < 3; i++)
			if (tenths[i] * unit * 6 >= range || unit > 1e9)
				return tenths[i] * unit;
}

static bool measure_values(struct axes *a, const struct series series[2], bool from_zero)
{
	double low = INFINITY, high = -INFINITY, step;

	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; i < series[k].n; i++) {
			double v = y_of(&series[k], i);

			if (!isfinite(v))
				continue;
			low = v < low ? v : low;
			high = v > high ? v : high;
		}
	}
	if (low > high)
		return false;
	low = fmax(low, -1e9);
	high = fmin(high, 1e9);
	if (from_zero && low > 0)
		low = 0;
	step = step_of(high - low);
	a->low = floor(low / step) * step;
	a->high = ceil(high / step) * step;
	if (a->high <= a->low)
		a->high = a->low + step;
	return true;
}

static bool measure_axes(struct axes *a, const struct series series[2], const struct canvas *c,
			 bool from_zero)
{
	uint64_t span;

	a->from = UINT64_MAX;
	a->last = 0;
	for (int k = 0; k < 2; k++) {
		if (series[k].n == 0)
			continue;
		if (x_of(&series[k], 0) < a->from)
			a->from = x_of(&series[k], 0);
		if (x_of(&series[k], series[k].n - 1) > a->last)
			a->last = x_of(&series[k], series[k].n - 1);
	}
	if (a->from > a->last)
		return false;
	span = a->last - a->from;
	a->w = c->w;
	a->h = c->h;
	a->per = 1;
	a->wide = 1;
	while (span / a->per >= (uint64_t)a->w)
		a->per *= 2;
	while (a->per == 1 && (span + 1) * (uint64_t)a->wide * 2 <= (uint64_t)a->w &&
	       a->wide < 8)
		a->wide *= 2;
	return measure_values(a, series, from_zero);
}

/* The second, sparse series has single points instead of lines if lines would hide the first
 * one. */
static void draw_series(struct canvas *c, const struct axes *a, const struct series *s,
			int which)
{
	bool line = which == 0 || c->graph == GRAPH_BRAILLE;
	int x0 = -1, y0 = 0;

	for (size_t i = 0; i < s->n; i++) {
		double v = y_of(s, i);
		int x, y;

		if (!isfinite(v))
			continue;
		x = dot_x(a, x_of(s, i));
		y = dot_y(a, v);
		if (x0 >= 0 && line)
			canvas_line(c, x0, y0, x, y, which);
		else
			canvas_dot(c, x, y, which);
		x0 = x;
		y0 = y;
	}
}

static void draw_marks(struct screen *out, struct rect plot, const struct axes *a,
		       const struct state_history *history)
{
	int dots = a->w / plot.w, y = plot.y + plot.h;
	char end[48];

	screen_fill(out, (struct rect){ plot.x, y, plot.w, 1 }, 0x2500, STYLE_RULE);
	snprintf(end, sizeof(end), "it %llu", (unsigned long long)a->last);
	screen_text(out, plot.x + plot.w - screen_columns(end), y, plot.w, STYLE_FAINT, end);
	for (size_t i = 0; i < history->n_notes; i++) {
		const struct msg_see_note *n = &history->notes[i];

		if (n->mark > ' ' && n->iteration >= a->from && n->iteration <= a->last)
			screen_put(out, plot.x + dot_x(a, n->iteration) / dots, y,
				   (uint32_t)n->mark, STYLE_MARK);
	}
}

void curve_draw(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct series series[2], const enum style styles[2], bool from_zero)
{
	struct rect plot = { at.x + 6, at.y, at.w - 7, at.h - 1 };
	struct canvas c;
	struct axes a;

	if (plot.w < 4 || plot.h < 1 || canvas_open(&c, u->display.graph, plot) != 0)
		return;
	if (!measure_axes(&a, series, &c, from_zero)) {
		screen_text(out, at.x + 1, at.y, at.w - 1, STYLE_FAINT,
			    "no iteration has ended yet");
		canvas_close(&c, out, styles);
		return;
	}
	draw_series(&c, &a, &series[0], 0);
	draw_series(&c, &a, &series[1], 1);
	canvas_close(&c, out, styles);
	screen_print(out, at.x, plot.y, 6, STYLE_FAINT, a.high >= 1000 ? "%5.0f" : "%5.2f",
		     a.high);
	if (plot.h > 1)
		screen_print(out, at.x, plot.y + plot.h - 1, 6, STYLE_FAINT,
			     a.low >= 1000 ? "%5.0f" : "%5.2f", a.low);
	draw_marks(out, plot, &a, &s->history);
}
