/* The canvas of the map: lines between markers, enclosed regions, and labels in free cells. Lines
 * consist of dots (braille or blocks); in ASCII they consist of characters such as / and -. */
#include "tui/panels/map_chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- places and lines ---- */

/* Returns the marker of a node or of its region; NULL: the map does not show it. */
const struct rect *chart_marker(const struct chart *c, uint16_t node)
{
	int i = map_index(c->m, node);
	const struct rect *r;

	if (i < 0)
		return NULL;
	r = &c->marker[c->by_region ? c->m->region[i] : i];
	return r->w > 0 ? r : NULL;
}

struct spot chart_middle(const struct chart *c, const struct rect *r)
{
	float w = c->by_region ? (float)r->w : (float)c->digits;

	return (struct spot){ (float)(r->x - c->at.x) + w / 2,
			      (float)(r->y - c->at.y) + (float)r->h / 2 };
}

static uint32_t slope_glyph(float dx, float dy)
{
	float across = fabsf(dx), down = 2 * fabsf(dy);

	return down < across / 2 ? '-' : across < down / 2 ? '|' : dx * dy > 0 ? '\\' : '/';
}

/* Draws a straight line, of which every `gap`th dot is visible. In ASCII, characters such as / and
 * - show its direction. */
void chart_stroke(struct chart *c, struct spot a, struct spot b, enum line line, int gap)
{
	float across = (float)(c->canvas.w / c->canvas.at.w);
	float down = (float)(c->canvas.h / c->canvas.at.h);
	uint32_t glyph = line == LINE_HULL ? '.' : slope_glyph(b.x - a.x, b.y - a.y);
	int steps;

	if (c->u->display.graph == GRAPH_ASCII)
		across = down = 1;
	steps = 1 + (int)fmaxf(fabsf(b.x - a.x) * across, fabsf(b.y - a.y) * down);
	for (int i = 0; i <= steps; i += gap) {
		float x = a.x + (b.x - a.x) * (float)i / (float)steps;
		float y = a.y + (b.y - a.y) * (float)i / (float)steps;

		if (x < 0 || y < 0 || x >= (float)c->at.w || y >= (float)c->at.h)
			continue;
		if (c->u->display.graph == GRAPH_ASCII)
			screen_put(c->out, c->at.x + (int)x, c->at.y + (int)y, glyph,
				   c->styles[line]);
		else
			canvas_dot(&c->canvas, (int)(x * across), c->canvas.h - 1 - (int)(y * down),
				   (int)line);
	}
}

/* Writes a text in free cells near `at`. Draws nothing and returns false if there is no room. */
bool chart_label(struct chart *c, struct spot at, unsigned style, const char *text)
{
	static const int8_t moves[][2] = { { 0, 0 },   { 0, -1 }, { 0, 1 },  { -3, 0 }, { 3, 0 },
					   { -3, -1 }, { 3, -1 }, { -3, 1 }, { 3, 1 },  { 0, -2 },
					   { 0, 2 },   { -6, 0 }, { 6, 0 } };
	int w = screen_columns(text);

	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		struct rect r = { c->at.x + (int)at.x - w / 2 + moves[i][0],
				  c->at.y + (int)at.y + moves[i][1], w, 1 };

		if (map_spots_take(&c->spots, r)) {
			screen_text(c->out, r.x, r.y, w, style, text);
			return true;
		}
	}
	return false;
}

void chart_connect(struct chart *c, uint16_t from, uint16_t to, enum line line, int gap)
{
	const struct rect *a = chart_marker(c, from), *b = chart_marker(c, to);

	if (a && b && a != b)
		chart_stroke(c, chart_middle(c, a), chart_middle(c, b), line, gap);
}

