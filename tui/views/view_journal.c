/* View 8: the journal, newest first. The selected entry can be undone or copied. */
#include <stdio.h>

#include "tui/run/notes.h"
#include "tui/screen/table.h"
#include "tui/views/view.h"

static void draw_note(struct screen *out, struct rect at, const struct msg_see_note *n,
		      const struct ui *u, bool chosen)
{
	static const enum style styles[] = { STYLE_FAINT,   STYLE_TEXT,  STYLE_STRONG, STYLE_TITLE,
					     STYLE_WARNING, STYLE_ALERT, STYLE_WARNING };
	enum style style = styles[n->kind <= NOTE_LAST ? n->kind : NOTE_LOG];
	char clock[16];
	int x = 1;

	glyphs_clock(n->wall_us, u->clock.utc_offset_s, clock);
	if (chosen)
		screen_put(out, at.x, at.y, '>', STYLE_KEY);
	x += screen_print(out, at.x + x, at.y, at.w - x, STYLE_FAINT, "%s it%-5llu ", clock,
			  (unsigned long long)n->iteration);
	x += screen_print(out, at.x + x, at.y, at.w - x, n->acknowledged ? STYLE_FAINT : style,
			  "%-7s %c ", notes_kind(n), n->mark > ' ' ? n->mark : ' ');
	screen_text(out, at.x + x, at.y, at.w - x,
		    n->kind == NOTE_LOG ? STYLE_FAINT : STYLE_TEXT, n->text);
	if (chosen)
		screen_restyle(out, at, ~0u, STYLE_REVERSE);
}

void view_journal(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	const struct msg_see_note *list[STATE_NOTES];
	size_t n = notes_list(s, u->selection.filter, list),
	       chosen = notes_place(list, n, u->selection.note);
	int rows = at.h - 1, first;
	char title[96];

	if (rows < 1)
		return;
	snprintf(title, sizeof(title), "Journal: %zu entries, %u open alerts", n,
		 state_alerts(s));
	screen_rule(out, at, title,
		    at.w >= 76 ? "arrows select  u undoes  y copies  / filters" : NULL);
	first = table_first((int)n, rows, (int)chosen);
	for (int i = 0; i < rows && (size_t)(first + i) < n; i++)
		draw_note(out, (struct rect){ at.x, at.y + 1 + i, at.w, 1 }, list[first + i], u,
			  (size_t)(first + i) == chosen);
}
