/* Draws moving microbatches. A row shows all tasks of one microbatch:
 *
 *     m03 00=15=06[12].LL.12.06.15.00   F n12 0.4s
 *
 * In front of a node's number, `=` is a finished forward task and `#` a finished backward task,
 * [..] the task that runs now, x a wait at this node, and > a transfer on the link.
 */
#include "tui/panels/panels.h"

#include <stdio.h>
#include <string.h>

#include "tui/input/why.h"
#include "tui/screen/colouring.h"

struct summary {
	uint32_t running, travelling, waiting, done, all;
};

static struct summary sum_up(const struct state *s)
{
	struct summary m = { 0 };

	for (uint32_t i = 0; i < s->n_flights; i++) {
		const struct state_flight *f = &s->flights[i];

		if (!f->known)
			continue;
		m.all++;
		m.running += f->phase == FLIGHT_RUNNING;
		m.travelling += f->phase == FLIGHT_TRAVELLING;
		m.waiting += f->phase == FLIGHT_WAITING && f->position > 0;
		m.done += f->phase == FLIGHT_DONE;
	}
	return m;
}

static enum style phase_style(const struct state_flight *f)
{
	switch (f->phase) {
	case FLIGHT_RUNNING:
		return glyphs_task_style(state_chain_kind(f, f->position));
	case FLIGHT_TRAVELLING:
		return STYLE_TRAVEL;
	case FLIGHT_WAITING:
		return f->position > 0 ? STYLE_BLOCKED : STYLE_FAINT;
	default:
		return STYLE_FAINT;
	}
}

/* Writes the state of a microbatch, such as "F n12 0.4s", "> n06 0.1s", "x n14 0.9s <m11", "done
 * 2.315" or "not yet". */
unsigned panel_phase(const struct state *s, const struct state_flight *f, int64_t now_us,
		     char text[64])
{
	char age[16];
	unsigned node = state_chain_node(f, f->position);

	glyphs_age(state_plan_s(s, now_us - f->since_us), age);
	switch (f->phase) {
	case FLIGHT_RUNNING:
		snprintf(text, 64, "%c n%02u %s",
			 glyphs_task_letter(state_chain_kind(f, f->position)), node, age);
		break;
	case FLIGHT_TRAVELLING:
		snprintf(text, 64, "> n%02u %s", (unsigned)state_chain_node(f, f->position + 1),
			 age);
		break;
	case FLIGHT_WAITING:
		if (f->chain[f->position].blocker != STATE_NOBODY)
			snprintf(text, 64, "x n%02u %s <m%02u", node, age,
				 f->chain[f->position].blocker);
		else
			snprintf(text, 64, "x n%02u %s", node, age);
		break;
	case FLIGHT_DONE:
		if (s->run.rehearsal)
			snprintf(text, 64, "done");
		else
			snprintf(text, 64, "done %.3f", (double)f->loss);
		break;
	default:
		snprintf(text, 64, "not yet");
	}
	return phase_style(f);
}

/* Returns the character between chain positions p - 1 and p, and its style. */
static char joint_glyph(const struct state_flight *f, uint32_t p, enum style *style)
{
	bool forward = p <= f->route.n_hops;

	*style = STYLE_FAINT;
	if (f->phase == FLIGHT_UNBORN)
		return p == 0 ? ' ' : '.';
	if (p == f->position && f->phase == FLIGHT_RUNNING) {
		*style = phase_style(f);
		return '[';
	}
	if (p == f->position && f->phase == FLIGHT_WAITING) {
		*style = phase_style(f);
		return 'x';
	}
	if (p == f->position + 1 && f->phase == FLIGHT_RUNNING) {
		*style = phase_style(f);
		return ']';
	}
	if (p == f->position + 1 && f->phase == FLIGHT_TRAVELLING) {
		*style = STYLE_TRAVEL;
		return '>';
	}
	if (p == 0)
		return ' ';
	if (p > f->position)
		return '.';
	*style = forward ? STYLE_FORWARD : STYLE_BACKWARD;
	return forward ? '=' : '#';
}

