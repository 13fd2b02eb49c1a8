/* Draws the steps before the first iteration: their progress, and the links measured so far. */
#include "tui/views/view.h"

#include <stdio.h>

enum { NAME = 18, BAR_MOST = 24 };

static const char *const names[] = {
	[GATHER_COMING] = "agents join",
	[GATHER_LINKS] = "links measured",
	[GATHER_COMPUTE] = "compute timed",
	[GATHER_PLAN] = "first plan",
	[GATHER_BUILD] = "stages built",
};

/* Draws a bar such as [==....]: `done` of its `cells` cells are filled. */
static int draw_bar(struct screen *out, int x, int y, int cells, int done, enum style style)
{
	screen_put(out, x, y, '[', STYLE_FAINT);
	for (int i = 0; i < cells; i++)
		screen_put(out, x + 1 + i, y, i < done ? '=' : '.', i < done ? style : STYLE_IDLE);
	screen_put(out, x + 1 + cells, y, ']', STYLE_FAINT);
	return cells + 2;
}

static void draw_step(struct screen *out, struct rect at, const struct state *s, int step)
{
	const struct msg_see_status *t = &s->status;
	int cells = at.w - NAME - 36, done = 0, x = at.x + NAME;
	bool now = step == t->step, past = step < t->step;
	char text[64] = "done";

	cells = cells > BAR_MOST ? BAR_MOST : cells < 4 ? 4 : cells;
	if (past || (now && t->parts && t->part >= t->parts))
		done = cells;
	else if (now && t->parts)
		done = (int)((uint64_t)cells * t->part / t->parts);
	if (now) {
		glyphs_step(s, text);
		if (!*text)
			snprintf(text, sizeof(text), "running");
	}
	screen_print(out, at.x, at.y, NAME, now ? STYLE_STRONG : past ? STYLE_TEXT : STYLE_FAINT,
		     "%c %s", now ? '>' : ' ', names[step]);
	x += draw_bar(out, x, at.y, cells, done, past ? STYLE_GOOD : STYLE_FORWARD) + 2;
	screen_text(out, x, at.y, at.x + at.w - x, now ? STYLE_STRONG : STYLE_FAINT,
		    now || past ? text : "pending");
}

void view_start(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r)
{
	int y = at.y + 1, end = at.y + at.h, n = 0, all = 0;
	char title[64], key[16];

	for (int i = GATHER_COMING; i <= GATHER_BUILD; i++) {
		all += state_has_step(s, (enum gather_step)i);
		n += state_has_step(s, (enum gather_step)i) && i <= s->status.step;
	}
	snprintf(title, sizeof(title), "Before the first iteration: step %d of %d", n, all);
	screen_rule(out, at, title, NULL);
	for (int i = GATHER_COMING; i <= GATHER_BUILD && y < end; i++)
		if (state_has_step(s, (enum gather_step)i))
			draw_step(out, (struct rect){ at.x, y++, at.w, 1 }, s, i);
	if (!state_is_measuring(s) || s->n_links == 0 || ++y >= end)
		return;
	if (end - y >= 8) {
		view_links(out, (struct rect){ at.x, y, at.w, end - y }, s, u, r);
		return;
	}
	keymap_show_action(&u->map, ACTION_VIEW_LINKS, key);
	screen_text(out, at.x + 2, y, 2, STYLE_KEY, key);
	screen_text(out, at.x + 4, y, at.w - 4, STYLE_FAINT,
		    "shows the links measured so far");
}
