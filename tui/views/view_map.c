/* View 9: the map. Below it are the selected microbatch's path with all times, the link with the
 * largest ratio of measured to planned time, and the newest collision. */
#include <stdio.h>

#include "tui/views/view.h"

enum { PATH_ROWS = 4, LEAST_H = 16 };

static void draw_slowest(struct chips *c, const struct state *s, const struct ui *u)
{
	const struct map *m = &u->places;
	const struct msg_link *l = m->n_slow ? state_link(s, m->slow[0].from, m->slow[0].to) : NULL;
	char age[16];

	if (!l) {
		chips_add(c, 8, STYLE_FAINT,
			  s->run.replay ? "a replay has no measured links"
					: "no transfer is measured yet");
		return;
	}
	glyphs_age((double)l->measured_delay_s, age);
	chips_add(c, 8, map_is_slow(l) ? STYLE_WARNING : STYLE_TEXT,
		  "slowest link n%02u>n%02u %s, %.1f times its plan", (unsigned)l->from,
		  (unsigned)l->to, age, (double)map_times(l));
}

static void draw_last_collision(struct chips *c, const struct state *s, const struct ui *u)
{
	const struct state_wait *w = map_last_collision(s);
	char age[16];

	if (!w) {
		chips_add(c, 9, STYLE_FAINT, "no collision yet");
		return;
	}
	glyphs_age(
		state_plan_s(s, (w->to_us == INT64_MAX ? u->clock.now_us : w->to_us) - w->from_us),
		age);
	chips_add(c, 9, STYLE_BLOCKED, "last collision m%02u at n%02u %s", w->microbatch,
		  (unsigned)w->node, age);
	if (w->iteration == s->current.iteration)
		chips_add(c, 2, STYLE_FAINT, "began at %.1fs",
			  state_plan_s(s, w->from_us - s->current.start_us));
}

struct rect view_map_chart(struct rect at)
{
	if (at.h >= LEAST_H)
		at.h -= PATH_ROWS + 1;
	return at;
}

void view_map(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	struct rect map = view_map_chart(at), path = at;
	struct chips facts = { .n = 0 };

	if (map.h < at.h) {
		path = (struct rect){ at.x, at.y + map.h, at.w, PATH_ROWS };
		panel_follow(out, path, s, u);
		draw_slowest(&facts, s, u);
		draw_last_collision(&facts, s, u);
		chips_draw(&facts, out, at.x, at.y + at.h - 1, at.w, " | ");
	}
	panel_map(out, map, s, u);
}
