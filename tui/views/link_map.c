/* The heat map of the Links view. Each cell stands for two nodes, regions or stages, and shows the
 * worst of their links: as a number if the cell is wide enough, otherwise as one character. */
#include "tui/views/link_map.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/screen/table.h"

/* CELL_NUMBERS: least width of a cell with a number; names then stand above the cells. */
enum { NAME_MOST = 12, CELL_NUMBERS = 4, CELL_NODE = 4, CELL_GROUP = 5 };

enum link_measure link_map_measure(const struct state *s, const struct ui *u)
{
	return state_is_measuring(s) && u->display.link_measure == LINK_BY_PLAN
		       ? LINK_BY_LATENCY
		       : u->display.link_measure;
}

bool link_map_is_cut(const struct msg_link *l)
{
	return l->latency_s < 0;
}

float link_map_ratio(const struct msg_link *l)
{
	return l->measured_delay_s > 0 && l->planned_delay_s > 0
		       ? l->measured_delay_s / l->planned_delay_s
		       : 0;
}

float link_map_badness(const struct state *s, const struct msg_link *l, enum link_measure by)
{
	float rate = l->bandwidth_bytes_per_s / 1e6f;

	if (link_map_is_cut(l))
		return INFINITY;
	if (by == LINK_BY_BANDWIDTH)
		return rate > 0 ? 1 / rate : 0;
	if (by == LINK_BY_PLAN)
		return link_map_ratio(l);
	/* While links are being measured, a link counts as measured only when its bandwidth is
	 * known too. */
	return state_is_measuring(s) && l->planned_delay_s < 0 ? 0 : l->latency_s;
}

char link_map_heat(enum link_measure by, float badness, enum style *style)
{
	static const float above[LINK_MEASURES][4] = {
		[LINK_BY_PLAN] = { 4, 2.5f, 1.6f, 1.25f },
		[LINK_BY_LATENCY] = { 0.15f, 0.075f, 0.025f, 0.005f },
		[LINK_BY_BANDWIDTH] = { 1 / 5.0f, 1 / 20.0f, 1 / 100.0f, 1 / 500.0f },
	};
	static const enum style styles[] = { STYLE_HEAT_4, STYLE_HEAT_3, STYLE_HEAT_2,
					     STYLE_HEAT_1, STYLE_HEAT_0 };
	int i = 0;

	*style = isinf(badness) ? STYLE_FAILED : STYLE_FAINT;
	if (isinf(badness) || badness <= 0)
		return isinf(badness) ? 'X' : '-';
	while (i < 4 && badness <= above[by][i])
		i++;
	*style = styles[i];
	return "#Oo:."[i];
}

/* Writes a link's badness in three columns: a ratio, milliseconds or MB/s. */
static void format_cell(enum link_measure by, float badness, char text[16])
{
	double v = by == LINK_BY_LATENCY     ? (double)badness * 1e3
		   : by == LINK_BY_BANDWIDTH ? 1 / (double)badness
					     : (double)badness;

	if (v < 0.0995)
		snprintf(text, 16, ".%02.0f", v * 100);
	else if (v < 99.5e3)
		snprintf(text, 16, v < 9.95 ? "%.1f" : v < 999.5 ? "%.0f" : "%.0fk",
			 v < 999.5 ? v : v / 1e3);
	else
		snprintf(text, 16, "%.0fM", fmin(v / 1e6, 99));
}

/* ---- names ---- */

static const char *place_of(const struct link_groups *g, const struct state *s, uint32_t group)
{
	return s->nodes[g->one[group]].see.location;
}

