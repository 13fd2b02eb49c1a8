/* View 5: every microbatch of the iteration, and details of the selected one below. On a wide
 * screen, time runs to the right (view_microbatches_wide.c). On a narrow one, each row shows a
 * microbatch's tasks. */
#include <stdio.h>

#include "tui/screen/colouring.h"
#include "tui/screen/table.h"
#include "tui/views/view.h"

/* Draws the list of microbatches, in two columns if they do not fit into one and the screen is wide
 * enough. */
static void draw_list(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	int columns, w, rows = at.h - 1, first, digits = s->n_nodes > 100 ? 3 : 2;

	if (rows < 1)
		return;
	columns = at.w >= 110 && s->n_flights > (uint32_t)rows ? 2 : 1;
	w = at.w / columns;
	first = table_first((int)s->n_flights, rows * columns, (int)u->selection.microbatch);
	for (int i = 0; i < rows * columns && first + i < (int)s->n_flights; i++) {
		const struct state_flight *f = &s->flights[first + i];
		int x = at.x + i / rows * w, y = at.y + 1 + i % rows;

		if (!f->known)
			continue;
		panel_chain(out, x + 1, y, w - 2, s, f, u, digits);
		if (f->route.microbatch == u->selection.microbatch) {
			screen_put(out, x, y, '>', STYLE_KEY);
			screen_restyle(out, (struct rect){ x, y, 4, 1 }, ~0u, STYLE_REVERSE);
		}
	}
}

void view_microbatches(struct screen *out, struct rect at, const struct state *s,
		       const struct ui *u)
{
	struct rect list = at, ladder = at;
	char title[96];
	bool wide;

	ladder.h = at.h >= 14 ? 4 : 0;
	ladder.y = at.y + at.h - ladder.h;
	list.h -= ladder.h;
	wide = view_microbatches_wide(out, list, s, u);
	snprintf(title, sizeof(title), "Microbatches of iteration %llu%s",
		 (unsigned long long)s->current.iteration,
		 colouring_title(u->display.colouring));
	screen_rule(out, list, title,
		    wide ? "= forward  # backward  L loss  x waits  -> travels  -: planned"
		    : at.w >= 90
			    ? "=done F  #done B  [runs]  xwaits  >travels  .pending"
			    : "[runs] xwaits >travels");
	if (!wide)
		draw_list(out, list, s, u);
	panel_follow(out, ladder, s, u);
}
