/* Computes the time axis of the current iteration, and draws it. */
#include "tui/panels/time_window.h"

#include <stdlib.h>

#include "tui/input/branch.h"

enum { MOMENT = 5 };

int time_column(const struct time_window *w, int64_t t_us)
{
	int64_t c = (t_us - w->from_us) / w->column_us;

	return t_us < w->from_us ? -1 : c > w->columns ? w->columns : (int)c;
}

struct time_window time_window_make(const struct state *s, const struct ui *u, int columns)
{
	struct time_window w = { .columns = columns, .plan = true };
	const struct state_plan *other = branch_plan(u);
	double longest = s->plan.known ? (double)s->plan.see.iteration_s : 0, predicted;
	int64_t span, elapsed;

	if (other && (double)other->see.iteration_s > longest)
		longest = (double)other->see.iteration_s;
	predicted = longest * (s->run.time_scale > 0 ? s->run.time_scale : 1) * 1e6;
	span = predicted > 1e4 && predicted < 1e12 ? (int64_t)(predicted * 1.04) : 2000000;
	w.origin_us = s->current.start_us ? s->current.start_us : s->current.previous_start_us;
	w.now_us = u->clock.now_us;
	if (s->current.end_us && s->status.phase != PHASE_COMPUTING &&
	    w.now_us > s->current.end_us)
		w.now_us = s->current.end_us;
	elapsed = w.now_us - w.origin_us;
	if (elapsed > 60 * span)
		elapsed = 60 * span;
	if (elapsed < 0)
		elapsed = 0;
	while (span < elapsed)
		span += span / 4;
	for (int z = 0; z < u->display.zoom; z++)
		span = span / 2 > 2000 ? span / 2 : span;
	for (int z = 0; z > u->display.zoom; z--)
		span *= 2;
	w.column_us = span / columns + 1;
	w.from_us = w.origin_us;
	if (u->display.zoom < 0)
		w.from_us = w.origin_us + span / (1 << -u->display.zoom) - span;
	else if (w.now_us > w.from_us + span * 9 / 10 && u->display.zoom > 0)
		w.from_us = (w.now_us - span * 9 / 10) / w.column_us * w.column_us;
	return w;
}

/* Marks a time on the axis by a character and, if there is room, a word. */
static void draw_moment(struct screen *out, int x, int y, const struct time_window *w,
			int c, char sign, const char *word, enum style style)
{
	if (c < 0 || c >= w->columns)
		return;
	screen_put(out, x + c, y, (uint32_t)sign, style);
	screen_text(out, x + c + 1, y, w->columns - c - 1 < 4 ? 0 : 4, style, word);
}

static int end_column(const struct time_window *w, const struct state *s,
		      const struct state_plan *p)
{
	double scale = s->run.time_scale > 0 ? s->run.time_scale : 1;
	double end = p ? (double)p->see.iteration_s * scale * 1e6 : 0;

	return end > 0 && end < 1e12 ? time_column(w, w->origin_us + (int64_t)end) : -MOMENT;
}

void time_window_axis(struct screen *out, int x, int y, const struct time_window *w,
		      const struct state *s, const struct state_plan *other)
{
	int step = w->columns >= 60 ? 10 : 8, now = time_column(w, w->now_us);
	int end = end_column(w, s, other);

	for (int c = 0; c + 4 < w->columns; c += step) {
		double at = state_plan_s(s, w->from_us + c * w->column_us - w->origin_us);
		double range = state_plan_s(s, w->columns * w->column_us);

		if (abs(c - now) >= MOMENT && abs(c - end) >= MOMENT)
			screen_print(out, x + c, y, 8, STYLE_FAINT,
				     range < 1   ? "'%.2fs"
				     : range < 8 ? "'%.1fs"
						 : "'%.0fs",
				     at);
	}
	draw_moment(out, x, y, w, end, '?', "end ", STYLE_WARNING);
	draw_moment(out, x, y, w, now, '^', "now ", STYLE_STRONG);
}
