/* View 3: the links. A heat map shows which links are slow. A table gives the figures of the links,
 * such as planned and measured transfer times, latency and bandwidth. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "tui/screen/table.h"
#include "tui/views/link_map.h"
#include "tui/views/view.h"

enum { LIST_LEAST = 33 };

/* ---- the list ---- */

enum column { LINK, PLAN, TOOK, TIMES, LATENCY, SPREAD, RATE, LOSS, SNR, BAR, COLUMNS };

/* If the signal to noise ratio of activations is below this value, the format of the activations
 * (--wire) is too coarse for this model. */
static const float snr_least_db = 25;

struct worst {
	const struct msg_link *link;
	/* Badness of the link. The second number decides between links whose first numbers are
	 * equal. */
	float badness[2];
};

/* Makes the sort key of a link; the worst links come first. Cut links are worst. The others are
 * compared by the map's measure. Before the first iteration of a run that measures its links, there
 * are no transfer times. The key is then not a ratio to the plan, but the planned time of an
 * activation or the latency, whichever is longer.
 */
static struct worst weigh_link(const struct state *s, const struct ui *u, const struct msg_link *l)
{
	float longest = fmaxf(l->planned_delay_s, l->latency_s);
	bool is_start = state_is_measuring(s) && u->display.link_measure == LINK_BY_PLAN;

	if (link_map_is_cut(l))
		return (struct worst){ l, { INFINITY, 0 } };
	return (struct worst){
		l,
		{ is_start ? longest : link_map_badness(s, l, link_map_measure(s, u)), longest }
	};
}

static int compare_worst(const void *a, const void *b)
{
	const struct worst *x = a, *y = b;

	for (int i = 0; i < 2; i++)
		if (x->badness[i] != y->badness[i])
			return x->badness[i] < y->badness[i] ? 1 : -1;
	return x->link < y->link ? -1 : x->link > y->link;
}

static void print_ms(const struct table *t, struct screen *out, int row, int column,
		     unsigned style, double s)
{
	table_cell(t, out, row, column, style, s <= 0 ? "-" : s < 0.9995 ? "%.1f" : "%.0f",
		   s * 1e3);
}

/* Draws a row: planned and measured time, their ratio, the link's properties, and the ratio as a
 * bar. The figure that the map shows has the same colour as the map's cell. A cut link has no
 * figures. */
static void draw_link(const struct table *t, struct screen *out, int row, const struct state *s,
		      const struct ui *u, const struct msg_link *l)
{
	unsigned mark = l->from == u->selection.node || l->to == u->selection.node ? STYLE_BOLD
										    : 0;
	bool is_cut = link_map_is_cut(l), noisy = l->snr_db < snr_least_db;
	float ratio = link_map_ratio(l);
	double rate = (double)l->bandwidth_bytes_per_s / 1e6;
	enum link_measure by = link_map_measure(s, u);
	enum style style, ratio_style;
	char bar[12] = "";

	link_map_heat(by, link_map_badness(s, l, by), &style);
	link_map_heat(LINK_BY_PLAN, ratio, &ratio_style);
	for (int k = 0; k < (int)(fminf(ratio, 5) * 2); k++)
		bar[k] = '#', bar[k + 1] = '\0';
	table_cell(t, out, row, LINK, (is_cut ? style : STYLE_TEXT) | mark, "n%02u%cn%02u",
		   (unsigned)l->from, is_cut ? 'X' : '>', (unsigned)l->to);
	if (is_cut) {
		table_cell(t, out, row, state_is_measuring(s) ? LATENCY : TOOK, style, "cut");
		return;
	}
	table_cell(t, out, row, PLAN, STYLE_FAINT, l->planned_delay_s >= 0 ? "%.3f" : "-",
		   (double)l->planned_delay_s);
	table_cell(t, out, row, TOOK, ratio_style, l->measured_delay_s > 0 ? "%.3f" : "-",
		   (double)l->measured_delay_s);
	table_cell(t, out, row, TIMES, ratio_style, ratio > 0 ? "%.1fx" : "-", (double)ratio);
	print_ms(t, out, row, LATENCY, by == LINK_BY_LATENCY ? style : STYLE_TEXT,
		 (double)l->latency_s);
	print_ms(t, out, row, SPREAD, STYLE_TEXT, (double)l->spread_s);
	table_cell(t, out, row, RATE, by == LINK_BY_BANDWIDTH ? style : STYLE_TEXT,
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
	table_cell(t, out, row, BAR, ratio_style, "%s", bar);
}

/* Chooses the columns. The column of the map's measure gets a high rank, so that a small screen
 * keeps it. While links are being measured, there are no transfer times, and their columns are
 * hidden. The column of the signal to noise ratio is hidden unless the ratio was measured. */
static void choose_columns(struct table_column columns[COLUMNS], const struct state *s,
			   const struct ui *u, const struct roster *r)
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
	columns[LATENCY].rank += 3 * (link_map_measure(s, u) == LINK_BY_LATENCY);
	columns[RATE].rank += 3 * (link_map_measure(s, u) == LINK_BY_BANDWIDTH);
	for (size_t i = 0; i < s->n_links; i++)
		any_noise = any_noise || s->links[i].snr_db != 0;
	if (!any_noise)
		columns[SNR].width = 0;
	if (!state_is_measuring(s))
		return;
	columns[TOOK].width = columns[TIMES].width = columns[BAR].width = 0;
}

