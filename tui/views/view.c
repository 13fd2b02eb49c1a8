/* Draws the whole screen: the view, the header, the line of keys and the windows above them. */
#include "tui/views/view.h"

/* The screen turns grey when the controller has been silent for this time. */
enum { STALE_US = 2000000 };

static void draw_view(struct screen *out, const struct state *s, const struct ui *u,
		      const struct roster *r, const struct layout *l)
{
	switch (l->tiny ? VIEW_OVERVIEW : u->display.view) {
	case VIEW_NODES:
		view_nodes(out, l->body, s, u, r);
		break;
	case VIEW_LINKS:
		view_links(out, l->body, s, u, r);
		break;
	case VIEW_TIMELINE:
		panel_timeline(out, l->body, s, u, r);
		break;
	case VIEW_MICROBATCHES:
		view_microbatches(out, l->body, s, u);
		break;
	case VIEW_LOSS:
		panel_losses(out, l->body, s, u);
		break;
	case VIEW_COMPARE:
		view_compare(out, l->body, s, u, r);
		break;
	case VIEW_JOURNAL:
		view_journal(out, l->body, s, u);
		break;
	case VIEW_MAP:
		view_map(out, l->body, s, u);
		break;
	default:
		view_overview(out, s, u, r, l);
	}
}

/* Draws the screen before the run is known. The reason for waiting takes as many rows as it
 * needs. */
static void draw_waiting(struct screen *out, struct rect at, const struct ui_connection *connection)
{
	const char *text =
		*connection->reason ? connection->reason : "waiting for the controller";
	int columns = screen_columns(text), w = at.w - 4, y = at.y + at.h / 3;

	screen_fill(out, at, ' ', STYLE_TEXT);
	if (w < 1)
		return;
	for (int from = 0; from < columns && y < at.y + at.h; from += w, y++) {
		const char *rest = text;

		for (int i = 0; i < from; i++)
			utf8_next(&rest);
		screen_text(out, at.x + 2, y, w,
			    connection->state == UI_REFUSED ? STYLE_ALERT : STYLE_TEXT, rest);
	}
}

int view_hit(int w, int h, const struct state *s, const struct ui *u, int x, int y)
{
	int node = -1;
	struct roster r;
	struct layout l;

	roster_make(&r, s, u->selection.filter);
	layout_make(&l, w, h, r.n, r.largest, u->selection.following);
	if (l.tiny)
		return -1;
	if (u->display.view == VIEW_MAP)
		return panel_map_hit(view_map_chart(l.body), s, u, x, y);
	if (u->display.view == VIEW_OVERVIEW)
		node = panel_pipeline_hit(l.pipeline, &r, u, x, y);
	return u->display.view == VIEW_OVERVIEW && node < 0 ? panel_map_hit(l.map, s, u, x, y)
							    : node;
}

void view_draw(struct screen *out, const struct state *s, const struct ui *u)
{
	struct roster r;
	struct layout l;

	screen_clear(out);
	roster_make(&r, s, u->selection.filter);
	layout_make(&l, screen_width(out), screen_height(out), r.n, r.largest,
		    u->selection.following);
	draw_view(out, s, u, &r, &l);
	if (u->connection.state != UI_RECORDED &&
	    (u->connection.state != UI_LIVE ||
	     u->clock.local_us - u->connection.last_message_us > STALE_US))
		screen_restyle(out, l.body, ~(unsigned)STYLE_MEANING, STYLE_STALE);
	if (!s->has_run)
		draw_waiting(out, l.body, &u->connection);
	panel_header(out, l.header, s, u);
	panel_prompt(out, l.prompt, s, u);
	panel_keys(out, l.keys, s, u);
	if (u->prompt.kind == PROMPT_COMMAND)
		overlay_palette(out, u);
	if (u->display.help_page)
		overlay_help(out, u);
	if (u->dialog.kind != DIALOG_NONE)
		overlay_dialog(out, s, u);
}