/* Returns true if no two regions have names with the same first `columns` letters. */
static bool are_distinct(const struct link_groups *g, const struct state *s, int columns)
{
	for (uint32_t i = 0; i < g->n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (strncmp(place_of(g, s, i), place_of(g, s, k), (size_t)columns) == 0)
				return false;
	return true;
}

/* Returns the width of the names above the cells. */
static int heading_width(const struct link_map *m, const struct link_groups *g,
			 const struct roster *r)
{
	if (g->by == LINKS_BY_NODE)
		return r->digits;
	return m->cell >= CELL_NUMBERS ? m->cell - 1 : 3;
}

/* Draws the names above the cells. If shortened names of regions are equal, draws numbers instead;
 * the same numbers then stand before the names of the rows. */
static void draw_heading(const struct link_map *m, struct screen *out, const struct link_groups *g,
			 const struct roster *r, const struct state *s)
{
	int w = heading_width(m, g, r), apart = (w + m->cell) / m->cell;
	bool numbered = g->by == LINKS_BY_REGION && !are_distinct(g, s, w);

	for (uint32_t j = 0; j < g->n; j += (uint32_t)apart) {
		char name[sizeof(s->nodes[0].see.location)];

		if (g->by == LINKS_BY_NODE)
			snprintf(name, sizeof(name), "%0*u", r->digits, (unsigned)g->one[j]);
		else if (g->by == LINKS_BY_STAGE)
			snprintf(name, sizeof(name), "S%u", j);
		else if (numbered)
			snprintf(name, sizeof(name), "%u", j + 1);
		else
			snprintf(name, sizeof(name), "%.*s", w, place_of(g, s, j));
		screen_print(out, m->at.x + m->lead + ((int)j + 1) * m->cell - w, m->at.y, w,
			     STYLE_FAINT, "%*s", w, name);
	}
}

static void draw_row_name(const struct link_map *m, struct screen *out, int y,
			  const struct link_groups *g, uint32_t i, const struct roster *r,
			  const struct state *s, bool selected)
{
	unsigned style = STYLE_FAINT | (selected ? STYLE_REVERSE : 0);
	char mark = selected ? '>' : ' ';
	int w = heading_width(m, g, r);

	if (g->by == LINKS_BY_NODE)
		screen_print(out, m->at.x, y, m->lead, style, "%cn%0*u", mark, r->digits,
			     (unsigned)g->one[i]);
	else if (g->by == LINKS_BY_STAGE)
		screen_print(out, m->at.x, y, m->lead, style, "%cS%u", mark, i);
	else if (are_distinct(g, s, w))
		screen_print(out, m->at.x, y, m->lead - 1, style, "%c%s", mark, place_of(g, s, i));
	else
		screen_print(out, m->at.x, y, m->lead - 1, style, "%c%u %s", mark, i + 1,
			     place_of(g, s, i));
}

/* ---- the map ---- */

void link_map_layout(struct link_map *m, struct rect at, const struct link_groups *g,
		     const struct roster *r, const struct state *s, int list_least)
{
	bool by_node = g->by == LINKS_BY_NODE;
	int least = by_node ? 1 : CELL_NUMBERS;

	m->at = at;
	m->lead = by_node ? r->digits + 3 : 5;
	for (uint32_t i = 0; g->by == LINKS_BY_REGION && i < g->n; i++) {
		int w = screen_columns(place_of(g, s, i)) + (g->n > 9 ? 5 : 4);

		m->lead = w > m->lead ? w : m->lead;
	}
	m->lead = m->lead > NAME_MOST ? NAME_MOST : m->lead;
	m->cell = by_node ? CELL_NODE : CELL_GROUP;
	while (m->cell > least && m->lead + (int)g->n * m->cell + 2 + list_least > at.w)
		m->cell--;
	/* If a map of groups leaves no room for the list on its right, the list is below the map.
	 * The cells of the map are then wide. */
	if (!by_node && m->lead + (int)g->n * m->cell + 2 + list_least > at.w)
		m->cell = CELL_GROUP;
	while (m->cell > 1 && m->lead + (int)g->n * m->cell > at.w)
		m->cell--;
	m->has_numbers = m->cell >= CELL_NUMBERS;
}

static void draw_cell(const struct link_map *m, struct screen *out, int x, int y, float badness,
		      enum link_measure by, unsigned mark)
{
	enum style style;
	char glyph = link_map_heat(by, badness, &style), text[16];

	if (m->has_numbers && badness > 0 && !isinf(badness)) {
		format_cell(by, badness, text);
		screen_print(out, x - 2, y, 3, style, "%3s", text);
	} else {
		screen_put(out, x, y, (uint32_t)glyph, style | mark);
	}
}

void link_map_draw(const struct link_map *m, struct screen *out, const struct link_groups *g,
		   const struct roster *r, const struct state *s, const struct ui *u)
{
	float worst[LINK_GROUPS][LINK_GROUPS] = { { 0 } };
	enum link_measure by = link_map_measure(s, u);
	uint32_t selected = g->of[u->selection.node], first;

	for (size_t i = 0; i < s->n_links; i++) {
		const struct msg_link *l = &s->links[i];
		uint8_t from = g->of[l->from], to = g->of[l->to];

		if (from != LINK_GROUPS_NONE && to != LINK_GROUPS_NONE)
			worst[from][to] = fmaxf(worst[from][to], link_map_badness(s, l, by));
	}
	first = (uint32_t)table_first((int)g->n, m->at.h - 1,
				      selected == LINK_GROUPS_NONE ? -1 : (int)selected);
	draw_heading(m, out, g, r, s);
	for (uint32_t i = first; i < g->n && (int)(i - first) + 1 < m->at.h; i++) {
		int y = m->at.y + 1 + (int)(i - first);

		draw_row_name(m, out, y, g, i, r, s, i == selected);
		for (uint32_t j = 0; j < g->n; j++) {
			int x = m->at.x + m->lead + ((int)j + 1) * m->cell - 1;
			bool marks = m->cell == 1 && (i == selected || j == selected);

			if (i == j && g->by == LINKS_BY_NODE)
				screen_put(out, x, y, '\\',
					   STYLE_FAINT | (marks ? STYLE_REVERSE : 0));
			else
				draw_cell(m, out, x, y, worst[i][j], by,
					  marks ? STYLE_REVERSE : 0);
		}
	}
}
