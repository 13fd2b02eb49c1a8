/* Lists collisions: microbatches that wait for a busy node, with node, cause and duration. Waits
 * that have not ended come first, then the waits that ended most recently. */
#include "tui/panels/panels.h"

#include <stdio.h>

/* Draws one wait in a row: microbatch, node, cause and duration. A wait that has not ended is
 * highlighted. */
static void draw_wait(struct screen *out, struct rect at, int y, const struct state *s,
		      const struct ui_clock *clock, const struct state_wait *w)
{
	bool lasts = w->to_us == INT64_MAX;
	unsigned style = lasts ? STYLE_BLOCKED : STYLE_FAINT;
	char wait[16], when[24], blocker[16] = "a slot";

	glyphs_age(state_plan_s(s, (lasts ? clock->now_us : w->to_us) - w->from_us), wait);
	if (w->iteration == s->current.iteration)
		snprintf(when, sizeof(when), "at %.*fs",
			 glyphs_decimals((double)s->plan.see.iteration_s),
			 state_plan_s(s, w->from_us - s->current.start_us));
	else
		snprintf(when, sizeof(when), "in it%llu", (unsigned long long)w->iteration);
	if (w->blocker != STATE_NOBODY)
		snprintf(blocker, sizeof(blocker), "m%02u", w->blocker);
	if (lasts)
		screen_print(out, at.x, y, at.w, style, "x m%02u %c waits at n%02u for %s  %s",
			     w->microbatch, glyphs_task_letter(w->kind), (unsigned)w->node,
			     blocker, wait);
	else if (at.w >= 44)
		screen_print(out, at.x, y, at.w, style,
			     "  m%02u %c waited at n%02u for %s  %s %s", w->microbatch,
			     glyphs_task_letter(w->kind), (unsigned)w->node, blocker, wait,
			     when);
	else
		screen_print(out, at.x, y, at.w, style, "  m%02u %c n%02u for %s %s",
			     w->microbatch, glyphs_task_letter(w->kind), (unsigned)w->node,
			     blocker, wait);
}

void panel_collisions(struct screen *out, struct rect at, const struct state *s,
		      const struct ui *u)
{
	char title[96], total[16];
	int y = at.y + 1, end = at.y + at.h;
	uint32_t now = state_waiting(s);

	if (at.h < 2)
		return;
	glyphs_age(state_plan_s(s, s->current.wait_us), total);
	snprintf(title, sizeof(title), "Collisions: %u now, %u this iteration, %s", now,
		 s->current.collisions, total);
	screen_rule(out, at, title, NULL);
	for (uint32_t i = 0; i < s->n_nodes && y < end; i++)
		for (uint32_t q = 0; q < s->nodes[i].n_queue && y < end; q++)
			if (!s->nodes[i].queue[q].first)
				draw_wait(out, at, y++, s, &u->clock, &s->nodes[i].queue[q]);
	for (uint64_t i = 0; y < end; i++) {
		const struct state_wait *w = state_collision_back(s, i);

		if (!w)
			break;
		draw_wait(out, at, y++, s, &u->clock, w);
	}
}
