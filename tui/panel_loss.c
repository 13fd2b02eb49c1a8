/* Training and validation loss over iterations, with a mark where the run was changed. A column is
 * a fixed number of iterations (a power of two) and shows their least and greatest loss: the
 * curve is never refitted, it only halves when it is full. */
#include "tui/graph.h"
#include "tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct axes {
	uint64_t from;        /* the first iteration */
	uint64_t per;         /* iterations a dot column */
	int wide;             /* dot columns an iteration, where per is 1 */
	double low, high;     /* loss */
	int w, h;             /* dots */
};

static int dot_x(const struct axes *a, uint64_t iteration)
{
	return (int)((iteration - a->from) / a->per) * a->wide;
}

static int dot_y(const struct axes *a, double loss)
{
	double part = (loss - a->low) / (a->high - a->low);

	if (!(part > 0))
		part = 0;
	return (int)((part > 1 ? 1 : part) * (a->h - 1) + 0.5);
}

static void stretch(double v, double *low, double *high)
{
	if (!isfinite(v))
		return;
	if (v < *low)
		*low = v;
	if (v > *high)
		*high = v;
}

static bool measure(struct axes *a, const struct state *s, const struct canvas *c)
{
	uint64_t span;
	double low = INFINITY, high = -INFINITY, step;

	if (s->n_iterations == 0)
		return false;
	a->from = s->iterations[0].iteration;
	if (s->n_validations > 0 && s->validations[0].iteration < a->from)
		a->from = s->validations[0].iteration;
	span = s->iterations[s->n_iterations - 1].iteration - a->from + 1;
	a->w = c->w;
	a->h = c->h;
	a->per = 1;
	a->wide = 1;
	while (span > a->per * (uint64_t)a->w)
		a->per *= 2;
	while (a->per == 1 && span * (uint64_t)a->wide * 2 <= (uint64_t)a->w && a->wide < 8)
		a->wide *= 2;
	for (size_t i = 0; i < s->n_iterations; i++)
		stretch((double)s->iterations[i].loss, &low, &high);
	for (size_t i = 0; i < s->n_validations; i++)
		stretch((double)s->validations[i].loss, &low, &high);
	if (low > high)
		return false;
	step = high - low > 1 ? 0.5 : 0.1; /* steady ends: they move in steps */
	a->low = floor(low / step) * step;
	a->high = ceil(high / step) * step;
	if (a->high <= a->low)
		a->high = a->low + step;
	return true;
}

static void draw_train(struct canvas *c, const struct axes *a, const struct state *s)
{
	int x0 = -1, y0 = 0;

	for (size_t i = 0; i < s->n_iterations; i++) {
		int x = dot_x(a, s->iterations[i].iteration), y;

		if (!isfinite(s->iterations[i].loss))
			continue;
		y = dot_y(a, (double)s->iterations[i].loss);
		if (x0 < 0)
			canvas_dot(c, x, y, 0);
		else
			canvas_line(c, x0, y0, x, y, 0);
		x0 = x;
		y0 = y;
	}
}

static void draw_validation(struct canvas *c, const struct axes *a, const struct state *s)
{
	int x0 = -1, y0 = 0;

	for (size_t i = 0; i < s->n_validations; i++) {
		int x = dot_x(a, s->validations[i].iteration), y;

		if (!isfinite(s->validations[i].loss))
			continue;
		y = dot_y(a, (double)s->validations[i].loss);
		if (x0 >= 0 && c->graph == GRAPH_BRAILLE)
			canvas_line(c, x0, y0, x, y, 1);
		else
			canvas_dot(c, x, y, 1);
		x0 = x;
		y0 = y;
	}
}

/* The letters under the curve; two in one column become '*'. */
static void draw_marks(struct screen *out, struct rect plot, const struct axes *a, const struct state *s,
	const char *end)
{
	int dots = a->w / plot.w, y = plot.y + plot.h;

	screen_fill(out, (struct rect){ plot.x, y, plot.w, 1 }, 0x2500, STYLE_RULE);
	screen_text(out, plot.x + plot.w - screen_columns(end), y, plot.w, STYLE_FAINT, end);
	for (size_t i = 0; i < s->n_notes; i++) {
		const struct msg_see_note *n = &s->notes[i];
		int x;

		if (n->mark <= ' ' || n->iteration < a->from)
			continue;
		x = dot_x(a, n->iteration) / dots;
		if (x < plot.w)
			screen_put(out, plot.x + x, y, (uint32_t)n->mark, STYLE_MARK);
	}
}

static void title_of(char title[128], const struct state *s)
{
	const struct msg_see_iteration *last = s->n_iterations ? &s->iterations[s->n_iterations - 1] : NULL;
	int n = snprintf(title, 128, "Loss");

	if (last)
		n += snprintf(title + n, 128 - (size_t)n, " train %.3f", (double)last->loss);
	if (s->n_validations)
		snprintf(title + n, 128 - (size_t)n, " validation %.3f",
			 (double)s->validations[s->n_validations - 1].loss);
}

void panel_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	static const enum style styles[2] = { STYLE_TRAIN, STYLE_VALIDATION };
	struct rect plot = { at.x + 6, at.y + 1, at.w - 7, at.h - 2 };
	struct canvas c;
	struct axes a;
	char title[128], end[48];

	if (at.h < 2)
		return;
	title_of(title, s);
	screen_rule(out, at, title, at.w >= 60 ? "S skip  F failure  R recovery" : "S F R");
	if (plot.w < 4 || plot.h < 1 || canvas_open(&c, u->graph, plot) != 0)
		return;
	if (!measure(&a, s, &c)) {
		screen_text(out, at.x + 1, at.y + 1, at.w - 1, STYLE_FAINT, "no iteration has ended yet");
		canvas_close(&c, out, styles);
		return;
	}
	draw_train(&c, &a, s);
	draw_validation(&c, &a, s);
	canvas_close(&c, out, styles);
	screen_print(out, at.x, plot.y, 6, STYLE_FAINT, "%5.2f", a.high);
	if (plot.h > 1)
		screen_print(out, at.x, plot.y + plot.h - 1, 6, STYLE_FAINT, "%5.2f", a.low);
	snprintf(end, sizeof(end), "it %llu", (unsigned long long)s->iterations[s->n_iterations - 1].iteration);
	draw_marks(out, plot, &a, s, end);
}
