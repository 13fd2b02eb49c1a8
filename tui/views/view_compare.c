/* View 7: compares the plan in force with its alternatives.
 *
 * The table has a column for every number of skipped stages and for a published baseline. Below it
 * are the times with other formats of activations or sums. The controller computes all of these
 * plans while the view is open. Then follow the plans that the run has used, with predicted and
 * measured times. At the bottom are the tasks of the plan in force and of the selected candidate,
 * on one time axis. `*` marks predicted numbers.
 */
#include <stdio.h>
#include <string.h>

#include "tui/run/used_plans.h"
#include "tui/screen/table.h"
#include "tui/views/view.h"

enum row {
	ROW_ITERATION,
	ROW_SYNC,
	ROW_CHANGE,
	ROW_BLOCKED,
	ROW_COLLISIONS,
	ROW_IDLE,
	ROW_LEAST,
	ROW_PATHS,
	ROW_TOOK,
	ROWS
};

static const char *const row_names[ROWS] = { "iteration, s", "sums, s",	 "vs. live",
					     "blocked, s",   "collisions",   "idle",
					     "least visits", "paths changed", "planning, s" };

static void draw_plan_column(const struct table *t, struct screen *out, int column,
			     const struct state *s, const struct state_plan *p)
{
	const struct msg_see_plan *m = &p->see;
	uint32_t least = 1 < m->n_stages ? 1 : 0;
	char change[16];
	int d = glyphs_decimals((double)s->plan.see.iteration_s);

	for (uint32_t i = 1; i < m->n_stages && i < MSG_STAGES; i++)
		if (p->visits[i] < p->visits[least])
			least = i;
	glyphs_change((double)s->plan.see.iteration_s, (double)m->iteration_s, change);
	table_cell(t, out, ROW_ITERATION, column, STYLE_STRONG, "%.*f*", d,
		   (double)m->iteration_s);
	table_cell(t, out, ROW_SYNC, column, STYLE_TEXT, "%.*f*", d, (double)m->sync_s);
	if (p != &s->plan)
		table_cell(t, out, ROW_CHANGE, column,
			   m->iteration_s < s->plan.see.iteration_s ? STYLE_GOOD : STYLE_TEXT,
			   "%s", change);
	table_cell(t, out, ROW_BLOCKED, column, STYLE_TEXT, "%.*f*", d, (double)m->wait_s);
	table_cell(t, out, ROW_COLLISIONS, column, STYLE_TEXT, "%u*", m->collisions);
	table_cell(t, out, ROW_IDLE, column, STYLE_TEXT, "%.0f%%*",
		   (double)m->idle_fraction * 100);
	table_cell(t, out, ROW_LEAST, column, STYLE_TEXT, "S%u %u", least, p->visits[least]);
	table_cell(t, out, ROW_PATHS, column, STYLE_TEXT, "%u", p->paths_changed);
	table_cell(t, out, ROW_TOOK, column, STYLE_FAINT, "%.2f", (double)m->elapsed_s);
}

/* Returns the state of the request for a candidate that has no answer yet. */
static const char *request_state(const struct ui_candidate *one)
{
	return one->asked >= 2 ? "none" : one->id ? "planning" : "-";
}

/* Draws a column for each plan: the plan in force, then candidates as far as there is room. The
 * selected candidate is always among them. A candidate without an answer shows the state of its
 * request. */
