/* The tasks of each node over time: a row for each node, from the start of the current iteration.
 * Past tasks are left of the present time, planned tasks right of it. A bar is a task, and begins
 * with its microbatch's number.
 *
 * A column stands for a fixed length of time, and shows the task that fills most of it. While a
 * microbatch waits for a busy node, every second character of the bar is x. A node that runs
 * nothing although a microbatch waits shows x only.
 */
#include "tui/input/branch.h"
#include "tui/panels/time_window.h"
#include "tui/screen/colouring.h"
#include "tui/panels/panels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 512, KINDS = TASK_EVALUATE + 1, STEADY_US = 500000 };

/* The tasks of a row. For each column: the time of each kind of task, the time of waiting, and the
 * microbatch with the longest task. */
struct row {
	int64_t busy[COLUMNS][KINDS];
	int64_t waited[COLUMNS];
	int64_t longest[COLUMNS];
	uint32_t microbatch[COLUMNS];
	char label[COLUMNS];
};

/* Adds the time between a and b to the columns of `to`. Each column gets the part of this time that
 * falls into the column. */
static void spread_time(const struct time_window *w, int64_t a, int64_t b, int64_t *to, int stride)
{
	int first, last;

	if (a < w->from_us)
		a = w->from_us;
	if (b <= a)
		return;
	first = time_column(w, a);
	last = time_column(w, b - 1);
	for (int c = first; c <= last && c < w->columns; c++) {
		int64_t from = w->from_us + c * w->column_us, till = from + w->column_us;

		to[c * stride] += (b < till ? b : till) - (a > from ? a : from);
	}
}

/* Assigns the columns between a and b to the task's microbatch, except where another task is
 * longer. */
static void claim_columns(const struct time_window *w, struct row *row, int64_t a, int64_t b,
			  uint32_t microbatch)
{
	int first = time_column(w, a), last = time_column(w, b - 1);

	for (int c = first < 0 ? 0 : first; c <= last && c < w->columns; c++) {
		int64_t from = w->from_us + c * w->column_us, till = from + w->column_us;
		int64_t time = (b < till ? b : till) - (a > from ? a : from);

		if (time > row->longest[c]) {
			row->longest[c] = time;
			row->microbatch[c] = microbatch;
		}
	}
}

/* Returns the kind of task that fills most of column c; -1: no task fills half of it. */
static int filling_kind(const struct time_window *w, const struct row *row, int c)
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

/* Writes the microbatch's number at the start of its bar. The bar must be longer than the number.
 * If colours separate neighbouring bars, it may also be exactly as long as the number. */
static void label_task(const struct time_window *w, struct row *row, int64_t a, int64_t b,
		       const struct state_segment *g, enum colouring by)
{
	int first = time_column(w, a), last = time_column(w, b - 1);
	char text[16];
	int n = snprintf(text, sizeof(text), "%02u", g->microbatch);

	if (first < 0)
		return;
	while (first <= last && first < w->columns && filling_kind(w, row, first) != g->kind)
		first++;
	while (by != COLOUR_TASK && first <= last && first < w->columns &&
	       row->microbatch[first] != g->microbatch)
		first++;
	if (last >= w->columns || last - first < n - (by != COLOUR_TASK))
		return;
	for (int i = 0; i < n; i++)
		if (filling_kind(w, row, first + i) != g->kind ||
		    (by != COLOUR_TASK && row->microbatch[first + i] != g->microbatch))
			return;
	memcpy(row->label + first, text, (size_t)n);
}

static void gather_tasks(const struct time_window *w, struct row *row,
			 const struct state_node *n, enum colouring by)
{
	const struct state_segment *g;
	const struct state_wait *wait;

	memset(row, 0, sizeof(*row));
	for (uint64_t i = 0; (g = state_segment_back(n, i)) != NULL; i++) {
		int64_t end = g->end_us < w->now_us ? g->end_us : w->now_us;

		if (end < w->from_us)
			break;
		spread_time(w, g->start_us, end, &row->busy[0][g->kind % KINDS], KINDS);
		claim_columns(w, row, g->start_us, end, g->microbatch);
	}
	for (uint64_t i = 0; (g = state_segment_back(n, i)) != NULL && g->end_us >= w->from_us;
	     i++)
		label_task(w, row, g->start_us, g->end_us < w->now_us ? g->end_us : w->now_us,
			   g, by);
	for (uint64_t i = 0;
	     (wait = state_wait_back(n, i)) != NULL && wait->to_us >= w->from_us; i++)
		if (!wait->first)
			spread_time(w, wait->from_us, wait->to_us, row->waited, 1);
	for (uint32_t i = 0; i < n->n_queue; i++)
		if (!n->queue[i].first)
			spread_time(w, n->queue[i].from_us, w->now_us, row->waited, 1);
}

static void draw_column(struct screen *out, int x, int y, const struct time_window *w,
			const struct state *s, const struct row *row, int c, enum colouring by)
{
	bool waited = row->waited[c] * 2 > w->column_us;
	int kind = filling_kind(w, row, c);
	unsigned style;

	if (kind < 0) {
		screen_put(out, x, y, waited ? 'x' : '.', waited ? STYLE_BLOCKED : STYLE_IDLE);
		return;
	}
	style = waited && by == COLOUR_TASK
			? STYLE_BAR_CONTENDED
			: colouring_bar(by, s, row->microbatch[c],
					glyphs_bar_style((enum task_kind)kind));
	if (row->label[c])
		screen_put(out, x, y, (uint32_t)row->label[c], style | STYLE_BOLD);
	else if (waited && c % 2)
		screen_put(out, x, y, 'x', STYLE_BAR_CONTENDED);
	else
		screen_put(out, x, y, (uint32_t)glyphs_task_glyph((enum task_kind)kind), style);
}

