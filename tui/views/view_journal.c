/* View 8: the journal, newest entry first. The selected entry shows its whole text; it can be
 * undone or copied. */
#include <stdio.h>

#include "tui/run/notes.h"
#include "tui/screen/table.h"
#include "tui/views/view.h"

enum { TEXT_AT = 34 }; /* column in which an entry's text begins */

static void draw_note(struct screen *out, struct rect at, const struct msg_see_note *n, bool chosen)
{
	static const enum style styles[] = { STYLE_FAINT,   STYLE_TEXT,  STYLE_STRONG, STYLE_TITLE,
					     STYLE_WARNING, STYLE_ALERT, STYLE_WARNING };
	enum style style = styles[n->kind <= NOTE_LAST ? n->kind : NOTE_LOG];
	char clock[16];
	int x = 1;

	/* INT64_MAX is another day, so the date is shown. */
	glyphs_clock(n->wall_us, INT64_MAX, clock);
	if (chosen)
		screen_put(out, at.x, at.y, '>', STYLE_KEY);
	x += screen_print(out, at.x + x, at.y, at.w - x, STYLE_FAINT, "%s it%-5llu ", clock,
			  (unsigned long long)n->iteration);
	screen_print(out, at.x + x, at.y, at.w - x, n->acknowledged ? STYLE_FAINT : style,
		     "%-7s %c", notes_kind(n), n->mark > ' ' ? n->mark : ' ');
	screen_paragraph(out, (struct rect){ at.x + TEXT_AT, at.y, at.w - TEXT_AT, at.h },
			 n->kind == NOTE_LOG ? STYLE_FAINT : STYLE_TEXT, n->text);
	if (chosen)
		screen_restyle(out, at, ~0u, STYLE_REVERSE);
}

/* Returns how many lines the entry needs for its whole text. */
static int count_lines(struct screen *out, int w, const struct msg_see_note *n)
{
	return screen_paragraph(out, (struct rect){ .w = w - TEXT_AT }, STYLE_TEXT, n->text);
}

void view_journal(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	const struct msg_see_note *list[STATE_NOTES];
	size_t n = notes_list(s, u->selection.filter, list),
	       chosen = notes_place(list, n, u->selection.note);
	int rows = at.h - 1, first, below = 0;
	char title[96];

	if (rows < 1)
		return;
	snprintf(title, sizeof(title), "Journal: %zu entries, %u open alerts", n,
		 state_alerts(s));
	screen_rule(out, at, title,
		    at.w >= 76 ? "arrows select  u undoes  y copies  / filters" : NULL);
	first = table_first((int)n, rows, (int)chosen);
	if (chosen < n)
		below = (int)chosen - first + count_lines(out, at.w, list[chosen]) - rows;
	if (below > 0) /* otherwise the selected entry would end below the screen */
		first = first + below < (int)chosen ? first + below : (int)chosen;
	for (int y = 0; y < rows && (size_t)first < n; first++) {
		bool is_chosen = (size_t)first == chosen;
		int lines = is_chosen ? count_lines(out, at.w, list[first]) : 1;

		lines = lines < rows - y ? lines : rows - y;
		draw_note(out, (struct rect){ at.x, at.y + 1 + y, at.w, lines }, list[first],
			  is_chosen);
		y += lines;
	}
}
