#include "tui/view.h"

/* Older than this the picture is no longer the present: it greys, and the header says so. */
enum { STALE_US = 2000000 };

void view_draw(struct screen *out, const struct state *s, const struct ui *u)
{
	struct roster r;
	struct layout l;

	screen_clear(out);
	roster_make(&r, s, u->filter);
	layout_make(&l, screen_width(out), screen_height(out), r.n, r.largest, u->following);
	view_overview(out, s, u, &r, &l);
	if (u->link != UI_RECORDED && (u->link != UI_LIVE || u->local_us - u->heard_us > STALE_US))
		screen_restyle(out, l.body, ~(unsigned)STYLE_MEANING, STYLE_STALE);
	panel_header(out, l.header, s, u);
	panel_prompt(out, l.prompt, s, u);
	panel_keys(out, l.keys, s, u);
	if (u->prompt == PROMPT_COMMAND)
		overlay_palette(out, u);
	if (u->help)
		overlay_help(out, u);
	if (u->dialog.kind != DIALOG_NONE)
		overlay_dialog(out, s, u);
}
