/* The map of the network. Markers of nodes, or of regions if there are many nodes, stand where
 * latencies place them; microbatches travel between them.
 *
 *     12#m07x   node 12 runs a backward task of microbatch 7, and another microbatch waits there
 *
 * Faint dots enclose the nodes of a region. A line that ends in a microbatch's number is a transfer
 * under way. The number moves along the link in the time that a transfer usually takes. The path of
 * the selected microbatch is a full line with the times of its transfers. Links that take at least
 * twice their planned time, and cut links, are drawn too. A failed node is crossed out.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/panels/map_traffic.h"
#include "tui/screen/colouring.h"
#include "tui/panels/panels.h"

enum {
	/* A node's marker shows its task if the map has this many cells for each node. */
	FULL_CELLS = 40,
	/* A node's marker shows its number if the map has this many cells for each node. */
	NODE_CELLS = 9,
	/* Shortest time for which a node lights up; about the time between two pictures of the
	 * screen. */
	FLASH_LEAST_US = 100000,
	FLASH_MOST_US = 700000,
	/* A region's marker has two rows if the map has this many cells for each region. */
	REGION_CELLS = 80,
	REGION_W = 14
};

/* ---- nodes ---- */

static bool is_failed(const struct state_node *n)
{
	return n->see.state == NODE_FAILED || n->see.state == NODE_DEAD;
}

/* Returns true while the node lights up: for one plan second after a microbatch began to wait
 * there. In a fast run, a plan second can pass between two pictures of the screen. The node
 * therefore lights up for FLASH_LEAST_US at least. */
static bool collides(const struct chart *c, uint16_t node)
{
	double scale = c->s->run.time_scale > 0 ? c->s->run.time_scale : 1;
	int64_t flash_us = (int64_t)fmin(fmax(scale * 1e6, FLASH_LEAST_US), FLASH_MOST_US);
	int64_t after_us = c->u->clock.now_us - flash_us;
	const struct state_node *n = &c->s->nodes[node];
	const struct state_wait *w = map_newest_wait(n);

	if (n->task_us <= after_us)
		return false;
	if (w && w->from_us > after_us)
		return true;
	for (uint64_t i = 0; (w = state_wait_back(n, i)) && w->to_us > after_us; i++)
		if (!w->first && w->from_us > after_us)
			return true;
	return false;
}

static uint32_t waits_at(const struct state_node *n)
{
	uint32_t waits = 0;

	for (uint32_t q = 0; q < n->n_queue; q++)
		waits += !n->queue[q].first;
	return waits;
}

static unsigned stage_style(const struct chart *c, const struct state_node *n)
{
	if (c->u->display.colouring != COLOUR_TASK || state_has_no_stages(c->s))
		return STYLE_STRONG;
	return (STYLE_MICROBATCH_0 + n->see.stage % (unsigned)CHART_COLOURS) | STYLE_BOLD;
}

/* Crosses out a node: two diagonals, three rows high. Labels keep away from these cells. */
static void cross_out(struct chart *c, const struct rect *r)
{
	float left = (float)(r->x - c->at.x) - 2, right = left + (float)c->digits + 4;
	float top = (float)(r->y - c->at.y) - 0.9f, bottom = top + 2.8f;
	int w = c->digits + 4;

	chart_stroke(c, (struct spot){ left, top }, (struct spot){ right, bottom }, LINE_CUT, 1);
	chart_stroke(c, (struct spot){ left, bottom }, (struct spot){ right, top }, LINE_CUT, 1);
	map_spots_take(&c->spots, (struct rect){ r->x - 2, r->y - 1, w, 1 });
	map_spots_take(&c->spots, (struct rect){ r->x - 2, r->y + 1, w, 1 });
}

/* Draws a node's marker: its number, its task if the marker is wide enough, and marks for a waiting
 * microbatch and for a failure. */
