/* Tests the Map view: golden screens, every size, and clicks on nodes. */

#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "tui/tests/golden.h"
#include "tui/views/view.h"

/* Returns a run with a dead node, and attaches a console that shows its map. */
static struct state *map_of(struct ui *u, uint32_t nodes, uint32_t waves, int64_t at_us)
{
	struct stream_options o;
	struct state *s;

	stream_defaults(&o);
	o.nodes = nodes;
	o.waves = waves;
	o.live = 2;
	o.dead = 9;
	s = golden_state(&o, at_us);
	golden_ui(u, s, at_us);
	u->display.view = VIEW_MAP;
	return s;
}

/* Draws maps of few and many nodes with each kind of line characters. One node is dead. */
TEST(maps)
{
	static const struct {
		uint32_t nodes, waves;
		const char *name;
		int64_t at_us;
	} cases[] = { { 20, 6, "map-20", 3000000 },
		      { 100, 3, "map-100", 2500000 },
		      { 1000, 3, "map-1000", 2800000 } };
	struct state *s;
	struct ui u;

	for (int k = 0; k < 3; k++) {
		s = map_of(&u, cases[k].nodes, cases[k].waves, cases[k].at_us);
		u.selection.microbatch = 7;
		golden_check(s, &u, cases[k].name, 80, 24);
		golden_check(s, &u, cases[k].name, 160, 48);
		if (k == 0) {
			/* A negative latency means that the link is cut. */
			s->links[0].latency_s = -1;
			/* Makes the map look like that of another run, so that the next call makes
			 * a new map. */
			u.places.run = 0;
			ui_tick(&u, s, u.clock.local_us, u.clock.wall_us);
			u.display.graph = GRAPH_BLOCK;
			golden_check(s, &u, "map-block", 80, 24);
			u.display.graph = GRAPH_ASCII;
			u.display.colouring = COLOUR_MICROBATCH;
			golden_check(s, &u, "map-ascii", 80, 24);
			golden_check(s, &u, "map-ascii", 160, 48);
		}
		state_free(s);
	}
}

/* A map of any size stays inside its rectangle. */
TEST(maps_of_every_size)
{
	static const uint32_t counts[] = { 20, 100, 250 };
	struct screen *screen = screen_new(170, 60, false);
	struct state *s;
	struct ui u;

	for (int k = 0; k < 3; k++) {
		s = golden_waves(&u, counts[k], 2, 1000000);
		u.display.view = VIEW_MAP;
		u.selection.following = true;
		for (int i = 0; i < 300; i++) {
			struct rect at = { 3, 2, 1 + i * 37 % 160, 1 + i * 11 % 55 };

			u.display.graph = (enum graph)(i % 3);
			u.selection.microbatch = (uint32_t)i % s->n_flights;
			screen_fill(screen, screen_whole(screen), '~', STYLE_ALERT);
			screen_fill(screen, at, ' ', STYLE_TEXT);
			view_map(screen, at, s, &u);
			for (int c = 0; c < 170 * 60; c++) {
				int x = c % 170, y = c / 170;

				if (x < at.x || y < at.y || x >= at.x + at.w || y >= at.y + at.h)
					assert_int_equal(screen_cells(screen)[c].glyph, '~');
			}
		}
		state_free(s);
	}
	screen_free(screen);
}

/* Returns the column in which the text begins on the screen; -1: it is not there. */
static int column_of(struct screen *screen, const char *text)
{
	char *dump = screen_dump(screen), *at = strstr(dump, text), *line = at;
	int column = -1;

	if (at) {
		while (line > dump && line[-1] != '\n')
			line--;
		*at = '\0';
		column = screen_columns(line);
	}
	free(dump);
	return column;
}

/* Microbatch 7 travels from n10 in Canada to n11 in the Netherlands, which is left of n10. Its
 * number moves left as time goes on, but not beyond n11. */
TEST(a_microbatch_moves_along_its_link)
{
	struct screen *screen = screen_new(160, 48, true);
	int before = 1000, moved = 0;
	struct ui u;
	struct state *s = map_of(&u, 20, 6, 3000000);

	u.display.graph = GRAPH_ASCII;
	assert_int_equal(s->flights[7].phase, FLIGHT_TRAVELLING);
	for (int i = 0; i < 12; i++, u.clock.now_us += 5000) {
		int column;

		view_draw(screen, s, &u);
		column = column_of(screen, "m07");
		assert_true(column >= 0 && column <= before);
		assert_true(column >= column_of(screen, "11."));
		moved += column < before;
		before = column;
	}
	assert_true(moved > 3);
	screen_free(screen);
	state_free(s);
}

/* Clicks on all cells from (x0, y0) on. Each node that a click selects must be drawn in that cell.
 * Returns the number of nodes that were found. */
static uint32_t click_everywhere(const struct state *s, const struct ui *u, int w, int h, int x0,
				 int y0)
{
	struct screen *screen = screen_new(w, h, false);
	uint32_t found = 0;
	bool seen[MSG_NODES] = { false };

	view_draw(screen, s, u);
	for (int y = y0; y < h; y++)
		for (int x = x0; x < w; x++) {
			const struct cell *at = &screen_cells(screen)[y * w + x];
			int node = view_hit(w, h, s, u, x, y);

			if (node < 0 || seen[node])
				continue;
			seen[node] = true;
			found++;
			assert_int_equal(at[0].glyph, '0' + node / 10);
			assert_int_equal(at[1].glyph, '0' + node % 10);
		}
	screen_free(screen);
	return found;
}

/* A click on a node of the map selects the node, even if it has failed. */
TEST(nodes_of_the_map_are_hit)
{
	struct ui u;
	struct state *s = map_of(&u, 20, 6, 3000000);

	assert_int_equal(click_everywhere(s, &u, 80, 24, 0, 0), 20);
	assert_int_equal(click_everywhere(s, &u, 160, 48, 0, 0), 20);
	u.display.view = VIEW_OVERVIEW;
	assert_int_equal(click_everywhere(s, &u, 160, 48, 42, 33), 20);
	u.display.view = VIEW_LOSS;
	assert_int_equal(click_everywhere(s, &u, 160, 48, 0, 0), 0);
	state_free(s);
}