static void draw_table(struct screen *out, struct rect at, const struct state *s,
		       const struct ui_compare *compare)
{
	struct table_column columns[TABLE_COLUMNS] = { { "", 13, 9, false },
						       { "LIVE", 9, 9, true } };
	const struct ui_candidate *shown[TABLE_COLUMNS];
	char heads[TABLE_COLUMNS][40];
	struct table t;
	int n = 2;

	for (uint32_t k = 0; k < compare->n && n < TABLE_COLUMNS - 1; k++) {
		bool chosen = k == compare->shown;

		if (k >= compare->n_plans && !chosen)
			continue; /* draw_formats draws these candidates */
		shown[n] = &compare->candidates[k];
		snprintf(heads[n], sizeof(heads[n]), "%s%.9s", chosen ? ">" : "",
			 compare->candidates[k].name);
		columns[n] = (struct table_column){ heads[n], 10, chosen ? 8 : 7 - (int)k / 3,
						    true };
		n++;
	}
	table_open(&t, out, at, columns, n);
	for (int i = 0; i < ROWS; i++)
		table_cell(&t, out, i, 0, STYLE_FAINT, "%s", row_names[i]);
	draw_plan_column(&t, out, 1, s, &s->plan);
	for (int k = 2; k < n; k++) {
		const struct state_plan *p = state_candidate(s, shown[k]->name);

		if (p)
			draw_plan_column(&t, out, k, s, p);
		else
			table_cell(&t, out, ROW_ITERATION, k, STYLE_FAINT, "%s",
				   request_state(shown[k]));
	}
}

/* ---- other formats ---- */

/* Returns the predicted time from one commit to the next, with the sums. */
static double whole_s(const struct state_plan *p)
{
	return (double)p->see.iteration_s + (double)p->see.sync_s;
}

/* FORMAT_CELL is the width of a text such as ">fp32 61.0* +70%". */
enum { FORMAT_LABEL = 12, FORMAT_CELL = 17, FORMAT_ROWS = 3 };

static void draw_format(struct screen *out, int x, int y, const struct state *s,
			const struct ui_compare *compare, const char *kind, enum tensor_format f)
{
	const struct ui_candidate *one = NULL;
	const struct state_plan *p;
	char name[32], change[16];
	uint32_t k;

	snprintf(name, sizeof(name), "%s %s", kind, tensor_format_name(f));
	for (k = compare->n_plans; k < compare->n && !one; k++)
		if (strcmp(compare->candidates[k].name, name) == 0)
			one = &compare->candidates[k];
	p = one ? state_candidate(s, name) : &s->plan;
	if (one && one == &compare->candidates[compare->shown])
		screen_put(out, x - 1, y, '>', STYLE_STRONG);
	x += screen_print(out, x, y, FORMAT_CELL - 1, one ? STYLE_TEXT : STYLE_STRONG, "%-4s ",
			  tensor_format_name(f));
	if (!p) {
		screen_print(out, x, y, FORMAT_CELL - 6, STYLE_FAINT, "%s", request_state(one));
		return;
	}
	glyphs_change(whole_s(&s->plan), whole_s(p), change);
	screen_print(out, x, y, FORMAT_CELL - 6, one ? STYLE_TEXT : STYLE_STRONG, "%.*f* %s",
		     glyphs_decimals(whole_s(&s->plan)), whole_s(p), one ? change : "live");
}

/* Draws the predicted times with other formats, and the commands that would change a format. */
static void draw_formats(struct screen *out, struct rect at, const struct state *s,
			 const struct ui_compare *compare)
{
	screen_rule(out, at, "Formats: iteration and sums, s",
		    at.w >= 76 ? ":wire F and :sum-wire F change them" : NULL);
	for (int row = 0; row < 2; row++) {
		int y = at.y + 1 + row;

		screen_print(out, at.x, y, FORMAT_LABEL, STYLE_FAINT, "%s",
			     row ? "sums" : "activations");
		for (int i = 0; i < DIALOG_FORMATS; i++)
			if (FORMAT_LABEL + (i + 1) * FORMAT_CELL <= at.w)
				draw_format(out, at.x + FORMAT_LABEL + 1 + i * FORMAT_CELL, y, s,
					    compare, row ? "sums" : "wire",
					    dialog_format(row ? DIALOG_SUM_WIRE : DIALOG_WIRE, i));
	}
}

/* ---- plans that the run has used ---- */

