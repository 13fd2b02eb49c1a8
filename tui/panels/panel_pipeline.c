/* The grid of nodes, with a column for each stage. If a stage has more nodes than the panel has
 * rows, several nodes share a row, and each node is drawn as a single character. The order of the
 * nodes stays the same. Before nodes have stages, the panel lists them in rows. */
#include "tui/panels/panels.h"

#include <stdio.h>
#include <string.h>

struct grid {
	int column; /* width of a stage's column in cells */
	int rows;   /* number of rows of nodes */
	/* Number of nodes in a row of a stage's column, each drawn as one character. 0: a row has
	 * one node, drawn with its number. */
	int across;
};

static struct grid measure_grid(struct rect at, const struct roster *r)
{
	struct grid g = { at.w, at.h - 2, 0 };

	if (r->n_stages > 0)
		g.column = at.w / (int)r->n_stages;
	if (g.column < 1)
		g.column = 1;
	if ((int)r->largest > g.rows)
		g.across = g.column > 2 ? g.column - 1 : 1;
	return g;
}

static void draw_named_node(struct screen *out, int x, int y, int w, const struct state *s,
			    const struct ui *u, const struct roster *r, uint16_t node)
{
	bool selected = node == u->selection.node;
	unsigned mark = selected ? STYLE_REVERSE : 0;
	struct node_glyph l;
	int at = 0;

	glyphs_node(&l, s, &s->nodes[node]);
	if (w >= 8)
		at += screen_text(out, x, y, 1, STYLE_KEY | mark, selected ? ">" : " ");
	at += screen_print(out, x + at, y, w - at, STYLE_TEXT | mark, "%0*u", r->digits,
			   (unsigned)node);
	screen_put(out, x + at, y, (uint32_t)l.glyph, l.style | mark);
	at++;
	at += screen_text(out, x + at, y, w - at, l.style | mark, l.word);
	if (l.queued > 0 && at + 2 < w)
		at += screen_print(out, x + at, y, w - at - 1, STYLE_BLOCKED | mark, "+%u",
				   l.queued);
}

static void stage_head(struct screen *out, int x, int y, int w, const struct state *s,
		       const struct roster *r, uint32_t stage)
{
	uint32_t live = 0, n = r->first[stage + 1] - r->first[stage];
	int at;

	for (uint32_t i = r->first[stage]; i < r->first[stage + 1]; i++) {
		uint8_t state = s->nodes[r->nodes[i]].see.state;

		live += state == NODE_LIVE || state == NODE_SUSPECT;
	}
	at = screen_print(out, x, y, w, STYLE_STRONG, w >= 8 ? " S%u" : "S%u", stage);
	if (w >= 10)
		screen_print(out, x + at + 1, y, w - at - 2,
			     live < n ? STYLE_WARNING : STYLE_FAINT, live < n ? "%u/%u" : "%u",
			     live < n ? live : n, n);
}

static void map_cell(struct screen *out, int x, int y, const struct state *s,
		     const struct ui_selection *selection, uint16_t node)
{
	struct node_glyph l;

	glyphs_node(&l, s, &s->nodes[node]);
	screen_put(out, x, y, (uint32_t)l.glyph,
		   l.style | (node == selection->node ? STYLE_REVERSE : 0));
}

/* Returns the first row to draw if nodes are single characters. The page that begins with this
 * row contains the selected node. */
static int map_top(const struct grid *g, const struct roster *r,
		   const struct ui_selection *selection)
{
	for (uint32_t stage = 0; stage < r->n_stages; stage++)
		for (uint32_t i = r->first[stage]; i < r->first[stage + 1]; i++)
			if (r->nodes[i] == selection->node)
				return g->rows > 0 ? (int)(i - r->first[stage]) / g->across /
							     g->rows * g->rows
						   : 0;
	return 0;
}

/* Sets *x and *y to the cell of the k-th node, for a run whose nodes have no stages yet. Returns
 * false if the panel has no cell for the node. */
