/* Draws curves of losses. The scale changes only in steps, so that a growing curve does not move
 * with every iteration. */
#include "tui/screen/curve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/screen/glyphs.h"
#include "tui/screen/graph.h"

struct axes {
	uint64_t from, last, cursor;
	uint64_t per; /* number of units of the x axis in a column of dots */
	int wide;     /* number of columns of dots for a unit of the x axis, if `per` is 1 */
	double low, high;
	int w, h; /* size of the curve in dots */
	enum loss_axis unit;
	const struct state_history *history;
	double began_us; /* start of this run's first iteration, on the controller's clock */
	uint64_t tokens; /* number of tokens in an iteration of this run */
	/* array of n_others: training losses of the other runs */
	struct series others[OTHER_RUNS];
	uint32_t n_others;
};

/* A moving average covers 1 / SMOOTH_PARTS of the values that are shown. */
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

/* Returns the time at which `iteration` ended. If this iteration is unknown, returns the time at
 * which the nearest known iteration before it ended; 0: there is none. */
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

char curve_letter(uint32_t run)
{
	return (char)('A' + run);
}

enum style curve_style(uint32_t other)
{
	static const enum style styles[OTHER_RUNS] = { STYLE_MICROBATCH_0 + 4,
						       STYLE_MICROBATCH_0 + 10,
						       STYLE_MICROBATCH_0 + 2,
						       STYLE_MICROBATCH_0 + 5 };

	return styles[other % OTHER_RUNS];
}

/* Makes a series of another run's training or validation losses. */
static struct series series_of(const struct other_run *o, bool validation, enum style style)
{
	const struct other_curve *c = validation ? &o->validation : &o->train;

	return (struct series){ .base = c->points.list,
				.n = c->points.n,
				.stride = sizeof(struct other_point),
				.iteration_at = offsetof(struct other_point, iteration),
				.value_at = offsetof(struct other_point, loss),
				.style = style,
				.other = o,
				.smooth = !validation };
}

/* Returns the x of another run's point on this run's axis. On the axis of tokens, the unit is the
 * number of tokens of an iteration of this run. On the axis of time, both runs begin at the same
 * x. */
static uint64_t other_place(const struct axes *a, const struct other_run *o,
			    const struct other_point *p)
{
	double place = (double)p->iteration;

	if (a->unit == LOSS_BY_TIME)
		place = a->began_us + (double)p->elapsed_us;
	else if (a->unit == LOSS_BY_TOKENS && a->tokens && o->tokens_per_iteration)
		place *= (double)o->tokens_per_iteration / (double)a->tokens;
	return place > 0 ? place < 1e17 ? (uint64_t)place : (uint64_t)1e17 : 0;
}