int panel_chain(struct screen *out, int x, int y, int w, const struct state *s,
	       const struct state_flight *f, const struct ui *u, int digits)
{
	char words[64];
	int at = screen_print(out, x, y, w,
			      colouring_text(u->display.colouring, s, f->route.microbatch,
					     STYLE_STRONG),
			      "m%02u", f->route.microbatch);
	uint32_t chain = 2 * f->route.n_hops + 1;
	int need = (int)chain * (digits + 1) + 2;

	at += screen_text(out, x + at, y, w - at, STYLE_TEXT, f->reruns ? "'" : " ");
	panel_phase(s, f, u->clock.now_us, words);
	if (at + need + 12 <= w) {
		for (uint32_t p = 0; p < chain; p++) {
			enum style style;
			char sign = joint_glyph(f, p, &style);
			unsigned text = p < f->position || f->phase == FLIGHT_DONE
						? STYLE_TEXT
						: STYLE_FAINT;

			if (p == f->position && f->phase != FLIGHT_UNBORN &&
			    f->phase != FLIGHT_DONE)
				text = phase_style(f);
			screen_put(out, x + at++, y, (uint32_t)sign, style);
			if (p == f->route.n_hops)
				at += screen_print(out, x + at, y, w - at, text, "%.*s", digits,
						   "LLL");
			else
				at += screen_print(out, x + at, y, w - at, text, "%0*u", digits,
						   (unsigned)state_chain_node(f, p));
		}
		if (f->phase == FLIGHT_RUNNING && f->position + 1 == chain)
			screen_put(out, x + at, y, ']', phase_style(f));
		at += 2;
	}
	return at + screen_text(out, x + at, y, w - at, phase_style(f), words);
}

/* Draws the panel in two rows: one for moving microbatches, one for waiting ones. */
static void draw_short(struct screen *out, struct rect at, const struct state *s)
{
	struct chips go = { .n = 0 }, wait = { .n = 0 };

	for (uint32_t i = 0; i < s->n_flights; i++) {
		const struct state_flight *f = &s->flights[i];
		unsigned node;

		if (!state_flight_moves(f))
			continue;
		node = state_chain_node(f, f->position);
		if (f->phase == FLIGHT_RUNNING)
			chips_add(&go, 5, phase_style(f), "m%02u%cn%02u", f->route.microbatch,
				  glyphs_task_glyph(state_chain_kind(f, f->position)), node);
		else if (f->phase == FLIGHT_TRAVELLING)
			chips_add(&go, 4, STYLE_TRAVEL, "m%02u n%02u>n%02u", f->route.microbatch,
				  node, (unsigned)state_chain_node(f, f->position + 1));
		else if (f->chain[f->position].blocker == STATE_NOBODY)
			chips_add(&wait, 5, STYLE_BLOCKED, "m%02u waits at n%02u for a slot",
				  f->route.microbatch, node);
		else
			chips_add(&wait, 5, STYLE_BLOCKED, "m%02u waits at n%02u for m%02u",
				  f->route.microbatch, node, f->chain[f->position].blocker);
	}
	chips_draw(&go, out, at.x, at.y + 1, at.w, "  ");
	if (at.h < 3)
		return;
	if (wait.n == 0)
		chips_add(&wait, 9, STYLE_FAINT, "no microbatch waits");
	chips_draw(&wait, out, at.x, at.y + 2, at.w, "  ");
}

void panel_motion(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	struct summary m = sum_up(s);
	int digits = s->n_nodes > 100 ? 3 : 2, columns = at.w >= 96 ? 2 : 1, w = at.w / columns;
	char title[128];

	if (at.h < 2)
		return;
	snprintf(title, sizeof(title),
		 "Microbatches: %u run, %u travel, %u wait, %u of %u done", m.running,
		 m.travelling, m.waiting, m.done, m.all);
	screen_rule(out, at, title, NULL);
	if (at.h <= 4 && at.w < 96) {
		draw_short(out, at, s);
		return;
	}
	for (int k = 0; k < UI_MOTION_ROWS && k < columns * (at.h - 1); k++) {
		const struct state_flight *f =
			u->display.rows[k] ? state_flight(s, u->display.rows[k] - 1) : NULL;

		if (f)
			panel_chain(out, at.x + k / (at.h - 1) * w, at.y + 1 + k % (at.h - 1),
				    w - 1, s, f, u, digits);
	}
}