static bool place_unplaced(const struct grid *g, struct rect at, const struct roster *r, int k,
			   int *x, int *y)
{
	int columns = g->across ? at.w - 1 : (int)r->n_stages;

	columns = columns < 1 ? 1 : columns;
	*x = k % columns * (g->across ? 1 : g->column);
	*y = k / columns;
	return *y < g->rows;
}

static void draw_unplaced(struct screen *out, struct rect at, const struct grid *g,
			  const struct state *s, const struct ui *u, const struct roster *r)
{
	int x, y;

	screen_print(out, at.x + 1, at.y + 1, at.w - 1, STYLE_FAINT,
		     "%u nodes without a stage yet", r->n);
	for (int k = 0; k < (int)r->n && place_unplaced(g, at, r, k, &x, &y); k++) {
		if (g->across)
			map_cell(out, at.x + 1 + x, at.y + 2 + y, s, &u->selection, r->nodes[k]);
		else
			draw_named_node(out, at.x + x, at.y + 2 + y, g->column, s, u, r,
					r->nodes[k]);
	}
}

static void draw_stage(struct screen *out, struct rect at, const struct grid *g,
		       const struct state *s, const struct ui *u, const struct roster *r,
		       uint32_t stage)
{
	int x = at.x + (int)stage * g->column, top = g->across ? map_top(g, r, &u->selection) : 0;

	stage_head(out, x, at.y + 1, g->column, s, r, stage);
	for (uint32_t i = r->first[stage]; i < r->first[stage + 1]; i++) {
		int k = (int)(i - r->first[stage]), row = g->across ? k / g->across - top : k;

		if (row < 0 || row >= g->rows)
			continue;
		if (g->across)
			map_cell(out, x + k % g->across, at.y + 2 + row, s, &u->selection,
				 r->nodes[i]);
		else
			draw_named_node(out, x, at.y + 2 + row, g->column, s, u, r,
					r->nodes[i]);
	}
}

void panel_pipeline(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u, const struct roster *r)
{
	struct grid g;
	char title[96];

	if (at.h < 2)
		return;
	if (*u->selection.filter)
		snprintf(title, sizeof(title), "Pipeline: %u of %u nodes match %s", r->n,
			 s->run.n_nodes, u->selection.filter);
	else
		snprintf(title, sizeof(title), "Pipeline");
	screen_rule(out, at, title,
		    at.w >= 70 ? "= forward  # backward  L loss  x blocked  . idle"
			       : "= fwd # bwd x blocked . idle");
	g = measure_grid(at, r);
	if (r->unplaced)
		draw_unplaced(out, at, &g, s, u, r);
	for (uint32_t stage = 0; stage < r->n_stages && !r->unplaced; stage++)
		draw_stage(out, at, &g, s, u, r, stage);
}

static int hit_unplaced(const struct grid *g, struct rect at, const struct roster *r, int x, int y)
{
	int cell_x, cell_y, from = at.x + (g->across ? 1 : 0), w = g->across ? 1 : g->column;

	for (int k = 0; k < (int)r->n && place_unplaced(g, at, r, k, &cell_x, &cell_y); k++)
		if (y == at.y + 2 + cell_y && x >= from + cell_x && x < from + cell_x + w)
			return r->nodes[k];
	return -1;
}

int panel_pipeline_hit(struct rect at, const struct roster *r, const struct ui *u, int x, int y)
{
	struct grid g = measure_grid(at, r);
	int row = y - at.y - 2, stage = (x - at.x) / g.column, k;

	if (r->unplaced)
		return hit_unplaced(&g, at, r, x, y);
	if (row < 0 || row >= g.rows || x < at.x || stage >= (int)r->n_stages)
		return -1;
	k = row;
	if (g.across) {
		if ((x - at.x) % g.column >= g.across)
			return -1;
		k = (row + map_top(&g, r, &u->selection)) * g.across + (x - at.x) % g.column;
	}
	k += (int)r->first[stage];
	return k < (int)r->first[stage + 1] ? r->nodes[k] : -1;
}
