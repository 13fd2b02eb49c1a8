/* View 3: the links. A heat map shows which links are slow, and a table how slow: measured
 * against planned transfer times, or, while links are being measured, by latency alone. With many
 * nodes a cell of the map is a pair of stages and shows its worst link. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "tui/screen/table.h"
#include "tui/views/view.h"

enum { NODES_MOST = 48, LIST_LEAST = 33 };

static bool no_way(const struct msg_link *l)
{
	return l->latency_s < 0;
}

static float ratio_of(const struct msg_link *l)
{
	return l->measured_delay_s > 0 && l->planned_delay_s > 0
		       ? l->measured_delay_s / l->planned_delay_s
		       : 0;
}

/* A step of the heat scale: the glyph for values above a number. */
struct heat {
	float above;
	char glyph;
	enum style style;
};
static const struct heat by_plan[] = { { 4, '#', STYLE_HEAT_4 },
				       { 2.5f, 'O', STYLE_HEAT_3 },
				       { 1.6f, 'o', STYLE_HEAT_2 },
				       { 1.25f, ':', STYLE_HEAT_1 },
				       { 0, '.', STYLE_HEAT_0 } };
static const struct heat by_latency[] = { { 0.15f, '#', STYLE_HEAT_4 },
					  { 0.075f, 'O', STYLE_HEAT_3 },
					  { 0.025f, 'o', STYLE_HEAT_2 },
					  { 0.005f, ':', STYLE_HEAT_1 },
					  { 0, '.', STYLE_HEAT_0 } };

static char heat_glyph(const struct heat steps[5], float value, enum style *style)
{
	for (int i = 0; i < 5; i++) {
		if (value > steps[i].above) {
			*style = steps[i].style;
			return steps[i].glyph;
		}
	}
	*style = STYLE_FAINT;
	return '-';
}

/* Returns ' ' for an unknown link, 'X' for a cut one, '-' if there is no measurement to compare
 * yet, else the glyph of the heat. */
static char link_heat(const struct state *s, const struct msg_link *l, enum style *style)
{
	bool known = l && l->planned_delay_s >= 0;

	*style = STYLE_FAINT;
	if (!l)
		return ' ';
	if (no_way(l)) {
		*style = STYLE_FAILED;
		return 'X';
	}
	return state_is_measuring(s) ? heat_glyph(by_latency, known ? l->latency_s : 0, style)
				 : heat_glyph(by_plan, ratio_of(l), style);
}

/* ---- the matrix ---- */

/* Returns the width of a cell, so that there is room for the list beside the map. */
static int choose_cell(struct rect at, const struct roster *r, int lead)
{
	int cell = 3;

	while (cell > 1 && lead + (int)r->n * cell + 2 + LIST_LEAST > at.w)
		cell--;
	return cell;
}

static int draw_by_node(struct screen *out, struct rect at, const struct state *s,
			const struct ui *u, const struct roster *r)
{
	int lead = r->digits + 3, cell = choose_cell(at, r, lead);
	int apart = (r->digits + cell) / cell; /* nodes between two numbers of the heading */
	int first = table_first((int)r->n, at.h - 1, roster_find(r, u->selection.node));

	for (int j = 0; j < (int)r->n; j += apart)
		screen_print(out, at.x + lead + (j + 1) * cell - r->digits, at.y, r->digits,
			     STYLE_FAINT, "%0*u", r->digits, (unsigned)r->nodes[j]);
	for (int i = first; i < (int)r->n && i - first + 1 < at.h; i++) {
		int y = at.y + 1 + i - first;
		unsigned mark = r->nodes[i] == u->selection.node ? STYLE_REVERSE : 0;

		screen_print(out, at.x, y, lead, STYLE_FAINT | mark, "%cn%0*u",
			     mark ? '>' : ' ', r->digits, (unsigned)r->nodes[i]);
		for (int j = 0; j < (int)r->n; j++) {
			enum style style = STYLE_FAINT;
			char glyph = i == j ? '\\'
					    : link_heat(s, state_link(s, r->nodes[i], r->nodes[j]),
							&style);

			screen_put(out, at.x + lead + (j + 1) * cell - 1, y, (uint32_t)glyph,
				   style | ((mark || r->nodes[j] == u->selection.node) && cell == 1
						    ? STYLE_REVERSE
						    : 0));
		}
	}
	return lead + (int)r->n * cell;
}