static void draw_worst(struct screen *out, struct rect at, const struct state *s,
		       const struct ui *u, const struct roster *r)
{
	struct worst *list = alloc_array(s->n_links + 1, sizeof(*list));
	struct table_column columns[COLUMNS];
	struct table t;
	size_t n = 0;

	for (size_t i = 0; i < s->n_links; i++)
		list[n++] = weigh_link(s, u, &s->links[i]);
	qsort(list, n, sizeof(*list), compare_worst);
	choose_columns(columns, s, u, r);
	table_open(&t, out, at, columns, COLUMNS);
	for (size_t i = 0; i < n && (int)i + 1 < at.h; i++)
		draw_link(&t, out, (int)i, s, u, list[i].link);
	free(list);
}

/* ---- the view ---- */

/* Returns a text that explains the map's cells, in a long form for a wide screen. */
static const char *choose_legend(const struct state *s, enum link_measure by, bool wide,
				 bool has_numbers)
{
	static const char *const texts[LINK_MEASURES][2] = {
		[LINK_BY_PLAN] = { ". : o O # slower",
				   ". as planned  : +25%  o +60%  O x2.5  # x4  - unused  X cut" },
		[LINK_BY_LATENCY] = { ". : o O # latency",
				      ". <5ms  : 5  o 25  O 75  # 150  - not measured  X cut" },
		[LINK_BY_BANDWIDTH] = { ". : o O # slower",
					". >500MB/s  : 500  o 100  O 20  # 5"
					"  - not measured  X cut" },
	};

	if (has_numbers)
		return wide ? "a cell: the worst link  - not measured  X cut"
			    : "- not measured";
	if (wide && by == LINK_BY_LATENCY && state_is_measuring(s))
		return ". <5ms  : 5  o 25  O 75  # 150  - no MB/s yet  X cut";
	return texts[by][wide];
}

static void draw_links_title(struct screen *out, struct rect at, const struct state *s,
			     const struct ui *u, const struct link_groups *g, bool has_numbers)
{
	static const char *const measures[LINK_MEASURES] = { "against the plan", "latency in ms",
							     "bandwidth in MB/s" };
	static const char *const groups[LINK_GROUPINGS] = { "node", "region", "stage" };
	enum link_measure by = link_map_measure(s, u);
	size_t cut = 0, known = 0;
	char title[128], part[64];
	int n;

	for (size_t i = 0; i < s->n_links; i++) {
		const struct msg_link *l = &s->links[i];

		cut += link_map_is_cut(l);
		known += by == LINK_BY_PLAN ? l->planned_delay_s >= 0
					    : link_map_badness(s, l, by) > 0 && !link_map_is_cut(l);
	}
	glyphs_step(s, part);
	if (state_is_measuring(s) && s->status.step == GATHER_LINKS)
		n = snprintf(title, sizeof(title), "Links: %s", part);
	else
		n = snprintf(title, sizeof(title), "Links%s%s: %zu, %s%s", g->n ? " by " : "",
			     g->n ? groups[g->by] : "", known, measures[by],
			     s->run.emulated && by != LINK_BY_PLAN ? ", emulated" : "");
	if (cut > 0)
		snprintf(title + n, sizeof(title) - (size_t)n, ", %zu cut", cut);
	screen_rule(out, at, title, choose_legend(s, by, at.w >= 110, has_numbers));
}

void view_links(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r)
{
	struct rect in = { at.x, at.y + 1, at.w, at.h - 1 }, list = in;
	struct link_groups g;
	struct link_map map;
	int taken;

	link_groups_make(&g, u->display.link_grouping, s, r);
	link_map_layout(&map, in, &g, r, s, LIST_LEAST);
	draw_links_title(out, at, s, u, &g, map.has_numbers && s->n_links > 0);
	if (s->n_links == 0) {
		screen_text(out, in.x + 1, in.y, in.w, STYLE_FAINT,
			    s->run.replay ? "a replay has no measured links"
					  : "no link has been measured yet");
		return;
	}
	taken = map.lead + (int)g.n * map.cell;
	if (g.n > 0)
		link_map_draw(&map, out, &g, r, s, u);
	if (g.n > 0 && in.w - taken - 2 >= LIST_LEAST) {
		list.x += taken + 2;
		list.w -= taken + 2;
		screen_vertical(out, list.x - 1, in.y, in.h);
	} else if (g.n > 0) {
		list.y += (int)g.n + 1;
		list.h -= (int)g.n + 1;
	}
	if (list.h > 1)
		draw_worst(out, list, s, u, r);
}