static void draw_node(struct chart *c, uint32_t i)
{
	const struct state_node *n = &c->s->nodes[c->m->ids[i]];
	const struct state_segment *now = n->running ? state_newest(n) : NULL;
	const struct ui *u = c->u;
	struct rect r = c->marker[i];
	bool chosen_here = now && now->microbatch == u->selection.microbatch;
	struct node_glyph g;
	unsigned style, number;
	int x = r.x;

	if (r.w == 0)
		return;
	glyphs_node(&g, c->s, n);
	if (is_failed(n)) {
		screen_print(c->out, r.x - 1, r.y, c->digits + 2, STYLE_FAILED, "X%0*uX", c->digits,
			     (unsigned)c->m->ids[i]);
		return;
	}
	number = stage_style(c, n);
	if (c->m->ids[i] == u->selection.node)
		number |= STYLE_REVERSE;
	x += screen_print(c->out, x, r.y, c->digits, number, "%0*u", c->digits,
			  (unsigned)c->m->ids[i]);
	style = now ? colouring_text(u->display.colouring, c->s, now->microbatch, g.style)
		    : (unsigned)g.style;
	screen_put(c->out, x++, r.y, (uint32_t)g.glyph, style);
	if (c->full && now)
		x += screen_text(c->out, x, r.y, r.x + r.w - 1 - x,
				 style | (chosen_here ? STYLE_REVERSE | STYLE_BOLD : 0), g.word);
	if (c->full && now && waits_at(n))
		screen_put(c->out, x++, r.y, 'x', STYLE_BLOCKED);
	if (collides(c, c->m->ids[i]))
		screen_restyle(c->out, (struct rect){ r.x, r.y, x - r.x, 1 }, 0,
			       STYLE_BLOCKED | STYLE_REVERSE);
}

/* Draws a region's marker: its name, how many of its nodes are busy, how many have failed, and how
 * many microbatches wait there. */
static void draw_region(struct chart *c, uint32_t region)
{
	const struct rect *r = &c->marker[region];
	uint32_t forward = 0, backward = 0, waits = 0, failed = 0;
	bool flash = false;
	struct chips chips = { .n = 0 };
	int x = r->x;

	if (r->w == 0)
		return;
	for (uint32_t i = 0; i < c->m->n_nodes; i++) {
		const struct state_node *n = &c->s->nodes[c->m->ids[i]];
		const struct state_segment *now;

		if (c->m->region[i] != region)
			continue;
		now = n->running ? state_newest(n) : NULL;
		forward += now && now->kind == TASK_FORWARD;
		backward += now && now->kind != TASK_FORWARD;
		waits += waits_at(n);
		failed += is_failed(n);
		flash = flash || collides(c, c->m->ids[i]);
	}
	x += screen_print(c->out, x, r->y, r->w, STYLE_STRONG, "%s ",
			  map_region_name(c->m, c->s, region));
	if (failed)
		chips_add(&chips, 9, STYLE_FAILED, "!%u", failed);
	if (waits)
		chips_add(&chips, 8, STYLE_BLOCKED | (flash ? STYLE_REVERSE : 0), "x%u", waits);
	if (r->h < 2) {
		chips_draw(&chips, c->out, x, r->y, r->x + r->w - x, " ");
		return;
	}
	screen_print(c->out, x, r->y, r->x + r->w - x, STYLE_STRONG, "%u",
		     (unsigned)c->m->sizes[region]);
	chips_add(&chips, 7, STYLE_FORWARD, "=%u", forward);
	chips_add(&chips, 7, STYLE_BACKWARD, "#%u", backward);
	chips_draw(&chips, c->out, r->x, r->y + 1, r->w, " ");
}

/* Writes the newest collision next to its node. */
static void label_collision(struct chart *c)
{
	const struct state_wait *w = map_last_collision(c->s);
	const struct rect *r = w ? chart_marker(c, w->node) : NULL;
	char text[40], age[16];
	struct spot at;

	if (!r || w->iteration != c->s->current.iteration)
		return;
	glyphs_age(state_plan_s(c->s, (w->to_us == INT64_MAX ? c->u->clock.now_us : w->to_us) -
					      w->from_us),
		   age);
	snprintf(text, sizeof(text), "x m%02u %s", w->microbatch, age);
	at = chart_middle(c, r);
	at.y += 1;
	chart_label(c, at, STYLE_BLOCKED, text);
}

/* ---- the chart ---- */

/* Decides what markers show. This depends on the number of cells for each marker. */
static void choose_markers(struct chart *c)
{
	int cells = c->at.w * c->at.h, n = (int)c->m->n_nodes;
	int w, h;

	c->digits = c->s->n_nodes > 100 ? 3 : 2;
	c->by_region = n >= MAP_NODES || cells < n * NODE_CELLS;
	c->has_path = c->u->display.view == VIEW_MAP || c->u->selection.following;
	c->full = !c->by_region && cells >= n * FULL_CELLS;
	c->n = c->by_region ? c->m->n_regions : c->m->n_nodes;
	h = c->by_region && cells >= (int)c->n * REGION_CELLS ? 2 : 1;
	w = c->by_region ? REGION_W
	    : !c->full   ? c->digits + 1
			 : c->digits + 2 + (c->s->n_flights > 100 ? 4 : 3);
	for (uint32_t i = 0; i < c->n; i++)
		c->marker[i] = (struct rect){ 0, 0, w, h };
}