/* Writes a text at the middle of a link. */
void chart_label_link(struct chart *c, uint16_t from, uint16_t to, enum style style,
		      const char *text)
{
	const struct rect *a = chart_marker(c, from), *b = chart_marker(c, to);
	struct spot p, q;

	if (!a || !b || a == b || !*text)
		return;
	p = chart_middle(c, a);
	q = chart_middle(c, b);
	chart_label(c, (struct spot){ (p.x + q.x) / 2, (p.y + q.y) / 2 }, style, text);
}

/* ---- hulls ---- */

static int compare_spot(const void *a, const void *b)
{
	const struct spot *p = a, *q = b;

	return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->y > q->y) - (p->y < q->y);
}

static float turn(struct spot a, struct spot b, struct spot c)
{
	return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/* Replaces n points by the corners of their convex hull (Andrew's monotone chain), and returns the
 * number of corners. hull: memory for 2 n points. */
static int find_hull(struct spot *points, int n, struct spot *hull)
{
	int k = 0;

	qsort(points, (size_t)n, sizeof(*points), compare_spot);
	for (int i = 0; i < n; i++) {
		while (k >= 2 && turn(hull[k - 2], hull[k - 1], points[i]) <= 0)
			k--;
		hull[k++] = points[i];
	}
	for (int i = n - 2, lower = k + 1; i >= 0; i--) {
		while (k >= lower && turn(hull[k - 2], hull[k - 1], points[i]) <= 0)
			k--;
		hull[k++] = points[i];
	}
	k = k > 1 ? k - 1 : k;
	memcpy(points, hull, (size_t)k * sizeof(*points));
	return k;
}

static bool in_region(const struct chart *c, uint32_t i, uint32_t region)
{
	return c->marker[i].w > 0 && (c->by_region ? i : c->m->region[i]) == region;
}

void chart_hull(struct chart *c, uint32_t region)
{
	static const float above = 0.35f, beside = 0.8f;
	struct spot corners[4 * MAP_NODES], scratch[8 * MAP_NODES];
	int n = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		struct rect r = c->marker[i];
		float left = (float)(r.x - c->at.x) - beside, top = (float)(r.y - c->at.y) - above;
		float right = left + (float)r.w + 2 * beside, bottom = top + (float)r.h + 2 * above;

		if (!in_region(c, i, region))
			continue;
		corners[n++] = (struct spot){ left, top };
		corners[n++] = (struct spot){ right, top };
		corners[n++] = (struct spot){ left, bottom };
		corners[n++] = (struct spot){ right, bottom };
	}
	if (n < 4)
		return;
	n = find_hull(corners, n, scratch);
	for (int i = 0; i < n; i++)
		chart_stroke(c, corners[i], corners[(i + 1) % n], LINE_HULL, 2);
}

/* Writes a region's name above, below or beside the markers of its nodes, where there is room. */
void chart_name(struct chart *c, uint32_t region)
{
	const char *name = map_region_name(c->m, c->s, region);
	int left = INT32_MAX, top = INT32_MAX, right = 0, bottom = 0, w = screen_columns(name);

	for (uint32_t i = 0; i < c->n; i++) {
		const struct rect *r = &c->marker[i];

		if (!in_region(c, i, region))
			continue;
		left = r->x < left ? r->x : left;
		top = r->y < top ? r->y : top;
		right = r->x + r->w > right ? r->x + r->w : right;
		bottom = r->y + r->h > bottom ? r->y + r->h : bottom;
	}
	for (int k = 0; k < 6 && left < INT32_MAX; k++) {
		int x = k == 4 ? right + 1 : k == 5 ? left - w - 1 : k % 2 ? right - w : left;
		struct rect r = { x, k < 2 ? top - 1 : k < 4 ? bottom : top, w, 1 };

		if (map_spots_take(&c->spots, r)) {
			screen_text(c->out, r.x, r.y, w, STYLE_FAINT, name);
			return;
		}
	}
}

const struct state_flight *chart_chosen(const struct chart *c)
{
	return state_flight(c->s, c->u->selection.microbatch);
}
