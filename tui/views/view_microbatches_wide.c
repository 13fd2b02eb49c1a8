/* View 5 on a wide screen: a row for each microbatch, with time to the right.
 *
 *     m07 |07===-->15xx==--->19=-->LL ...        B n15 0.4s
 *
 * A bar is a task and begins with its node's number. `x` is a wait at the node, and a line is the
 * transfer to the next node. Right of the present time, planned tasks are drawn. The whole plan of
 * the selected microbatch is below its row. If there is room, every microbatch has its plan below
 * it.
 */
#include <stdio.h>

#include "tui/panels/time_window.h"
#include "tui/input/branch.h"
#include "tui/screen/colouring.h"
#include "tui/screen/table.h"
#include "tui/views/view.h"

enum { LEAST_W = 100 };

/* The rows that are drawn; the first one is microbatch `first`. */
struct rows {
	struct time_window window;
	struct rect at; /* rectangle in which columns stand for time */
	enum colouring by;
	int now, last; /* column of the present time, and last column */
	int first, shown;
	int selected; /* index of the selected microbatch among the rows; -1: not shown */
	int digits;   /* number of digits of a node's number */
	int phase_w;  /* width of the text about a microbatch's state */
	bool plans;   /* every microbatch has its plan below it */
};

/* Returns the screen row of the i-th microbatch from `first` on. */
static int row_of(const struct rows *l, int i)
{
	return l->at.y + (l->plans ? 2 * i : i + (l->selected >= 0 && i > l->selected));
}

/* Fills the columns between a_us and b_us, but none right of `last`. Sets *from to the first of
 * these columns, and returns the column after them. */
static int fill_time(struct screen *out, const struct rows *l, int y, int64_t a_us, int64_t b_us,
		     int last, uint32_t glyph, unsigned style, int *from)
{
	int a = time_column(&l->window, a_us), b = time_column(&l->window, b_us - 1);

	*from = a < 0 ? 0 : a;
	b = b < last ? b : last;
	for (int c = *from; c <= b; c++)
		screen_put(out, l->at.x + c, y, glyph, style);
	return b + 1;
}

/* Draws the time before the task at chain position p: the transfer to its node, then its wait
 * there. */
static void draw_arrival(struct screen *out, const struct rows *l, int y,
			 const struct state_flight *f, uint32_t p)
{
	const struct state_hop *h = &f->chain[p], *before = p > 0 ? h - 1 : NULL;
	int64_t now_us = l->window.now_us, until_us;
	int from, end;

	until_us = h->arrived_us ? h->arrived_us
		   : f->phase == FLIGHT_TRAVELLING && f->position + 1 == p ? now_us
									   : 0;
	if (before && before->ended_us && until_us > before->ended_us) {
		end = fill_time(out, l, y, before->ended_us, until_us, l->now, 0x2500,
				STYLE_TRAVEL, &from);
		if (end - from >= 2)
			screen_put(out, l->at.x + end - 1, y, '>', STYLE_TRAVEL);
	}
	until_us = h->started_us ? h->started_us
		   : f->phase == FLIGHT_WAITING && f->position == p ? now_us
								    : 0;
	if (h->arrived_us && until_us > h->arrived_us)
		fill_time(out, l, y, h->arrived_us, until_us, l->now, p > 0 ? 'x' : '.',
			  p > 0 ? STYLE_BLOCKED : STYLE_IDLE, &from);
}

/* Draws the task at chain position p, with its node's number in the bar or, if the bar is too
 * short, right of it. */
static void draw_task(struct screen *out, const struct rows *l, int y, const struct state *s,
		      const struct state_flight *f, uint32_t p)
{
	const struct state_hop *h = &f->chain[p], *next = h + 1;
	enum task_kind kind = state_chain_kind(f, p);
	unsigned style = colouring_bar(l->by, s, f->route.microbatch, glyphs_bar_style(kind));
	int from, end, behind = l->now + 1;

	if (!h->started_us)
		return;
	end = fill_time(out, l, y, h->started_us, h->ended_us ? h->ended_us : l->window.now_us,
			l->now, (uint32_t)glyphs_task_glyph(kind), style, &from);
	if (end <= from)
		return;
	if (p < 2 * f->route.n_hops && next->arrived_us && next->arrived_us < l->window.now_us)
		behind = time_column(&l->window, next->arrived_us);
	if (end - from >= l->digits)
		screen_print(out, l->at.x + from, y, l->digits, style | STYLE_BOLD, "%0*u",
			     l->digits, (unsigned)state_chain_node(f, p));
	else if (end + l->digits < behind)
		screen_print(out, l->at.x + end, y, l->digits, STYLE_FAINT, "%0*u", l->digits,
			     (unsigned)state_chain_node(f, p));
}

static void draw_past(struct screen *out, const struct rows *l, int y, const struct state *s,
		      const struct state_flight *f)
{
	for (uint32_t p = 0; p <= 2 * f->route.n_hops; p++)
		draw_arrival(out, l, y, f, p);
	for (uint32_t p = 0; p <= 2 * f->route.n_hops; p++)
		draw_task(out, l, y, s, f, p);
}