/* The table's columns, in the order of the screen. */
enum ran_column {
	RAN_PLAN,
	RAN_ALGORITHM,
	RAN_ITERATIONS,
	RAN_PREDICTED,
	RAN_TOOK,
	RAN_CHANGE,
	RAN_SUMS,
	RAN_SUMS_TOOK,
	RAN_REST,
	RAN_COLUMNS
};

static void draw_ran_plan(const struct table *t, struct screen *out, int row, const struct state *s,
			  const struct used_plan *r)
{
	uint32_t stages = r->n_stages ? r->n_stages : s->run.n_stages;
	int d = glyphs_decimals((double)r->predicted_s);
	char change[16], share[16] = "";

	if (r->skip_share > 0)
		snprintf(share, sizeof(share), " %u%%", r->skip_share);
	table_cell(t, out, row, RAN_PLAN, STYLE_TEXT, "%llu", (unsigned long long)r->epoch);
	table_cell(t, out, row, RAN_ALGORITHM, STYLE_TEXT, "%.15s %u/%u%s",
		   *r->algorithm ? r->algorithm : "?",
		   stages > r->path_length ? stages - r->path_length : 0, stages, share);
	table_cell(t, out, row, RAN_PREDICTED, STYLE_TEXT, "%.*f*", d, (double)r->predicted_s);
	table_cell(t, out, row, RAN_SUMS, STYLE_TEXT, "%.*f*", d, (double)r->predicted_sync_s);
	if (r->last == 0)
		return;
	glyphs_change((double)r->predicted_s, (double)r->measured_s, change);
	table_cell(t, out, row, RAN_ITERATIONS, STYLE_FAINT, "%llu-%llu",
		   (unsigned long long)r->first, (unsigned long long)r->last);
	table_cell(t, out, row, RAN_TOOK, STYLE_STRONG, "%.*f", d, (double)r->measured_s);
	table_cell(t, out, row, RAN_CHANGE, STYLE_TEXT, "%s", change);
	table_cell(t, out, row, RAN_SUMS_TOOK, STYLE_STRONG, "%.*f", d, (double)r->measured_sync_s);
}

/* Draws the plans that the run has used, on at most a quarter of the rows. Returns the number of
 * rows used. */
static int draw_ran(struct screen *out, struct rect at, const struct state *s)
{
	static const struct table_column columns[RAN_COLUMNS] = {
		[RAN_PLAN] = { "plan", 5, 9, true },
		[RAN_ALGORITHM] = { "", 13, 9, false },
		[RAN_ITERATIONS] = { "iterations", 12, 6, true },
		[RAN_PREDICTED] = { "iteration, s", 12, 9, true },
		[RAN_TOOK] = { "took", 7, 9, true },
		[RAN_CHANGE] = { "", 5, 7, true },
		[RAN_SUMS] = { "sums, s", 11, 8, true },
		[RAN_SUMS_TOOK] = { "took", 7, 8, true },
		[RAN_REST] = { "", 1, 9, false },
	};
	int most = (at.h - 3) / 4 + 1;
	struct used_plan list[USED_PLANS_MOST];
	struct table t;
	uint32_t n = used_plans_list(s, list,
				     most < USED_PLANS_MOST ? (uint32_t)most : USED_PLANS_MOST);

	if (n == 0)
		return 0;
	screen_rule(out, at, "Plans of this run", at.w >= 76 ? "took: the measured median" : NULL);
	at.y++;
	at.h = (int)n + 1;
	table_open(&t, out, at, columns, RAN_COLUMNS);
	for (uint32_t i = 0; i < n; i++)
		draw_ran_plan(&t, out, (int)i, s, &list[i]);
	return (int)n + 2;
}

/* ---- both plans, node by node ---- */

static int64_t end_of(const struct state_plan *p)
{
	int64_t end = 1;

	for (uint32_t i = 0; i < p->n_tasks; i++)
		if (p->tasks[i].end_us > end)
			end = p->tasks[i].end_us;
	return end;
}

