/* The tasks of each node over time: a row for each node, from the start of the current iteration.
 * Left of now are past tasks, right of it planned ones. A bar begins with its microbatch's
 * number.
 *
 * A column is a fixed length of time and shows the task that fills most of it. While a microbatch
 * waits for a busy node, the bar alternates with x. A blocked node that runs nothing shows x
 * alone. */
#include "tui/run/branch.h"
#include "tui/views/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 512, MOMENT = 5, KINDS = TASK_EVALUATE + 1, STEADY_US = 500000 };

struct window {
	int64_t from_us;   /* controller's clock, of the first column */
	int64_t column_us; /* > 0 */
	int64_t now_us;
	int64_t origin_us; /* the plan's time 0 */
	int columns;
	bool plan; /* planned tasks are drawn */
};

/* The data of a row: for each column the time of each kind of task and of waiting. */
struct row {
	int64_t busy[COLUMNS][KINDS];
	int64_t waited[COLUMNS];
	char label[COLUMNS];
};

static int column_of(const struct window *w, int64_t t)
{
	int64_t c = (t - w->from_us) / w->column_us;

	return t < w->from_us ? -1 : c > w->columns ? w->columns : (int)c;
}

/* Adds the time [a, b) to the columns that it covers. */
static void spread_time(const struct window *w, int64_t a, int64_t b, int64_t *to, int stride)
{
	int first, last;

	if (a < w->from_us)
		a = w->from_us;
	if (b <= a)
		return;
	first = column_of(w, a);
	last = column_of(w, b - 1);
	for (int c = first; c <= last && c < w->columns; c++) {
		int64_t from = w->from_us + c * w->column_us, till = from + w->column_us;

		to[c * stride] += (b < till ? b : till) - (a > from ? a : from);
	}
}

/* Returns the kind of task that fills column c; -1: none. */
static int filling_kind(const struct window *w, const struct row *row, int c)
{
	int64_t total = 0;
	int kind = 0;

	for (int k = 0; k < KINDS; k++) {
		total += row->busy[c][k];
		if (row->busy[c][k] > row->busy[c][kind])
			kind = k;
	}
	if (total == 0 ||
	    (total * 2 < w->column_us && w->from_us + (c + 1) * w->column_us <= w->now_us))
		return -1;
	return kind;
}

/* Writes the microbatch's number at the start of its bar if the bar is longer than the number. */
static void label_task(const struct window *w, struct row *row, int64_t a, int64_t b,
		       const struct state_segment *g)
{
	int first = column_of(w, a), last = column_of(w, b - 1);
	char text[16];
	int n = snprintf(text, sizeof(text), "%02u", g->microbatch);

	if (first < 0)
		return;
	while (first <= last && first < w->columns && filling_kind(w, row, first) != g->kind)
		first++;
	if (last >= w->columns || last - first < n)
		return;
	for (int i = 0; i < n; i++)
		if (filling_kind(w, row, first + i) != g->kind)
			return;
	memcpy(row->label + first, text, (size_t)n);
}

static void gather_tasks(const struct window *w, struct row *row, const struct state_node *n)
{
	const struct state_segment *g;
	const struct state_wait *wait;

	memset(row, 0, sizeof(*row));
	for (uint64_t i = 0; (g = state_segment_back(n, i)) != NULL; i++) {
		int64_t end = g->end_us < w->now_us ? g->end_us : w->now_us;

		if (end < w->from_us)
			break;
		spread_time(w, g->start_us, end, &row->busy[0][g->kind % KINDS], KINDS);
	}
	for (uint64_t i = 0; (g = state_segment_back(n, i)) != NULL && g->end_us >= w->from_us;
	     i++)
		label_task(w, row, g->start_us, g->end_us < w->now_us ? g->end_us : w->now_us,
			   g);
	for (uint64_t i = 0;
	     (wait = state_wait_back(n, i)) != NULL && wait->to_us >= w->from_us; i++)
		if (!wait->first)
			spread_time(w, wait->from_us, wait->to_us, row->waited, 1);
	for (uint32_t i = 0; i < n->n_queue; i++)
		if (!n->queue[i].first)
			spread_time(w, n->queue[i].from_us, w->now_us, row->waited, 1);
}

static void draw_column(struct screen *out, int x, int y, const struct window *w,
			const struct row *row, int c)
{
	bool waited = row->waited[c] * 2 > w->column_us;
	int kind = filling_kind(w, row, c);

	if (kind < 0)
		screen_put(out, x, y, waited ? 'x' : '.', waited ? STYLE_BLOCKED : STYLE_IDLE);
	else if (row->label[c])
		screen_put(out, x, y, (uint32_t)row->label[c],
			   (waited ? STYLE_BAR_CONTENDED
				   : glyphs_bar_style((enum task_kind)kind)) |
				   STYLE_BOLD);
	else if (waited && c % 2)
		screen_put(out, x, y, 'x', STYLE_BAR_CONTENDED);
	else
		screen_put(out, x, y, (uint32_t)glyphs_task_glyph((enum task_kind)kind),
			   waited ? STYLE_BAR_CONTENDED
				  : glyphs_bar_style((enum task_kind)kind));
}