static int draw_by_stage(struct screen *out, struct rect at, const struct state *s,
			 const struct roster *r)
{
	float worst[MSG_STAGES][MSG_STAGES] = { { 0 } };

	for (size_t i = 0; i < s->n_links; i++) {
		const struct msg_link *l = &s->links[i];
		float *to = &worst[s->nodes[l->from].see.stage % MSG_STAGES]
				  [s->nodes[l->to].see.stage % MSG_STAGES];

		if (ratio_of(l) > *to)
			*to = ratio_of(l);
	}
	for (uint32_t i = 0; i < r->n_stages; i++) {
		screen_print(out, at.x + 5 + (int)i * 5, at.y, 5, STYLE_FAINT, "  S%u", i);
		screen_print(out, at.x, at.y + 1 + (int)i, 5, STYLE_FAINT, "S%u", i);
		for (uint32_t j = 0; j < r->n_stages && (int)i + 1 < at.h; j++) {
			enum style style;

			heat_glyph(by_plan, worst[i][j], &style);
			if (worst[i][j] > 0)
				screen_print(out, at.x + 5 + (int)j * 5, at.y + 1 + (int)i, 5,
					     style, "%4.1fx", (double)worst[i][j]);
		}
	}
	return 5 + (int)r->n_stages * 5;
}

/* ---- the list ---- */

enum column { LINK, PLAN, TOOK, TIMES, LATENCY, SPREAD, RATE, LOSS, SNR, BAR, COLUMNS };

/* Below it the format of activations (--wire) is too coarse for this model. */
static const float snr_least_db = 25;

struct worst {
	const struct msg_link *link;
	float badness[2]; /* the second one decides between equals */
};

/* Cut links are worst. Then come links that are slowest against the plan or, while links are being
 * measured, those that would transfer an activation slowest. */
static struct worst weigh_link(const struct state *s, const struct msg_link *l)
{
	float longest = fmaxf(l->planned_delay_s, l->latency_s);

	if (no_way(l))
		return (struct worst){ l, { INFINITY, 0 } };
	return (struct worst){ l, { state_is_measuring(s) ? longest : ratio_of(l), longest } };
}

static int compare_worst(const void *a, const void *b)
{
	const struct worst *x = a, *y = b;

	for (int i = 0; i < 2; i++)
		if (x->badness[i] != y->badness[i])
			return x->badness[i] < y->badness[i] ? 1 : -1;
	return x->link < y->link ? -1 : x->link > y->link;
}

static void print_ms(const struct table *t, struct screen *out, int row, int column, double s)
{
	table_cell(t, out, row, column, STYLE_TEXT, s < 0.9995 ? "%.1f" : "%.0f", s * 1e3);
}

/* Draws, from left to right, the planned and the measured time, their ratio, the properties of
 * the link, and the ratio as a bar. A cut link has none of these. */
static void draw_link(const struct table *t, struct screen *out, int row, const struct state *s,
		      const struct ui_selection *selection, const struct msg_link *l)
{
	unsigned mark = l->from == selection->node || l->to == selection->node ? STYLE_BOLD : 0;
	bool noisy = l->snr_db < snr_least_db;
	float ratio = ratio_of(l);
	double rate = (double)l->bandwidth_bytes_per_s / 1e6;
	enum style style;
	char bar[12] = "";

	link_heat(s, l, &style);
	for (int k = 0; k < (int)(fminf(ratio, 5) * 2); k++)
		bar[k] = '#', bar[k + 1] = '\0';
	table_cell(t, out, row, LINK, (no_way(l) ? style : STYLE_TEXT) | mark, "n%02u%cn%02u",
		   (unsigned)l->from, no_way(l) ? 'X' : '>', (unsigned)l->to);
	if (no_way(l)) {
		table_cell(t, out, row, state_is_measuring(s) ? LATENCY : TOOK, style, "cut");
		return;
	}
	table_cell(t, out, row, PLAN, STYLE_FAINT, l->planned_delay_s >= 0 ? "%.3f" : "-",
		   (double)l->planned_delay_s);
	table_cell(t, out, row, TOOK, style, l->measured_delay_s > 0 ? "%.3f" : "-",
		   (double)l->measured_delay_s);
	table_cell(t, out, row, TIMES, style, ratio > 0 ? "%.1fx" : "-", (double)ratio);
	print_ms(t, out, row, LATENCY, (double)l->latency_s);
	print_ms(t, out, row, SPREAD, (double)l->spread_s);
	table_cell(t, out, row, RATE, STYLE_TEXT,
		   rate <= 0      ? "-"
		   : rate < 9.995 ? "%.2f"
		   : rate < 999   ? "%.1f"
				  : "%.0f",
		   rate);
	table_cell(t, out, row, LOSS, l->loss > 0.001f ? STYLE_WARNING : STYLE_FAINT, "%.1f%%",
		   (double)l->loss * 100);
	if (l->snr_db != 0)
		table_cell(t, out, row, SNR, noisy ? STYLE_WARNING : STYLE_FAINT, "%.0f%s",
			   (double)l->snr_db, noisy ? "!" : "");
	table_cell(t, out, row, BAR, style, "%s", bar);
}