/* Draws planned tasks right of column `now`: '-' forward, ':' backward. If microbatches have
 * colours, a task that is long enough begins with its microbatch's number. */
static void draw_plan(struct screen *out, int x, int y, const struct time_window *w,
		      const struct state *s, const struct state_plan *p, uint16_t node, int now,
		      enum colouring by)
{
	for (uint32_t i = p->first[node]; i < p->first[node + 1]; i++) {
		const struct state_segment *g = &p->tasks[i];
		int a = time_column(w, w->origin_us + g->start_us);
		int b = time_column(w, w->origin_us + g->end_us - 1);
		unsigned style = colouring_text(by, s, g->microbatch, STYLE_PLANNED);

		a = a <= now ? now + 1 : a;
		for (int c = a; c <= b && c < w->columns; c++)
			screen_put(out, x + c, y,
				   (uint32_t)glyphs_task_planned((enum task_kind)g->kind), style);
		if (by != COLOUR_TASK && b < w->columns && b - a >= 2)
			screen_print(out, x + a, y, b - a, style, "%02u", g->microbatch);
	}
}

static void draw_row(struct screen *out, int x, int y, const struct time_window *w,
		     const struct state *s, const struct state_node *n, enum colouring by)
{
	struct row row;
	int now = time_column(w, w->now_us);
	enum node_presence presence = node_presence(n->see.state);
	bool away = presence == NODE_LOST || presence == NODE_NOT_THERE;
	int gone = away ? time_column(w, n->see.since_us) : COLUMNS;

	if (w->plan && !away)
		draw_plan(out, x, y, w, s, &s->plan, n->see.node, now, by);
	gather_tasks(w, &row, n, by);
	for (int c = 0; c < w->columns && c <= now; c++) {
		if (c >= gone)
			screen_put(out, x + c, y, c == gone ? '!' : '_',
				   c == gone ? STYLE_FAILED : STYLE_IDLE);
		else
			draw_column(out, x + c, y, w, s, &row, c, by);
	}
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
	snprintf(title + strlen(title), sizeof(title) - strlen(title), "%s",
		 colouring_title(u->display.colouring));
	screen_rule(out, at, title,
		    at.w >= 100 ? "= forward  # backward  L loss  =x waiting  x blocked "
				  " . idle  -: planned"
				: "=x waiting  -: planned");
}

/* Returns the first row to draw. It changes only in whole pages, so that rows do not move with the
 * selection. If the stage of the selected node fits, the page begins with that stage. */
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

/* Draws a second row below a node's tasks: the plan in force, or the plan of the what-if. */
static void draw_second(struct screen *out, struct rect at, int x, int y,
			const struct time_window *w, const struct state *s, const struct ui *u,
			const struct state_plan *p, const struct state_node *n)
{
	bool what_if = u->branch.open;

	screen_text(out, at.x, y, x - at.x - 1, what_if ? STYLE_WARNING : STYLE_FAINT,
		    at.w < 95 ? (what_if ? "  ?" : "")
		    : what_if ? "   what if"
			      : "      plan");
	screen_put(out, x - 1, y, 0x2502, STYLE_RULE);
	draw_plan(out, x, y, w, s, p, n->see.node, -1, u->display.colouring);
}

/* Draws a text before the first task has run: the current step and the most important keys. */
static void draw_welcome(struct screen *out, struct rect at, const struct state *s,
			 const struct ui *u)
{
	static const enum action shown[] = { ACTION_SKIP, ACTION_FAIL, ACTION_INJECT,
					     ACTION_BRANCH, ACTION_HELP };
	int y = at.y + 2;
	char key[16];

	screen_print(out, at.x + 2, y++, at.w - 2, STYLE_STRONG, "No task has run yet: %s",
		     *s->status.doing ? s->status.doing : phase_name(s->status.phase));
	screen_text(out, at.x + 2, y++, at.w - 2, STYLE_FAINT,
		    "One row per node: past tasks left of now, planned tasks right of it.");
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]) && y + 1 < at.y + at.h; i++) {
		if (!panel_offers(s, u, shown[i]))
			continue;
		keymap_show_action(&u->map, shown[i], key);
		screen_text(out, at.x + 2, ++y, 3, STYLE_KEY, key);
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
	struct time_window w;
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
		draw_welcome(out, at, s, u);
		return;
	}
	w = time_window_make(s, u, columns);
	/* The percentages change only twice a second, so that they can be read. */
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
		draw_row(out, x, y, &w, s, n, u->display.colouring);
		if (each == 2)
			draw_second(out, at, x, y + 1, &w, s, u, other ? other : &s->plan, n);
		screen_put(out, x + columns, y, 0x2502, STYLE_RULE);
		if (node_presence(n->see.state) == NODE_LOST)
			screen_text(out, x + columns + 1, y, 5, STYLE_FAILED,
				    n->see.state == NODE_DEAD ? "dead" : "fail");
		else
			screen_print(out, x + columns + 1, y, 5, STYLE_FAINT, "%3d%%",
				     state_busy_percent(n, w.from_us, steady));
	}
	time_window_axis(out, at.x + lead, at.y + 1 + (int)shown * each, &w, s, other);
	if (u->branch.open && at.h > 5) {
		branch_effects(u, s, effects);
		screen_text(out, at.x + 1, at.y + 2 + (int)shown * each, at.w - 1,
			    *u->branch.refused ? STYLE_ALERT : STYLE_STRONG, effects);
	}
}