/* Draws planned tasks right of column `now`: '-' forward, ':' backward. */
static void draw_plan(struct screen *out, int x, int y, const struct window *w,
		      const struct state_plan *p, uint16_t node, int now)
{
	for (uint32_t i = p->first[node]; i < p->first[node + 1]; i++) {
		const struct state_segment *g = &p->tasks[i];
		int a = column_of(w, w->origin_us + g->start_us);
		int b = column_of(w, w->origin_us + g->end_us - 1);

		for (int c = a <= now ? now + 1 : a; c <= b && c < w->columns; c++)
			screen_put(out, x + c, y,
				   (uint32_t)glyphs_task_planned((enum task_kind)g->kind),
				   STYLE_PLANNED);
	}
}

static void draw_row(struct screen *out, int x, int y, const struct window *w,
		     const struct state *s, const struct state_node *n)
{
	struct row row;
	int now = column_of(w, w->now_us);
	enum node_presence presence = node_presence(n->see.state);
	bool away = presence == NODE_LOST || presence == NODE_NOT_THERE;
	int gone = away ? column_of(w, n->see.since_us) : COLUMNS;

	if (w->plan && !away)
		draw_plan(out, x, y, w, &s->plan, n->see.node, now);
	gather_tasks(w, &row, n);
	for (int c = 0; c < w->columns && c <= now; c++) {
		if (c >= gone)
			screen_put(out, x + c, y, c == gone ? '!' : '_',
				   c == gone ? STYLE_FAILED : STYLE_IDLE);
		else
			draw_column(out, x + c, y, w, &row, c);
	}
}

int view_busy_percent(const struct state_node *n, int64_t from, int64_t to)
{
	const struct state_segment *g;
	int64_t busy = 0;

	for (uint64_t i = 0; (g = state_segment_back(n, i)) != NULL; i++) {
		int64_t a = g->start_us > from ? g->start_us : from;
		int64_t b = g->end_us < to ? g->end_us : to;

		if (g->end_us < from)
			break;
		if (b > a)
			busy += b - a;
	}
	return to > from ? (int)((double)busy * 100 / (double)(to - from)) : 0;
}

/* Returns the window of the current iteration, or of the previous one before a new one has begun.
 * Its width is the predicted time, and grows in steps if the iteration takes longer. */
static struct window window_of(const struct state *s, const struct ui *u, int columns)
{
	struct window w = { .columns = columns, .plan = true };
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

/* Marks a time on the axis by a sign and, if there is room, a word. */
static void draw_moment(struct screen *out, int x, int y, const struct window *w, int c,
			char sign, const char *word, enum style style)
{
	if (c < 0 || c >= w->columns)
		return;
	screen_put(out, x + c, y, (uint32_t)sign, style);
	screen_text(out, x + c + 1, y, w->columns - c - 1 < 4 ? 0 : 4, style, word);
}

static int end_column(const struct window *w, const struct state *s, const struct state_plan *p)
{
	double scale = s->run.time_scale > 0 ? s->run.time_scale : 1;
	double end = p ? (double)p->see.iteration_s * scale * 1e6 : 0;

	return end > 0 && end < 1e12 ? column_of(w, w->origin_us + (int64_t)end) : -MOMENT;
}

/* Draws the axis: now, the end of a what-if, and times where there is room. */
static void draw_axis(struct screen *out, int x, int y, const struct window *w,
		      const struct state *s, const struct state_plan *other)
{
	int step = w->columns >= 60 ? 10 : 8, now = column_of(w, w->now_us);
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

static void draw_title(struct screen *out, struct rect at, const struct state *s,
		       const struct ui *u, uint32_t shown, uint32_t of)
{
	char title[128], key[16];
	int n;

	if (u->branch.open) {
		keymap_show_action(&u->map, ACTION_BRANCH, key);
		branch_title(u, s, title);
		screen_rule(out, at, title, NULL);
		screen_print(out, at.x + at.w - 10, at.y, 10, STYLE_KEY, " %s: back ", key);
		return;
	}
	n = snprintf(title, sizeof(title), "Timeline: iteration %llu",
		     (unsigned long long)s->current.iteration);
	if (shown < of)
		n += snprintf(title + n, sizeof(title) - (size_t)n, ", %u of %u nodes", shown,
			      of);
	if (s->run.time_scale > 0 && fabs(s->run.time_scale - 1) > 1e-6 && at.w >= 100)
		snprintf(title + n, sizeof(title) - (size_t)n, ", plan seconds (1 = %.2g real)",
			 s->run.time_scale);
	screen_rule(out, at, title,
		    at.w >= 100 ? "= forward  # backward  L loss  =x waiting  x blocked "
				  " . idle  -: planned"
				: "=x waiting  -: planned");
}

/* Returns the first row: the page of the selected node, so that rows do not move. A stage that
 * fits is shown from its start. */
static uint32_t first_row(const struct roster *r, const struct state *s,
			  const struct ui_selection *selection, int rows)
{
	int at = roster_find(r, selection->node);
	uint32_t stage, start;

	if (at < 0 || (int)r->n <= rows)
		return 0;
	stage = s->nodes[selection->node].see.stage;
	start = r->first[stage];
	if (at - (int)start >= rows)
		start += ((uint32_t)at - start) / (uint32_t)rows * (uint32_t)rows;
	return start + (uint32_t)rows > r->n ? r->n - (uint32_t)rows : start;
}

/* Draws a second row below a node's tasks: its plan, or the what-if. */
static void draw_second(struct screen *out, struct rect at, int x, int y,
			const struct window *w, const struct state_plan *p,
			const struct ui_branch *branch, const struct state_node *n)
{
	bool what_if = branch->open;

	screen_text(out, at.x, y, x - at.x - 1, what_if ? STYLE_WARNING : STYLE_FAINT,
		    at.w < 95 ? (what_if ? "  ?" : "")
		    : what_if ? "   what if"
			      : "      plan");
	screen_put(out, x - 1, y, 0x2502, STYLE_RULE);
	draw_plan(out, x, y, w, p, n->see.node, -1);
}

/* Before the first task: the current step, and the most important keys. */
static void draw_welcome(struct screen *out, struct rect at, const struct state *s,
			 const struct keymap *map)
{
	static const enum action shown[] = { ACTION_SKIP, ACTION_FAIL, ACTION_INJECT,
					     ACTION_BRANCH, ACTION_HELP };
	int y = at.y + 2;
	char key[16];

	screen_print(out, at.x + 2, y++, at.w - 2, STYLE_STRONG, "No task has run yet: %s",
		     *s->status.doing ? s->status.doing : phase_name(s->status.phase));
	screen_text(out, at.x + 2, y++, at.w - 2, STYLE_FAINT,
		    "One row per node: past tasks left of now, planned tasks right of it.");
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]) && ++y < at.y + at.h; i++) {
		keymap_show_action(map, shown[i], key);
		screen_text(out, at.x + 2, y, 3, STYLE_KEY, key);
		screen_text(out, at.x + 5, y, at.w - 5, STYLE_TEXT,
			    keymap_find(shown[i])->help);
	}
}