static void place_markers(struct chart *c)
{
	uint8_t own[MAP_REGIONS];

	for (int i = 0; i < MAP_REGIONS; i++)
		own[i] = (uint8_t)i;
	if (c->by_region)
		map_spots_place(&c->spots, c->marker, c->m->regions, own, c->n);
	else
		map_spots_place(&c->spots, c->marker, c->m->nodes, c->m->region, c->n);
}

/* Chooses the cells of all markers. The caller frees c->spots with map_spots_fini. */
static void lay_out(struct chart *c, struct rect at)
{
	c->at = (struct rect){ at.x, at.y + 1, at.w, at.h - 1 };
	map_spots_init(&c->spots, c->at);
	choose_markers(c);
	place_markers(c);
}

static void choose_styles(enum style styles[LINES])
{
	styles[LINE_HULL] = STYLE_RULE;
	styles[LINE_TRAVEL] = STYLE_TRAVEL;
	for (int i = 0; i < CHART_COLOURS; i++)
		styles[LINE_MICROBATCH + i] = (enum style)(STYLE_MICROBATCH_0 + i);
	styles[LINE_PATH] = STYLE_STRONG;
	styles[LINE_SLOW] = STYLE_WARNING;
	styles[LINE_CUT] = STYLE_FAILED;
}

static void draw_lines(struct chart *c)
{
	for (uint32_t r = 0; r < c->m->n_regions; r++)
		if (c->by_region || c->m->sizes[r] > 1)
			chart_hull(c, r);
	traffic_lines(c);
	for (uint32_t i = 0; !c->by_region && i < c->n; i++)
		if (c->marker[i].w && is_failed(&c->s->nodes[c->m->ids[i]]))
			cross_out(c, &c->marker[i]);
}

static void draw_texts(struct chart *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		if (c->by_region)
			draw_region(c, i);
		else
			draw_node(c, i);
	}
	traffic_numbers(c);
	label_collision(c);
	for (uint32_t r = 0; !c->by_region && r < c->m->n_regions; r++)
		chart_name(c, r);
	if (c->has_path && (c->full || c->by_region))
		traffic_times(c);
}

/* Draws the title, and the stages in their colours. */
static void draw_title(struct screen *out, struct rect at, const struct state *s,
		       const struct ui *u, const struct map *m)
{
	char title[128];
	int x, w = 0;

	snprintf(title, sizeof(title), "Map: %u nodes, %u places by %s%s", m->n_nodes, m->n_regions,
		 !m->measured      ? "name"
		 : m->by_transfers ? "transfer time"
				   : "latency",
		 colouring_title(u->display.colouring));
	screen_rule(out, at, title, NULL);
	for (uint32_t i = 0; i < s->run.n_stages; i++)
		w += i < 10 ? 3 : 4;
	x = at.x + at.w - w - 2;
	if (u->display.colouring != COLOUR_TASK || state_has_no_stages(s) ||
	    m->n_nodes >= MAP_NODES || x < at.x + screen_columns(title) + 5)
		return;
	for (uint32_t i = 0; i < s->run.n_stages; i++)
		x += screen_print(out, x, at.y, 4,
				  (STYLE_MICROBATCH_0 + i % (unsigned)CHART_COLOURS) | STYLE_BOLD,
				  " S%u", i);
	screen_put(out, x, at.y, ' ', STYLE_TEXT);
}

void panel_map(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	struct chart c = { .out = out, .s = s, .u = u, .m = &u->places };

	if (at.h < 2)
		return;
	draw_title(out, at, s, u, c.m);
	if (at.w < 1 || c.m->run != s->run.run || c.m->n_nodes == 0)
		return;
	lay_out(&c, at);
	if (canvas_open(&c.canvas, u->display.graph, c.at) != 0) {
		map_spots_fini(&c.spots);
		return;
	}
	c.canvas.has_background = true;
	choose_styles(c.styles);
	draw_lines(&c);
	canvas_close(&c.canvas, out, c.styles);
	draw_texts(&c);
	map_spots_fini(&c.spots);
}

int panel_map_hit(struct rect at, const struct state *s, const struct ui *u, int x, int y)
{
	struct chart c = { .s = s, .u = u, .m = &u->places };
	int node = -1;

	if (at.h < 2 || at.w < 1 || c.m->run != s->run.run || c.m->n_nodes == 0)
		return -1;
	lay_out(&c, at);
	for (uint32_t i = 0; i < c.n; i++) {
		const struct rect *r = &c.marker[i];

		if (r->w > 0 && x >= r->x && x < r->x + r->w && y >= r->y && y < r->y + r->h)
			node = c.by_region ? c.m->named[i] : c.m->ids[i];
	}
	map_spots_fini(&c.spots);
	return node;
}
