/* View 7: the plan in force against what else could be: every number of skipped stages, planned by
 * the controller when the view is opened (figures with * are predictions), and the full pipeline. */
#include <stdio.h>
#include <string.h>

#include "tui/table.h"
#include "tui/view.h"

enum row { ROW_ITERATION, ROW_CHANGE, ROW_BLOCKED, ROW_SLOTS, ROW_LEAST, ROW_PATHS, ROW_TOOK, ROWS };

static const char *const row_names[ROWS] = { "iteration, s", "against live", "blocked, s", "peak slots",
	"least visits", "paths changed", "planned in, s" };

static void draw_candidate(const struct table *t, struct screen *out, int column, const struct state *s,
	const struct ui_candidate *k)
{
	const struct msg_see_preview *p = &k->preview;
	char change[16];

	if (!k->have) {
		table_cell(t, out, ROW_ITERATION, column, STYLE_FAINT, k->id ? "planning" : "-");
		return;
	}
	if (!p->feasible) {
		table_cell(t, out, ROW_ITERATION, column, STYLE_WARNING, "none");
		return;
	}
	look_change((double)s->plan.see.iteration_s, (double)p->after_iteration_s, change);
	table_cell(t, out, ROW_ITERATION, column, STYLE_STRONG, "%.1f*", (double)p->after_iteration_s);
	table_cell(t, out, ROW_CHANGE, column, p->after_iteration_s < s->plan.see.iteration_s ? STYLE_GOOD :
		   STYLE_TEXT, "%s", change);
	table_cell(t, out, ROW_BLOCKED, column, STYLE_TEXT, "%.1f*", (double)p->after_wait_s);
	table_cell(t, out, ROW_SLOTS, column, p->after_peak_slots > p->memory ? STYLE_ALERT : STYLE_TEXT,
		   "%u/%u*", p->after_peak_slots, p->memory);
	table_cell(t, out, ROW_LEAST, column, STYLE_TEXT, "S%u %u*", p->least_stage, p->after_least_visits);
	table_cell(t, out, ROW_PATHS, column, STYLE_TEXT, "%u", p->paths_changed);
	table_cell(t, out, ROW_TOOK, column, STYLE_FAINT, "%.2f", (double)p->elapsed_s);
}

static void draw_live(const struct table *t, struct screen *out, const struct state *s)
{
	const struct msg_see_iteration *it = s->n_iterations ? &s->iterations[s->n_iterations - 1] : NULL;

	for (int i = 0; i < ROWS; i++)
		table_cell(t, out, i, 0, STYLE_FAINT, "%s", row_names[i]);
	table_cell(t, out, ROW_ITERATION, 1, STYLE_STRONG, "%.1f*", (double)s->plan.see.iteration_s);
	if (it)
		table_cell(t, out, ROW_CHANGE, 1, STYLE_TEXT, "took %.1f", (double)it->iteration_s);
	table_cell(t, out, ROW_BLOCKED, 1, STYLE_TEXT, "%.1f*", (double)s->plan.see.wait_s);
	table_cell(t, out, ROW_PATHS, 1, STYLE_FAINT, "%u lately", s->plan.paths_changed);
	table_cell(t, out, ROW_TOOK, 1, STYLE_FAINT, "%.2f", (double)s->plan.see.elapsed_s);
}

/* How often each stage is visited by the plan in force: skipping must spread evenly. */
static void draw_visits(struct screen *out, struct rect at, const struct state *s)
{
	uint32_t most = 1;

	screen_rule(out, at, "Visits of each stage in an iteration (plan in force)", NULL);
	for (uint32_t i = 0; i < s->run.n_stages; i++)
		if (s->plan.visits[i] > most)
			most = s->plan.visits[i];
	for (uint32_t i = 0; i < s->run.n_stages && (int)i + 1 < at.h; i++) {
		int w = (at.w - 12) * (int)s->plan.visits[i] / (int)most, y = at.y + 1 + (int)i;

		screen_print(out, at.x, y, 10, STYLE_TEXT, "S%-2u %5u ", i, s->plan.visits[i]);
		screen_fill(out, (struct rect){ at.x + 10, y, w, 1 }, '=', STYLE_BAR_FORWARD);
	}
}

void view_compare(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	struct table_column columns[TABLE_COLUMNS] = { { "", 13, 9, false }, { "LIVE", 10, 9, true } };
	char heads[TABLE_COLUMNS][32], title[96];
	struct rect in = { at.x, at.y + 1, at.w, ROWS + 1 }, visits = at;
	struct table t;
	int n = 2;

	snprintf(title, sizeof(title), "Compare: plan %llu (%s) and others", (unsigned long long)s->plan.see.epoch,
		 s->plan.see.algorithm);
	screen_rule(out, at, title, at.w >= 70 ? "* predicted; Enter plans them anew" : "* predicted");
	for (uint32_t k = 0; k + 1 < s->run.n_stages && n < TABLE_COLUMNS - 1; k++, n++) {
		bool now = s->status.n_stages - s->status.path_length == k;

		snprintf(heads[n], sizeof(heads[n]), "%sskip%u/%u", now ? ">" : "", k, s->run.n_stages);
		columns[n] = (struct table_column){ heads[n], 10, now ? 8 : 7 - (int)k / 2, true };
	}
	columns[n++] = (struct table_column){ "baseline", 10, 8, true };
	if (in.h > at.h - 1)
		in.h = at.h - 1;
	table_open(&t, out, in, columns, n);
	draw_live(&t, out, s);
	for (int k = 2; k < n - 1; k++)
		draw_candidate(&t, out, k, s, &u->candidates[k - 2]);
	if (s->run.baseline_s > 0) {
		char change[16];

		look_change((double)s->plan.see.iteration_s, s->run.baseline_s, change);
		table_cell(&t, out, ROW_ITERATION, n - 1, STYLE_STRONG, "%.1f*", s->run.baseline_s);
		table_cell(&t, out, ROW_CHANGE, n - 1, STYLE_TEXT, "%s", change);
	}
	visits.y += in.h + 2;
	visits.h -= in.h + 2;
	if (visits.h >= 3)
		draw_visits(out, visits, s);
}