/* ---- one microbatch in detail ---- */

/* Adds "F1.6" for a task that has ended after 1.6 s, or "F0.4.." for a task that has run for 0.4 s.
 * If the task waited for 0.9 s, adds "x0.9" first. */
static void draw_step(struct chips *c, const struct state *s, const struct state_flight *f,
		      uint32_t p, int64_t now_us)
{
	const struct state_hop *h = &f->chain[p];
	enum task_kind kind = state_chain_kind(f, p);
	unsigned node = state_chain_node(f, p);
	char age[16], wait[24] = "";

	if (h->started_us && h->started_us > h->arrived_us && p > 0) {
		glyphs_age(state_plan_s(s, h->started_us - h->arrived_us), age);
		snprintf(wait, sizeof(wait), "x%s ", age);
	}
	if (!h->arrived_us && !h->started_us) {
		chips_add(c, 1, STYLE_FAINT, "n%02u/S%u", node,
			  (unsigned)state_chain_stage(f, p));
	} else if (!h->started_us) {
		glyphs_age(state_plan_s(s, now_us - h->arrived_us), age);
		chips_add(c, 9, STYLE_BLOCKED, "n%02u/S%u x%s", node,
			  (unsigned)state_chain_stage(f, p), age);
	} else {
		glyphs_age(
			state_plan_s(s, (h->ended_us ? h->ended_us : now_us) - h->started_us),
			age);
		chips_add(c, h->ended_us ? 2 : 9, glyphs_task_style(kind),
			  "%sn%02u/S%u %c%c%s%s", wait, node, (unsigned)state_chain_stage(f, p),
			  glyphs_task_letter(kind), glyphs_task_glyph(kind), age,
			  h->ended_us ? "" : "..");
	}
}

static void say_why(struct screen *out, struct rect at, const struct state *s,
		    const struct ui_clock *clock, const struct state_flight *f)
{
	char text[160], phase[64];
	struct why w;

	why_make(&w, s, f, clock->now_us);
	why_text(&w, text);
	panel_phase(s, f, clock->now_us, phase);
	if (w.waits)
		screen_text(out, at.x, at.y, at.w, STYLE_BLOCKED, text);
	else
		screen_print(out, at.x, at.y, at.w, STYLE_FAINT, "now: %s", phase);
}

void panel_follow(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	const struct state_flight *f = state_flight(s, u->selection.microbatch);
	struct chips forward = { .n = 0 }, back = { .n = 0 };
	char title[96];
	uint64_t skipped = 0;
	int n = 0;

	if (at.h < 2)
		return;
	if (!f) {
		screen_rule(out, at, "Follow", NULL);
		screen_print(out, at.x, at.y + 1, at.w, STYLE_FAINT,
			     "m%02u is not in this iteration's plan", u->selection.microbatch);
		return;
	}
	for (uint32_t h = 0; h < f->route.n_hops; h++)
		skipped |= 1ull << f->route.stages[h];
	n = snprintf(title, sizeof(title), "Follow m%02u from n%02u", f->route.microbatch,
		     (unsigned)f->route.nodes[0]);
	if (f->route.n_hops < s->run.n_stages)
		n += snprintf(title + n, sizeof(title) - (size_t)n, ", skips");
	for (uint32_t i = 0; i < s->run.n_stages && n < (int)sizeof(title) - 8; i++)
		if (!(skipped >> i & 1))
			n += snprintf(title + n, sizeof(title) - (size_t)n, " S%u", i);
	if (f->reruns && n < (int)sizeof(title) - 16)
		snprintf(title + n, sizeof(title) - (size_t)n, ", attempt %u", f->reruns + 1);
	screen_rule(out, at, title, NULL);
	for (uint32_t p = 0; p <= 2 * f->route.n_hops; p++)
		draw_step(p < f->route.n_hops ? &forward : &back, s, f, p, u->clock.now_us);
	chips_draw(&forward, out, at.x, at.y + 1, at.w, " > ");
	if (at.h > 2)
		chips_draw(&back, out, at.x, at.y + 2, at.w, " > ");
	if (at.h > 3)
		say_why(out, (struct rect){ at.x, at.y + 3, at.w, 1 }, s, &u->clock, f);
}