/* Returns the column of a time on an axis of w columns; -1: left of the axis; w: right of it. */
static int column_of(int64_t us, int64_t end_us, int w)
{
	double at = (double)us / (double)end_us;

	return at < 0 ? -1 : at > 1 ? w : (int)(at * w);
}

static void draw_tasks(struct screen *out, int x, int y, int w, const struct state_plan *p,
		       uint16_t node, int64_t end_us)
{
	for (int c = 0; c < w; c++)
		screen_put(out, x + c, y, '.', STYLE_IDLE);
	for (uint32_t i = p->first[node]; i < p->first[node + 1]; i++) {
		const struct state_segment *g = &p->tasks[i];
		int from = column_of(g->start_us, end_us, w),
		    to = column_of(g->end_us, end_us, w);

		for (int c = from; c < to || c == from; c++)
			if (c >= 0 && c < w)
				screen_put(out, x + c, y, (uint32_t)glyphs_task_glyph(g->kind),
					   glyphs_bar_style(g->kind));
	}
}

/* Draws the tasks of both plans on one time axis, so that their lengths can be compared. */
static void draw_gantts(struct screen *out, struct rect at, const struct state *s,
			const struct roster *r, const struct ui *u,
			const struct state_plan *other)
{
	int half = at.w / 2 - 1, lead = r->digits + 2, w = half - lead - 1, first;
	int64_t end = end_of(&s->plan);
	char title[96], right[96];

	if (other && end_of(other) > end)
		end = end_of(other);
	snprintf(title, sizeof(title), "Live plan, predicted %.*f s",
		 glyphs_decimals((double)s->plan.see.iteration_s),
		 (double)s->plan.see.iteration_s);
	screen_rule(out, at, title, NULL);
	if (other) {
		snprintf(right, sizeof(right), "%s, predicted %.*f s", other->see.name,
			 glyphs_decimals((double)other->see.iteration_s),
			 (double)other->see.iteration_s);
		screen_rule(out, (struct rect){ at.x + half + 1, at.y, at.w - half - 1, 1 },
			    right, NULL);
	}
	first = table_first((int)r->n, at.h - 1, roster_find(r, u->selection.node));
	for (int i = 0; i + 1 < at.h && first + i < (int)r->n && w > 4; i++) {
		uint16_t node = r->nodes[first + i];
		int y = at.y + 1 + i;

		for (int k = 0; k < (other ? 2 : 1); k++) {
			int x = at.x + k * (half + 1);

			screen_print(out, x, y, lead, STYLE_TEXT, " %0*u", r->digits,
				     (unsigned)node);
			draw_tasks(out, x + lead, y, w, k ? other : &s->plan, node, end);
		}
	}
}

void view_compare(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		  const struct roster *r)
{
	const struct state_plan *other =
		u->compare.shown < u->compare.n
			? state_candidate(s, u->compare.candidates[u->compare.shown].name)
			: NULL;
	struct rect in = { at.x, at.y + 1, at.w, ROWS + 1 }, below = at;
	char title[96];
	int took;

	snprintf(title, sizeof(title), "Compare: plan %llu (%s) and others",
		 (unsigned long long)s->plan.see.epoch, s->plan.see.algorithm);
	screen_rule(out, at, title,
		    at.w >= 76 ? "* predicted; arrows select, Enter previews the change"
			       : "* predicted");
	if (in.h > at.h - 1)
		in.h = at.h - 1;
	draw_table(out, in, s, &u->compare);
	below.y += in.h + 1;
	below.h -= in.h + 1;
	if (below.h >= FORMAT_ROWS && u->compare.n > u->compare.n_plans && s->plan.known) {
		draw_formats(out, below, s, &u->compare);
		below.y += FORMAT_ROWS;
		below.h -= FORMAT_ROWS;
	}
	took = below.h >= 3 ? draw_ran(out, below, s) : 0;
	below.y += took;
	below.h -= took;
	if (below.h >= 3 && s->plan.known)
		draw_gantts(out, below, s, r, u, other);
}
