/* Draws curves over iterations. The scale changes in steps only, so that a growing curve does not
 * move with every iteration. */
#include "tui/screen/curve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/screen/glyphs.h"
#include "tui/screen/graph.h"

struct axes {
	uint64_t from, last;
	uint64_t per; /* number of iterations in a column of dots */
	int wide;     /* number of columns of dots for an iteration, if `per` is 1 */
	double low, high;
	int w, h; /* dots */
	enum loss_axis unit;
	const struct state_history *history;
};

/* The moving average covers this part of the values that are shown. */
enum { SMOOTH_PARTS = 32 };

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

/* Returns when the newest iteration up to `iteration` ended. */
static int64_t ended_us(const struct state_history *h, uint64_t iteration)
{
	size_t low = 0, high = h->n_iterations;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (h->iterations[middle].iteration <= iteration)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? h->iterations[low - 1].at_us : 0;
}

/* Returns the place of an iteration on the axis: its number, or a time. */
static uint64_t place_of(const struct axes *a, const struct series *s, size_t i)
{
	if (a->unit != LOSS_BY_TIME)
		return x_of(s, i);
	if (s->base == a->history->iterations)
		return (uint64_t)a->history->iterations[i].at_us;
	return (uint64_t)ended_us(a->history, x_of(s, i));
}

static int dot_x(const struct axes *a, uint64_t place)
{
	return (int)((place - a->from) / a->per) * a->wide;
}

/* Returns the first element that is shown. */
static size_t first_shown(const struct axes *a, const struct series *s)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (place_of(a, s, middle) < a->from)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
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
		for (size_t i = first_shown(a, &series[k]); i < series[k].n; i++) {
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
			 int zoom, bool from_zero)
{
	uint64_t span;

	a->from = UINT64_MAX;
	a->last = 0;
	for (int k = 0; k < 2; k++) {
		if (series[k].n == 0)
			continue;
		if (place_of(a, &series[k], 0) < a->from)
			a->from = place_of(a, &series[k], 0);
		if (place_of(a, &series[k], series[k].n - 1) > a->last)
			a->last = place_of(a, &series[k], series[k].n - 1);
	}
	if (a->from > a->last)
		return false;
	a->from = a->last - ((a->last - a->from) >> zoom);
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

/* Draws a line through the values, or single points. average: the number of values that a moving
 * average covers; 1: none. */
static void draw_series(struct canvas *c, const struct axes *a, const struct series *s, int which,
			bool line, double average)
{
	size_t first = first_shown(a, s), before = (size_t)(average > 1 ? 4 * average : 0);
	double mean = 0, weight = 0;
	int x0 = -1, y0 = 0;

	for (size_t i = first > before ? first - before : 0; i < s->n; i++) {
		double v = y_of(s, i);
		int x, y;

		if (!isfinite(v))
			continue;
		mean += (v - mean) * 2 / (average + 1);
		weight += (1 - weight) * 2 / (average + 1);
		if (i < first)
			continue;
		x = dot_x(a, place_of(a, s, i));
		y = dot_y(a, mean / weight);
		if (x0 >= 0 && line)
			canvas_line(c, x0, y0, x, y, which);
		else
			canvas_dot(c, x, y, which);
		x0 = x;
		y0 = y;
	}
}

/* Draws the first series, its moving average if it has many values, and the second series. The
 * second, sparse series has single points instead of lines if lines would hide the first one. */
static void draw_all(struct canvas *c, const struct axes *a, const struct series series[2],
		     enum style styles[3])
{
	size_t shown = series[0].n - first_shown(a, &series[0]);
	double average = (double)shown / SMOOTH_PARTS;

	styles[0] = styles[1] = series[0].style;
	styles[2] = series[1].style;
	draw_series(c, a, &series[0], 0, true, 1);
	if (series[0].smooth && average >= 2) {
		styles[0] = STYLE_FAINT;
		c->has_background = true;
		draw_series(c, a, &series[0], 1, true, average);
	}
	draw_series(c, a, &series[1], 2, c->graph == GRAPH_BRAILLE, 1);
}

/* Writes a place on the axis: "it 40", "1.3M tokens" or "2h15". */
static void write_place(const struct axes *a, const struct state *s, uint64_t place, char text[48])
{
	char number[16];

	if (a->unit == LOSS_BY_TOKENS) {
		glyphs_count((double)place * (double)s->run.tokens_per_iteration, number);
		snprintf(text, 48, "%s tokens", number);
	} else if (a->unit == LOSS_BY_TIME) {
		const struct state_history *h = a->history;
		double before_s = 0;

		if (h->n_iterations)
			before_s = (double)h->iterations[0].at_us / 1e6 -
				   (double)h->iterations[0].real_s;
		glyphs_age((double)place / 1e6 - before_s, number);
		snprintf(text, 48, "%s", number);
	} else {
		snprintf(text, 48, "it %llu", (unsigned long long)place);
	}
}

static void draw_marks(struct screen *out, struct rect plot, const struct axes *a,
		       const struct state *s, int zoom, bool below_last)
{
	const struct state_history *history = a->history;
	int dots = a->w / plot.w, y = plot.y + plot.h, x;
	char end[48], begin[48];

	screen_fill(out, (struct rect){ plot.x, y, plot.w, 1 }, 0x2500, STYLE_RULE);
	write_place(a, s, a->last, end);
	write_place(a, s, a->from, begin);
	if (zoom > 0)
		screen_text(out, plot.x, y, plot.w, STYLE_FAINT, begin);
	x = plot.w - screen_columns(end);
	if (below_last)
		x = dot_x(a, a->last) / dots + 1 - screen_columns(end);
	if (x >= (zoom > 0 ? screen_columns(begin) : 0))
		screen_text(out, plot.x + x, y, plot.w - x, STYLE_FAINT, end);
	for (size_t i = 0; i < history->n_notes; i++) {
		const struct msg_see_note *n = &history->notes[i];
		uint64_t place = a->unit == LOSS_BY_TIME ? (uint64_t)n->at_us : n->iteration;

		if (n->mark > ' ' && place >= a->from && place <= a->last)
			screen_put(out, plot.x + dot_x(a, place) / dots, y, (uint32_t)n->mark,
				   STYLE_MARK);
	}
}

void curve_draw(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct series series[2], int zoom, bool from_zero)
{
	struct rect plot = { at.x + 6, at.y, at.w - 7, at.h - 1 };
	enum style styles[3] = { STYLE_FAINT, STYLE_FAINT, STYLE_FAINT };
	struct canvas c;
	struct axes a = { .unit = u->display.loss_axis, .history = &s->history };

	if (plot.w < 4 || plot.h < 1 || canvas_open(&c, u->display.graph, plot) != 0)
		return;
	if (!measure_axes(&a, series, &c, zoom, from_zero)) {
		screen_text(out, at.x + 1, at.y, at.w - 1, STYLE_FAINT,
			    "no iteration has ended yet");
		canvas_close(&c, out, styles);
		return;
	}
	draw_all(&c, &a, series, styles);
	canvas_close(&c, out, styles);
	screen_print(out, at.x, plot.y, 6, STYLE_FAINT, a.high >= 1000 ? "%5.0f" : "%5.2f",
		     a.high);
	if (plot.h > 1)
		screen_print(out, at.x, plot.y + plot.h - 1, 6, STYLE_FAINT,
			     a.low >= 1000 ? "%5.0f" : "%5.2f", a.low);
	draw_marks(out, plot, &a, s, zoom, u->display.view == VIEW_LOSS);
}