/* Hides the transfer times while links are being measured, because there are none, and the signal
 * to noise of activations unless it was measured. */
static void choose_columns(struct table_column columns[COLUMNS], const struct state *s,
			   const struct roster *r)
{
	static const struct table_column all[COLUMNS] = {
		[LINK] = { "from>to", 7, 9, false }, [PLAN] = { "plan s", 6, 8, true },
		[TOOK] = { "took s", 6, 9, true },   [TIMES] = { "times", 5, 8, true },
		[LATENCY] = { "lat ms", 6, 7, true }, [SPREAD] = { "+-ms", 5, 4, true },
		[RATE] = { "MB/s", 6, 6, true },     [LOSS] = { "loss", 5, 5, true },
		[SNR] = { "SNR dB", 6, 3, true },    [BAR] = { " ", 10, 2, false },
	};
	bool any_noise = false;

	for (int i = 0; i < COLUMNS; i++)
		columns[i] = all[i];
	columns[LINK].width = 2 * r->digits + 3;
	for (size_t i = 0; i < s->n_links; i++)
		any_noise = any_noise || s->links[i].snr_db != 0;
	if (!any_noise)
		columns[SNR].width = 0;
	if (!state_is_measuring(s))
		return;
	columns[TOOK].width = columns[TIMES].width = columns[BAR].width = 0;
}

static void draw_worst(struct screen *out, struct rect at, const struct state *s,
		       const struct ui_selection *selection, const struct roster *r)
{
	struct worst *list = alloc_array(s->n_links + 1, sizeof(*list));
	struct table_column columns[COLUMNS];
	struct table t;
	size_t n = 0;

	for (size_t i = 0; i < s->n_links; i++)
		list[n++] = weigh_link(s, &s->links[i]);
	qsort(list, n, sizeof(*list), compare_worst);
	choose_columns(columns, s, r);
	table_open(&t, out, at, columns, COLUMNS);
	for (size_t i = 0; i < n && (int)i + 1 < at.h; i++)
		draw_link(&t, out, (int)i, s, selection, list[i].link);
	free(list);
}

/* ---- the view ---- */

static void draw_links_title(struct screen *out, struct rect at, const struct state *s)
{
	static const char *const legends[2][2] = {
		{ ". : o O # slower",
		  ". as planned  : +25%  o +60%  O x2.5  # x4  - unused  X cut" },
		{ ". : o O # latency",
		  ". <5ms  : 5  o 25  O 75  # 150  - no MB/s yet  X cut" }
	};
	bool measures = state_is_measuring(s), wide = at.w >= 110;
	size_t cut = 0, known = 0;
	char title[128], part[64];
	int n;

	for (size_t i = 0; i < s->n_links; i++) {
		cut += no_way(&s->links[i]);
		known += s->links[i].planned_delay_s >= 0;
	}
	glyphs_step(s, part);
	if (measures && s->status.step == GATHER_LINKS)
		n = snprintf(title, sizeof(title), "Links: %s", part);
	else
		n = snprintf(title, sizeof(title), "Links: %zu measured%s", known,
			     measures ? "" : " against the plan");
	if (cut > 0)
		snprintf(title + n, sizeof(title) - (size_t)n, ", %zu cut", cut);
	screen_rule(out, at, title, legends[measures][wide]);
}

void view_links(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r)
{
	struct rect in = { at.x, at.y + 1, at.w, at.h - 1 }, list = in;
	int taken, rows;

	draw_links_title(out, at, s);
	if (s->n_links == 0) {
		screen_text(out, in.x + 1, in.y, in.w, STYLE_FAINT,
			    s->run.replay ? "a replay has no measured links"
					  : "no link has been measured yet");
		return;
	}
	if (r->n > NODES_MOST && r->unplaced) { /* too many nodes for cells, and no stages yet */
		draw_worst(out, list, s, &u->selection, r);
		return;
	}
	taken = r->n <= NODES_MOST ? draw_by_node(out, in, s, u, r) : draw_by_stage(out, in, s, r);
	rows = (int)(r->n <= NODES_MOST ? r->n : r->n_stages) + 1;
	if (in.w - taken - 2 >= LIST_LEAST) {
		list.x += taken + 2;
		list.w -= taken + 2;
		screen_vertical(out, list.x - 1, in.y, in.h);
	} else {
		list.y += rows;
		list.h -= rows;
	}
	if (list.h > 1)
		draw_worst(out, list, s, &u->selection, r);
}
