/* View 8: everything that was said, newest first, from where it is scrolled to. */
#include <stdio.h>
#include <string.h>

#include "tui/view.h"

void view_journal(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	static const char *const kinds[] = { "log    ", "event  ", "COMMAND",
					     "predict", "WARNING", "ALERT  " };
	static const enum style styles[] = { STYLE_FAINT, STYLE_TEXT,    STYLE_STRONG,
					     STYLE_TITLE, STYLE_WARNING, STYLE_ALERT };
	int top = u->scroll[VIEW_JOURNAL], row = 0, skipped = 0;
	char title[96], clock[16];

	snprintf(title, sizeof(title), "Journal: %zu entries, %u alerts stand", s->n_notes,
		 state_alerts(s));
	screen_rule(out, at, title, at.w >= 70 ? "arrows scroll  / filters  u undoes" : NULL);
	for (size_t i = s->n_notes; i > 0 && row + 1 < at.h; i--) {
		const struct msg_see_note *n = &s->notes[i - 1];
		int kind = n->kind <= NOTE_ALERT ? n->kind : NOTE_LOG, x, y = at.y + 1 + row;

		if (*u->filter && !strcasestr(n->text, u->filter) &&
		    !strcasestr(kinds[kind], u->filter))
			continue;
		if (skipped++ < top)
			continue;
		look_clock(n->wall_us, u->utc_offset_s, clock);
		x = screen_text(out, at.x, y, at.w, STYLE_FAINT, clock) + 1;
		x += screen_print(out, at.x + x, y, at.w - x, STYLE_FAINT, "it%-5llu ",
				  (unsigned long long)n->iteration);
		x += screen_print(out, at.x + x, y, at.w - x,
				  n->acknowledged ? STYLE_FAINT : styles[kind], "%s %c",
				  kinds[kind], n->mark > ' ' ? n->mark : ' ') +
		     1;
		screen_text(out, at.x + x, y, at.w - x,
			    kind == NOTE_LOG ? STYLE_FAINT : STYLE_TEXT, n->text);
		row++;
	}
}