/* Returns the x of element i of a series: an iteration's number, or a time. */
static uint64_t place_of(const struct axes *a, const struct series *s, size_t i)
{
	if (s->other)
		return other_place(a, s->other, (const struct other_point *)s->base + i);
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

/* Returns the index of the first element that is not left of the axis. */
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

/* Returns a step (1, 2 or 5 times a power of 10) that fits at most six times into the range. */
static double step_of(double range)
{
	static const double tenths[] = { 1, 2, 5 };
	double unit = 1e-3;

	for (;; unit *= 10)
		for (int i = 0; i < 3; i++)
			if (tenths[i] * unit * 6 >= range || unit > 1e9)
				return tenths[i] * unit;
}

/* Returns how many values the moving average of a series covers; 1: no average is drawn. Every
 * series is averaged over an equally long part of the x axis. */
static double average_of(const struct axes *a, const struct series *s)
{
	double average = (double)(s->n - first_shown(a, s)) / SMOOTH_PARTS;
	uint64_t begin, end;

	if (s->n == 0)
		return 1;
	begin = place_of(a, s, 0);
	end = place_of(a, s, s->n - 1);
	begin = begin > a->from ? begin : a->from;
	if (end > begin)
		average *= (double)(a->last - a->from) / (double)(end - begin);
	return s->smooth && average >= 2 ? average : 1;
}

/* Steps through the moving averages of the values that are shown. */
struct walk {
	const struct axes *axes;
	const struct series *series;
	size_t i, first;
	double average, mean, weight;
};

static struct walk walk_begin(const struct axes *a, const struct series *s, double average)
{
	size_t first = first_shown(a, s), before = (size_t)(average > 1 ? 4 * average : 0);

	return (struct walk){ a, s, first > before ? first - before : 0, first, average, 0, 0 };
}

static bool walk_next(struct walk *w, uint64_t *place, double *value)
{
	while (w->i < w->series->n) {
		size_t i = w->i++;
		double v = y_of(w->series, i);

		if (!isfinite(v))
			continue;
		w->mean += (v - w->mean) * 2 / (w->average + 1);
		w->weight += (1 - w->weight) * 2 / (w->average + 1);
		if (i < w->first)
			continue;
		*place = place_of(w->axes, w->series, i);
		*value = w->mean / w->weight;
		return true;
	}
	return false;
}

static void measure_series(const struct axes *a, const struct series *s, double average,
			   double *low, double *high)
{
	struct walk w = walk_begin(a, s, average);
	uint64_t place;
	double v;

	while (walk_next(&w, &place, &v)) {
		*low = v < *low ? v : *low;
		*high = v > *high ? v : *high;
	}
}

static bool measure_values(struct axes *a, const struct curve_view *view)
{
	double low = INFINITY, high = -INFINITY, step;

	for (int k = 0; k < 2; k++)
		measure_series(a, &view->own[k], 1, &low, &high);
	for (uint32_t k = 0; k < a->n_others; k++)
		measure_series(a, &a->others[k], average_of(a, &a->others[k]), &low, &high);
	if (low > high)
		return false;
	low = fmax(low, -1e9);
	high = fmin(high, 1e9);
	if (view->from_zero && low > 0)
		low = 0;
	step = step_of(high - low);
	a->low = floor(low / step) * step;
	a->high = ceil(high / step) * step;
	if (a->high <= a->low)
		a->high = a->low + step;
	return true;
}

static void take_ends(struct axes *a, const struct series *s)
{
	if (s->n == 0)
		return;
	if (place_of(a, s, 0) < a->from)
		a->from = place_of(a, s, 0);
	if (place_of(a, s, s->n - 1) > a->last)
		a->last = place_of(a, s, s->n - 1);
}

/* Finds the ends of the x axis, from the series of this run and of other runs. Returns false if no
 * value is known. */
static bool measure_ends(struct axes *a, const struct curve_view *view)
{
	a->n_others = view->others ? view->others->n : 0;
	for (uint32_t k = 0; k < a->n_others; k++)
		a->others[k] = series_of(&view->others->list[k], false, curve_style(k));
	a->from = UINT64_MAX;
	a->last = 0;
	for (int k = 0; k < 2; k++)
		take_ends(a, &view->own[k]);
	for (uint32_t k = 0; k < a->n_others; k++)
		take_ends(a, &a->others[k]);
	if (a->from > a->last)
		return false;
	a->from = a->last - ((a->last - a->from) >> view->zoom);
	a->cursor = view->cursor;
	if (a->cursor == 0)
		a->cursor =
			view->own[0].n ? place_of(a, &view->own[0], view->own[0].n - 1) : a->last;
	a->cursor = a->cursor < a->from ? a->from : a->cursor > a->last ? a->last : a->cursor;
	return true;
}

static bool measure_axes(struct axes *a, const struct curve_view *view, const struct canvas *c)
{
	uint64_t span;

	if (!measure_ends(a, view))
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
	return measure_values(a, view);
}

/* Draws the values of a series as a line or as single points. average: how many values the moving
 * average covers; 1: no average. */
static void draw_series(struct canvas *c, const struct axes *a, const struct series *s, int which,
			bool line, double average)
{
	struct walk w = walk_begin(a, s, average);
	int x0 = -1, y0 = 0;
	uint64_t place;
	double v;

	while (walk_next(&w, &place, &v)) {
		int x = dot_x(a, place), y = dot_y(a, v);

		if (x0 >= 0 && line)
			canvas_line(c, x0, y0, x, y, which);
		else
			canvas_dot(c, x, y, which);
		x0 = x;
		y0 = y;
	}
}

/* Draws the series of this run, then those of other runs. The first series gets a moving average if
 * it has many values. The second series has few values; without braille it is drawn as single
 * points, because lines would hide the first series. */
static void draw_all(struct canvas *c, const struct axes *a, const struct series own[2],
		     enum style styles[3 + OTHER_RUNS])
{
	double average = average_of(a, &own[0]);

	styles[0] = styles[1] = own[0].style;
	styles[2] = own[1].style;
	draw_series(c, a, &own[0], 0, true, 1);
	if (average > 1) {
		styles[0] = STYLE_FAINT;
		c->has_background = true;
		draw_series(c, a, &own[0], 1, true, average);
	}
	draw_series(c, a, &own[1], 2, c->graph == GRAPH_BRAILLE, 1);
	for (uint32_t k = 0; k < a->n_others; k++) {
		styles[3 + k] = a->others[k].style;
		draw_series(c, a, &a->others[k], 3 + (int)k, true, average_of(a, &a->others[k]));
	}
}

/* ---- the cursor that compares runs ---- */

/* Writes an x of the axis: "it 40", "1.3M tokens" or "2h15". */
static void write_place(const struct axes *a, const struct state *s, uint64_t place, char text[48])
{
	char number[16];

	if (a->unit == LOSS_BY_TOKENS) {
		glyphs_count((double)place * (double)s->run.tokens_per_iteration, number);
		snprintf(text, 48, "%s tokens", number);
	} else if (a->unit == LOSS_BY_TIME) {
		glyphs_age(((double)place - a->began_us) / 1e6, number);
		snprintf(text, 48, "%s", number);
	} else {
		snprintf(text, 48, "it %llu", (unsigned long long)place);
	}
}

/* Returns the value that the curve has at the cursor: the newest value that is not to the right
 * of the cursor. NAN: the whole series is to the right of the cursor. */
static double value_at(const struct axes *a, const struct series *s, double average)
{
	struct walk w = walk_begin(a, s, average);
	double v, found = NAN;
	uint64_t place;

	while (walk_next(&w, &place, &v) && place <= a->cursor)
		found = v;
	return found;
}

static struct curve_value read_value(const struct axes *a, const struct series *train,
				     const struct series *validation)
{
	bool reaches = train->n > 0 && place_of(a, train, train->n - 1) >= a->cursor;
	double loss = reaches ? value_at(a, train, average_of(a, train)) : NAN;

	return (struct curve_value){ loss, reaches ? value_at(a, validation, 1) : NAN };
}

static void read_cursor(const struct axes *a, const struct state *s, const struct curve_view *view,
			struct curve_reading *r)
{
	write_place(a, s, a->cursor, r->place);
	r->values[0] = read_value(a, &view->own[0], &view->own[1]);
	for (uint32_t k = 0; k < a->n_others; k++) {
		struct series validation =
			series_of(&view->others->list[k], true, STYLE_VALIDATION);

		r->values[1 + k] = read_value(a, &a->others[k], &validation);
	}
}

/* Writes the letter of each run where the run's own curve crosses the cursor. */
static void draw_letters(struct screen *out, struct rect plot, const struct axes *a,
			 const struct curve_reading *r)
{
	int across = a->w / plot.w, down = a->h / plot.h;

	/* This run's letter (k = 0) comes last, so that no other letter covers it. */
	for (uint32_t k = a->n_others; k <= a->n_others; k--)
		if (isfinite(r->values[k].loss))
			screen_put(out, plot.x + dot_x(a, a->cursor) / across,
				   plot.y + plot.h - 1 - dot_y(a, r->values[k].loss) / down,
				   (uint32_t)curve_letter(k),
				   (k ? a->others[k - 1].style : STYLE_TRAIN) | STYLE_BOLD);
}

/* Puts the letters of events on row y. The letter R, for nodes and stages that return, is written
 * first, so that another letter in the same column covers it. */
static void put_marks(struct screen *out, struct rect plot, int y, const struct axes *a)
{
	const struct state_history *history = a->history;

	for (int returns = 1; returns >= 0; returns--)
		for (size_t i = 0; i < history->n_notes; i++) {
			const struct msg_see_note *n = &history->notes[i];
			uint64_t place = a->unit == LOSS_BY_TIME ? (uint64_t)n->at_us
								 : n->iteration;

			if (n->mark > ' ' && (n->mark == 'R') == returns && place >= a->from &&
			    place <= a->last)
				screen_put(out, plot.x + dot_x(a, place) / (a->w / plot.w), y,
					   (uint32_t)n->mark, STYLE_MARK);
		}
}

static void draw_marks(struct screen *out, struct rect plot, const struct axes *a,
		       const struct state *s, int zoom, bool below_last)
{
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
	put_marks(out, plot, y, a);
}

static struct axes axes_of(const struct state *s, const struct curve_view *view)
{
	const struct state_history *h = &s->history;
	struct axes a = { .unit = view->axis, .history = h, .tokens = s->run.tokens_per_iteration };

	if (h->n_iterations)
		a.began_us = (double)h->iterations[0].at_us - (double)h->iterations[0].real_s * 1e6;
	return a;
}

bool curve_ends(const struct state *s, const struct curve_view *view, uint64_t *from,
		uint64_t *last, uint64_t *cursor)
{
	struct axes a = axes_of(s, view);

	if (!measure_ends(&a, view))
		return false;
	*from = a.from;
	*last = a.last;
	*cursor = a.cursor;
	return true;
}

void curve_draw(struct screen *out, struct rect at, const struct state *s,
		const struct curve_view *view, struct curve_reading *reading)
{
	struct rect plot = { at.x + 6, at.y, at.w - 7, at.h - 1 };
	enum style styles[3 + OTHER_RUNS] = { STYLE_FAINT };
	struct canvas c;
	struct axes a = axes_of(s, view);

	if (plot.w < 4 || plot.h < 1 || canvas_open(&c, view->graph, plot) != 0)
		return;
	if (!measure_axes(&a, view, &c)) {
		screen_text(out, at.x + 1, at.y, at.w - 1, STYLE_FAINT,
			    s->run.rehearsal ? "a rehearsal has no loss"
					     : "no iteration has ended yet");
		canvas_close(&c, out, styles);
		return;
	}
	draw_all(&c, &a, view->own, styles);
	if (a.n_others) {
		read_cursor(&a, s, view, reading);
		screen_fill(out,
			    (struct rect){ plot.x + dot_x(&a, a.cursor) * plot.w / a.w, plot.y, 1,
					   plot.h },
			    0x2502, STYLE_RULE);
	}
	canvas_close(&c, out, styles);
	screen_print(out, at.x, plot.y, 6, STYLE_FAINT, a.high >= 1000 ? "%5.0f" : "%5.2f",
		     a.high);
	if (plot.h > 1)
		screen_print(out, at.x, plot.y + plot.h - 1, 6, STYLE_FAINT,
			     a.low >= 1000 ? "%5.0f" : "%5.2f", a.low);
	draw_marks(out, plot, &a, s, view->zoom, view->end_below_last);
	if (a.n_others)
		draw_letters(out, plot, &a, reading);
}
