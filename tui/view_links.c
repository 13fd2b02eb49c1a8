/* View 3: the links. A heat matrix says where it is slow, a table how slow: measured against
 * what the plan assumes. With many nodes a cell of the matrix is a pair of stages, its worst
 * link. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tui/table.h"
#include "tui/view.h"

enum { NODES_MOST = 48 };

struct worst {
	const struct msg_link *link;
	float ratio;
};

static float ratio_of(const struct msg_link *l)
{
	return l->measured_delay_s > 0 && l->planned_delay_s > 0
		       ? l->measured_delay_s / l->planned_delay_s
		       : 0;
}

/* '.' as planned, ':' +25%, 'o' +60%, 'O' 2.5 times, '#' 4 times; ' ' not seen. */
static char heat(float ratio, enum style *style)
{
	static const struct {
		float above;
		char glyph;
		enum style style;
	} steps[] = { { 4, '#', STYLE_HEAT_4 },
		      { 2.5f, 'O', STYLE_HEAT_3 },
		      { 1.6f, 'o', STYLE_HEAT_2 },
		      { 1.25f, ':', STYLE_HEAT_1 },
		      { 0, '.', STYLE_HEAT_0 } };

	for (int i = 0; i < 5; i++) {
		if (ratio > steps[i].above) {
			*style = steps[i].style;
			return steps[i].glyph;
		}
	}
	*style = STYLE_FAINT;
	return ' ';
}

static int matrix_by_node(struct screen *out, struct rect at, const struct state *s,
			  const struct ui *u, const struct roster *r)
{
	int cell = at.w >= ((int)r->n * 3 + 5) && r->n <= 24 ? 3 : 1, lead = r->digits + 3;

	for (uint32_t j = 0; j < r->n && cell == 3; j++)
		screen_print(out, at.x + lead + (int)j * cell, at.y, cell, STYLE_FAINT, " %02u",
			     r->nodes[j]);
	for (uint32_t i = 0; i < r->n && (int)i + 1 < at.h; i++) {
		int y = at.y + 1 + (int)i;
		unsigned mark = r->nodes[i] == u->selected ? STYLE_REVERSE : 0;

		screen_print(out, at.x, y, lead, STYLE_FAINT | mark, "%cn%0*u",
			     mark ? '>' : ' ', r->digits, r->nodes[i]);
		for (uint32_t j = 0; j < r->n; j++) {
			const struct msg_link *l = state_link(s, r->nodes[i], r->nodes[j]);
			enum style style = STYLE_FAINT;
			char glyph = i == j ? '\\' : l ? heat(ratio_of(l), &style) : ' ';

			screen_put(out, at.x + lead + (int)j * cell + cell - 1, y,
				   (uint32_t)glyph,
				   style | ((mark || r->nodes[j] == u->selected) && cell == 1
						    ? STYLE_REVERSE
						    : 0));
		}
	}
	return lead + (int)r->n * cell;
}

static int matrix_by_stage(struct screen *out, struct rect at, const struct state *s,
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

			heat(worst[i][j], &style);
			if (worst[i][j] > 0)
				screen_print(out, at.x + 5 + (int)j * 5, at.y + 1 + (int)i, 5,
					     style, "%4.1fx", (double)worst[i][j]);
		}
	}
	return 5 + (int)r->n_stages * 5;
}

static int compare_worst(const void *a, const void *b)
{
	const struct worst *x = a, *y = b;

	if (x->ratio != y->ratio)
		return x->ratio < y->ratio ? 1 : -1;
	return x->link < y->link ? -1 : x->link > y->link;
}

static void draw_worst(struct screen *out, struct rect at, const struct state *s,
		       const struct ui *u)
{
	static const struct table_column columns[] = {
		{ "from>to", 9, 9, false }, { "plan s", 7, 8, true },  { "took s", 7, 9, true },
		{ "times", 6, 9, true },    { "latency", 8, 5, true }, { "MB/s", 7, 6, true },
		{ "loss", 6, 6, true },     { " ", 10, 2, false }
	};
	struct worst *list = malloc((s->n_links + 1) * sizeof(*list));
	struct table t;
	size_t n = 0;

	if (!list)
		return;
	for (size_t i = 0; i < s->n_links; i++)
		list[n++] = (struct worst){ &s->links[i], ratio_of(&s->links[i]) };
	qsort(list, n, sizeof(*list), compare_worst);
	table_open(&t, out, at, columns, 8);
	for (size_t i = 0; i < n && (int)i + 1 < at.h; i++) {
		const struct msg_link *l = list[i].link;
		unsigned mark = l->from == u->selected || l->to == u->selected ? STYLE_BOLD : 0;
		enum style style;
		char bar[12] = "";
		int row = (int)i, fill = (int)(fminf(list[i].ratio, 5) * 2);

		heat(list[i].ratio, &style);
		for (int k = 0; k < fill && k < 10; k++)
			bar[k] = '#', bar[k + 1] = '\0';
		table_cell(&t, out, row, 0, STYLE_TEXT | mark, "n%02u>n%02u", l->from, l->to);
		table_cell(&t, out, row, 1, STYLE_FAINT, "%.3f", (double)l->planned_delay_s);
		table_cell(&t, out, row, 2, style, l->measured_delay_s > 0 ? "%.3f" : "-",
			   (double)l->measured_delay_s);
		table_cell(&t, out, row, 3, style, list[i].ratio > 0 ? "%.1fx" : "-",
			   (double)list[i].ratio);
		table_cell(&t, out, row, 4, STYLE_TEXT, "%.1fms", (double)l->latency_s * 1e3);
		table_cell(&t, out, row, 5, STYLE_TEXT, "%.1f",
			   (double)l->bandwidth_bytes_per_s / 1e6);
		table_cell(&t, out, row, 6, l->loss > 0.001f ? STYLE_WARNING : STYLE_FAINT,
			   "%.1f%%", (double)l->loss * 100);
		table_cell(&t, out, row, 7, style, "%s", bar);
	}
	free(list);
}

void view_links(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r)
{
	struct rect in = { at.x, at.y + 1, at.w, at.h - 1 }, list = in;
	char title[96];
	int taken;

	snprintf(title, sizeof(title), "Links: %zu measured against the plan", s->n_links);
	screen_rule(out, at, title,
		    at.w >= 90 ? ". as planned  : +25%  o +60%  O x2.5  # x4"
			       : ". : o O # slower");
	if (s->n_links == 0) {
		screen_text(out, in.x + 1, in.y, in.w, STYLE_FAINT,
			    "no link has been measured yet");
		return;
	}
	taken = r->n <= NODES_MOST ? matrix_by_node(out, in, s, u, r)
				   : matrix_by_stage(out, in, s, r);
	if (in.w - taken >= 34) {
		list.x += taken + 2;
		list.w -= taken + 2;
		screen_vertical(out, list.x - 1, in.y, in.h);
	} else {
		int rows = (int)(r->n <= NODES_MOST ? r->n : r->n_stages) + 1;

		list.y += rows;
		list.h -= rows;
	}
	if (list.h > 1)
		draw_worst(out, list, s, u);
}
