/* View 1: the panels of the layout. On a tiny screen: only the alerts and the selected node. */
#include "tui/input/branch.h"
#include "tui/views/view.h"

/* Describes the selected node in words, on a screen smaller than 80x24. */
static void draw_selected(struct screen *out, struct rect at, const struct state *s,
			  const struct ui *u)
{
	const struct state_node *n = &s->nodes[u->selection.node];
	struct node_glyph l;
	char age[16], what_if[128];

	/* This screen has no timeline, which would show the what-if. */
	if (u->branch.open && at.h > 0) {
		branch_title(u, s, what_if);
		screen_text(out, at.x, at.y + at.h - 1, at.w, STYLE_WARNING, what_if);
		at.h--;
	}
	if (at.h < 1 || !n->known)
		return;
	glyphs_node(&l, s, n);
	glyphs_age((double)(u->clock.now_us - n->see.heard_us) / 1e6, age);
	screen_print(out, at.x, at.y, at.w, STYLE_STRONG,
		     state_has_no_stages(s) ? ">n%02u" : ">n%02u S%u", (unsigned)n->see.node,
		     (unsigned)n->see.stage);
	screen_print(out, at.x + 8, at.y, at.w - 8, l.style, "%c %s +%u", l.glyph, l.word,
		     l.queued);
	if (at.h >= 2)
		screen_print(out, at.x, at.y + 1, at.w, STYLE_TEXT, "%s %s heard %s ago",
			     node_state_shown(n->see.state), n->see.location, age);
	if (at.h >= 3)
		screen_text(out, at.x, at.y + 2, at.w, STYLE_TEXT, n->see.why);
}

void view_overview(struct screen *out, const struct state *s, const struct ui *u,
		   const struct roster *r, const struct layout *l)
{
	struct rect start = l->timeline;

	if (l->tiny) {
		panel_alerts(out, l->alerts, s, u);
		draw_selected(out, l->pipeline, s, u);
		return;
	}
	panel_pipeline(out, l->pipeline, s, u, r);
	if (state_is_starting(s)) { /* no task has run and no loss is known yet */
		start.h += l->motion.h + (l->wide ? l->loss.h : 0);
		view_start(out, start, s, u, r);
	} else {
		panel_timeline(out, l->timeline, s, u, r);
		if (u->selection.following)
			panel_follow(out, l->motion, s, u);
		else
			panel_motion(out, l->motion, s, u);
	}
	panel_collisions(out, l->collisions, s, u);
	if (!l->wide || !state_is_starting(s)) {
		panel_loss(out, l->loss, s, u);
		panel_map(out, l->map, s, u);
		if (l->map.h > 0)
			screen_vertical(out, l->map.x - 1, l->map.y, l->map.h);
	}
	panel_receipts(out, l->receipts, s, u);
	panel_alerts(out, l->alerts, s, u);
	panel_journal(out, l->journal, s, u);
	if (l->divider >= 0)
		screen_vertical(out, l->divider, l->body.y, l->body.h);
}