void panel_timeline(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u, const struct roster *r)
{
	const struct state_plan *other = branch_plan(u);
	int rows = at.h - 2 - (u->branch.open && at.h > 5),
	    lead = at.w >= 95 ? r->digits + 9 : r->digits + 2, columns, each;
	uint32_t first, shown;
	struct window w;
	int64_t steady;
	char effects[192];

	if (at.h < 3)
		return;
	columns = at.w - lead - 6;
	if (columns > COLUMNS)
		columns = COLUMNS;
	each = other || (u->display.view == VIEW_TIMELINE && rows >= 2 * (int)r->n) ? 2 : 1;
	each = rows < each ? 1 : each;
	rows /= each;
	first = first_row(r, s, &u->selection, rows);
	shown = r->n - first < (uint32_t)rows ? r->n - first : (uint32_t)rows;
	draw_title(out, at, s, u, shown, r->n);
	if (columns < 8 || !s->has_run)
		return;
	if (!s->current.start_us && !s->current.previous_start_us) {
		draw_welcome(out, at, s, &u->map);
		return;
	}
	w = window_of(s, u, columns);
	/* The percentages change twice a second, so that they can be read. */
	steady = w.now_us - w.from_us < STEADY_US
			 ? w.now_us
			 : w.now_us - (w.now_us - w.from_us) % STEADY_US;
	for (uint32_t i = 0; i < shown; i++) {
		const struct state_node *n = &s->nodes[r->nodes[first + i]];
		int y = at.y + 1 + (int)i * each, x = at.x + lead;
		unsigned mark = n->see.node == u->selection.node ? STYLE_REVERSE : 0;

		screen_print(out, at.x, y, r->digits + 1, STYLE_TEXT | mark, "%c%0*u",
			     mark ? '>' : ' ', r->digits, (unsigned)n->see.node);
		if (at.w >= 95)
			screen_print(out, at.x + r->digits + 1, y, 7, STYLE_FAINT, " S%u %.3s",
				     (unsigned)n->see.stage, n->see.location);
		screen_put(out, x - 1, y, 0x2502, STYLE_RULE);
		draw_row(out, x, y, &w, s, n);
		if (each == 2)
			draw_second(out, at, x, y + 1, &w, other ? other : &s->plan, &u->branch, n);
		screen_put(out, x + columns, y, 0x2502, STYLE_RULE);
		if (node_presence(n->see.state) == NODE_LOST)
			screen_text(out, x + columns + 1, y, 5, STYLE_FAILED,
				    n->see.state == NODE_DEAD ? "dead" : "fail");
		else
			screen_print(out, x + columns + 1, y, 5, STYLE_FAINT, "%3d%%",
				     view_busy_percent(n, w.from_us, steady));
	}
	draw_axis(out, at.x + lead, at.y + 1 + (int)shown * each, &w, s, other);
	if (u->branch.open && at.h > 5) {
		branch_effects(u, s, effects);
		screen_text(out, at.x + 1, at.y + 2 + (int)shown * each, at.w - 1,
			    *u->branch.refused ? STYLE_ALERT : STYLE_STRONG, effects);
	}
}
