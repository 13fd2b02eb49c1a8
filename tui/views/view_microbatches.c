/* View 5: every microbatch of the iteration as a lane, and the selected one as a ladder below. */
#include <stdio.h>

#include "tui/screen/table.h"
#include "tui/views/view.h"

/* The list has two columns if one is too short and the screen is wide enough. */
void view_microbatches(struct screen *out, struct rect at, const struct state *s,
		       const struct ui *u)
{
	struct rect list = at, ladder = at;
	int columns, w, rows, first, digits = s->n_nodes > 100 ? 3 : 2;
	char title[96];

	ladder.h = at.h >= 14 ? 4 : 0;
	ladder.y = at.y + at.h - ladder.h;
	list.h -= ladder.h;
	snprintf(title, sizeof(title), "Microbatches of iteration %llu",
		 (unsigned long long)s->current.iteration);
	screen_rule(out, list, title,
		    at.w >= 90 ? "=done F  #done B  [runs]  xwaits  >travels  .pending"
			       : "[runs] xwaits >travels");
	rows = list.h - 1;
	if (rows < 1)
		return;
	columns = at.w >= 110 && s->n_flights > (uint32_t)rows ? 2 : 1;
	w = at.w / columns;
	first = table_first((int)s->n_flights, rows * columns, (int)u->selection.microbatch);
	for (int i = 0; i < rows * columns && first + i < (int)s->n_flights; i++) {
		const struct state_flight *f = &s->flights[first + i];
		int x = at.x + i / rows * w, y = list.y + 1 + i % rows;

		if (!f->known)
			continue;
		view_lane(out, x + 1, y, w - 2, s, f, u->clock.now_us, digits);
		if (f->route.microbatch == u->selection.microbatch) {
			screen_put(out, x, y, '>', STYLE_KEY);
			screen_restyle(out, (struct rect){ x, y, 4, 1 }, ~0u, STYLE_REVERSE);
		}
	}
	panel_follow(out, ladder, s, u);
}
