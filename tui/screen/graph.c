/* Curves made of dots. A cell has several dots, so that even a small panel shows a curve's
 * shape. */
#include "tui/screen/graph.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"

static int dots_across(enum graph g)
{
	return g == GRAPH_BRAILLE ? 2 : 1;
}

static int dots_down(enum graph g)
{
	return g == GRAPH_BRAILLE ? 4 : g == GRAPH_BLOCK ? 2 : 3;
}

int canvas_open(struct canvas *c, enum graph graph, struct rect at)
{
	if (at.w <= 0 || at.h <= 0)
		return -EINVAL;
	c->graph = graph;
	c->at = at;
	c->w = at.w * dots_across(graph);
	c->h = at.h * dots_down(graph);
	c->has_background = false;
	c->dots = alloc_array((size_t)c->w, (size_t)c->h);
	return 0;
}

void canvas_dot(struct canvas *c, int x, int y, int series)
{
	if (x < 0 || y < 0 || x >= c->w || y >= c->h)
		return;
	c->dots[(c->h - 1 - y) * c->w + x] = (uint8_t)(1 + series);
}

void canvas_line(struct canvas *c, int x0, int y0, int x1, int y1, int series)
{
	int steps = abs(x1 - x0) > abs(y1 - y0) ? abs(x1 - x0) : abs(y1 - y0);

	for (int i = 0; i <= steps; i++)
		canvas_dot(c, steps ? x0 + (x1 - x0) * i / steps : x0,
			   steps ? y0 + (y1 - y0) * i / steps : y0, series);
}

/* In a cell with dots of several series, removes the dots of series 0, the background. */
static void hide_background(const struct canvas *c, uint8_t *dots, int ax, int ay)
{
	for (int y = 0; y < ay; y++)
		for (int x = 0; x < ax; x++)
			if (dots[y * c->w + x] == 1)
				dots[y * c->w + x] = 0;
}

static uint32_t braille_glyph(const uint8_t *dots, int w)
{
	static const uint8_t bits[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
	uint32_t glyph = 0x2800;

	for (int y = 0; y < 4; y++)
		for (int x = 0; x < 2; x++)
			if (dots[y * w + x])
				glyph |= bits[y][x];
	return glyph;
}

static uint32_t glyph_of(const struct canvas *c, const uint8_t *dots)
{
	bool top = dots[0], middle = dots[c->w];

	switch (c->graph) {
	case GRAPH_BRAILLE:
		return braille_glyph(dots, c->w);
	case GRAPH_BLOCK:
		return top && middle ? 0x2588 : top ? 0x2580 : 0x2584;
	default:
		if (dots[0] + dots[c->w] + dots[2 * c->w] > 3)
			return ':';
		return top ? '\'' : middle ? '-' : '.';
	}
}

void canvas_close(struct canvas *c, struct screen *s, const enum style *styles)
{
	int ax = dots_across(c->graph), ay = dots_down(c->graph);

	for (int y = 0; y < c->at.h; y++) {
		for (int x = 0; x < c->at.w; x++) {
			uint8_t *dots = c->dots + y * ay * c->w + x * ax;
			uint8_t most = 0;
			uint32_t glyph;

			for (int dy = 0; dy < ay; dy++)
				for (int dx = 0; dx < ax; dx++)
					if (dots[dy * c->w + dx] > most)
						most = dots[dy * c->w + dx];
			if (!most)
				continue;
			if (c->has_background && most > 1)
				hide_background(c, dots, ax, ay);
			glyph = glyph_of(c, dots);
			if (c->graph == GRAPH_ASCII && most > 1)
				glyph = 'o';
			screen_put(s, c->at.x + x, c->at.y + y, glyph, styles[most - 1]);
		}
	}
	free(c->dots);
	c->dots = NULL;
}