/* Draws a planned task of a microbatch twice: in the microbatch's row, if it is right of the
 * present time, and in the row of its plan. */
static void draw_planned(struct screen *out, const struct rows *l, const struct state *s,
			 const struct state_segment *g, unsigned node)
{
	int i = (int)g->microbatch - l->first;
	int64_t origin_us = l->window.origin_us;
	unsigned style = colouring_text(l->by, s, g->microbatch, STYLE_PLANNED);

	for (int below = 0; below <= (l->plans || i == l->selected); below++) {
		int from, end, y = row_of(l, i) + below;
		int64_t start_us = origin_us + g->start_us;

		if (!below && time_column(&l->window, start_us) <= l->now)
			start_us = l->window.from_us + (l->now + 1) * l->window.column_us;
		end = fill_time(out, l, y, start_us, origin_us + g->end_us,
				l->last,
				(uint32_t)glyphs_task_planned((enum task_kind)g->kind), style,
				&from);
		if (end - from >= l->digits)
			screen_print(out, l->at.x + from, y, l->digits, style, "%0*u", l->digits,
				     node);
	}
}

static void draw_plan(struct screen *out, const struct rows *l, const struct state *s,
		      const struct state_plan *p)
{
	for (unsigned node = 0; p->known && node < s->n_nodes; node++)
		for (uint32_t i = p->first[node]; i < p->first[node + 1]; i++)
			if (p->tasks[i].microbatch >= (uint32_t)l->first &&
			    p->tasks[i].microbatch < (uint32_t)(l->first + l->shown))
				draw_planned(out, l, s, &p->tasks[i], node);
}

static void draw_names(struct screen *out, const struct rows *l, int x, const struct state *s,
		       const struct state_flight *f, int i)
{
	int y = row_of(l, i), wide = l->at.x - x;
	unsigned mark = i == l->selected ? STYLE_REVERSE : 0;
	char phase[64];
	unsigned style = panel_phase(s, f, l->window.now_us, phase);

	screen_put(out, x, y, mark ? '>' : ' ', STYLE_KEY);
	screen_print(out, x + 1, y, wide - 2,
		     colouring_text(l->by, s, f->route.microbatch, STYLE_STRONG) | mark,
		     "m%02u%s", f->route.microbatch, f->reruns ? "'" : "");
	screen_put(out, l->at.x - 1, y, 0x2502, STYLE_RULE);
	screen_put(out, l->at.x + l->at.w, y, 0x2502, STYLE_RULE);
	screen_text(out, l->at.x + l->at.w + 2, y, l->phase_w - 2, style, phase);
	if (l->plans || i == l->selected) {
		screen_text(out, x + 1, y + 1, wide - 2, STYLE_FAINT, "plan");
		screen_put(out, l->at.x - 1, y + 1, 0x2502, STYLE_RULE);
		screen_put(out, l->at.x + l->at.w, y + 1, 0x2502, STYLE_RULE);
	}
}

/* Chooses the page of rows that contains the selected microbatch. */
static void choose_rows(struct rows *l, const struct state *s, uint32_t selected, int rows)
{
	int n = (int)s->n_flights;

	l->plans = 2 * n <= rows;
	l->first = table_first(n, l->plans ? rows : rows - 1, (int)selected);
	l->shown = n - l->first < rows - 1 ? n - l->first : rows - 1;
	l->selected = (int)selected - l->first;
	if (selected >= s->n_flights || l->selected >= l->shown)
		l->selected = -1;
}

bool view_microbatches_wide(struct screen *out, struct rect at, const struct state *s,
			    const struct ui *u)
{
	const struct state_plan *other = branch_plan(u);
	int name_w = s->n_flights > 1000 ? 8 : s->n_flights > 100 ? 7 : 6, rows = at.h - 2;
	struct rows l = { .by = u->display.colouring, .digits = s->n_nodes > 100 ? 3 : 2 };

	if (at.w < LEAST_W || rows < 2 ||
	    (!s->current.start_us && !s->current.previous_start_us))
		return false;
	l.phase_w = s->n_flights > 1000 ? 20 : s->n_flights > 100 ? 19 : 17;
	l.at = (struct rect){ at.x + name_w, at.y + 1, at.w - name_w - l.phase_w, rows };
	l.window = time_window_make(s, u, l.at.w);
	l.last = l.window.columns - 1;
	l.now = time_column(&l.window, l.window.now_us);
	l.now = l.now < l.last ? l.now : l.last;
	choose_rows(&l, s, u->selection.microbatch, rows);
	draw_plan(out, &l, s, other ? other : &s->plan);
	for (int i = 0; i < l.shown; i++) {
		const struct state_flight *f = &s->flights[l.first + i];

		if (!f->known)
			continue;
		draw_past(out, &l, row_of(&l, i), s, f);
		draw_names(out, &l, at.x, s, f, i);
	}
	time_window_axis(out, l.at.x, row_of(&l, l.shown), &l.window, s, other);
	return true;
}
