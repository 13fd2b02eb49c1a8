/* Draws alerts, the journal, and the predicted and measured times of the newest iterations. */
#include "tui/run/notes.h"
#include "tui/panels/panels.h"

#include <stdio.h>

/* Draws a line such as "it40 predicted 35.8s, took 36.6s (+2%) ok". Without an emulated network,
 * the line also has the time of the sums and of the whole iteration. */
static void draw_receipt(struct screen *out, int x, int y, int w, const struct state *s,
			 const struct msg_see_iteration *it)
{
	double planned = (double)it->predicted_s, took = (double)it->iteration_s;
	double off = planned > 0 ? took / planned - 1 : 0;
	const char *verdict = off > 0.1 ? "SLOW" : off < -0.1 ? "fast" : "ok";
	enum style style = off > 0.1 ? STYLE_WARNING : STYLE_TEXT;
	int d = glyphs_decimals(planned), e = glyphs_decimals((double)it->predicted_sync_s);
	char change[16];

	glyphs_change(planned, took, change);
	if (s->run.emulated)
		screen_print(out, x, y, w, style, "it%llu predicted %.*fs, took %.*fs (%s) %s%s",
			     (unsigned long long)it->iteration, d, planned, d, took, change,
			     verdict, it->rerun ? ", some rerun" : "");
	else
		screen_print(out, x, y, w, style,
			     "it%llu %s (%s) planned %.*f+%.*fs, took %.*f+%.*f, all %.*f%s",
			     (unsigned long long)it->iteration, verdict, change, d, planned, e,
			     (double)it->predicted_sync_s, d, took, e, (double)it->sync_s,
			     glyphs_decimals((double)it->real_s), (double)it->real_s,
			     it->rerun ? ", some rerun" : "");
}

/* Returns the node that waits longest for processors, because other programs use them; NULL if no
 * node waits. */
static const struct msg_see_node *longest_waiting(const struct state *s)
{
	const struct msg_see_node *longest = NULL;

	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].see.waits_percent > (longest ? longest->waits_percent : 0))
			longest = &s->nodes[i].see;
	return longest;
}

void panel_receipts(struct screen *out, struct rect at, const struct state *s,
		    const struct ui *u)
{
	uint32_t n;
	float error = state_prediction_error(s, 100, &n);
	const struct msg_see_node *waits = longest_waiting(s);
	char title[96];

	(void)u;
	if (at.h < 2)
		return;
	if (waits)
		snprintf(title, sizeof(title),
			 "Predicted too short: n%02u waits %u%% for a processor",
			 (unsigned)waits->node, (unsigned)waits->waits_percent);
	else if (n > 0)
		snprintf(title, sizeof(title), "Predicted and measured: median error %.0f%%, n=%u",
			 (double)error * 100, n);
	else
		snprintf(title, sizeof(title), "Predicted and measured");
	screen_rule(out, at, title, NULL);
	for (int i = 0; i < at.h - 1 && (size_t)i < s->history.n_iterations; i++)
		draw_receipt(out, at.x, at.y + 1 + i, at.w, s,
			     &s->history.iterations[s->history.n_iterations - 1 - (size_t)i]);
}

/* Draws the active injected failures, then warnings and alerts that are not acknowledged, newest
 * first. A long text gets a second line if the panel has lines left. */
void panel_alerts(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	uint32_t open = state_alerts(s);
	char title[64], key[16];
	int y = at.y + 1, spare = at.h - 1 - (int)s->n_faults - (int)open;

	if (at.h < 2)
		return;
	keymap_show_action(&u->map, ACTION_ACKNOWLEDGE, key);
	if (open > 0)
		snprintf(title, sizeof(title), "Alerts: %u, %s acknowledges", open, key);
	else
		snprintf(title, sizeof(title), "Alerts");
	screen_rule(out, at, title, NULL);
	for (uint32_t i = 0; i < s->n_faults && y < at.y + at.h; i++) {
		const struct msg_see_fault *f = &s->faults[i];
		char left[16], peer[16] = "";

		glyphs_age((double)(f->ends_us - u->clock.now_us) / 1e6, left);
		if (f->peer >= 0)
			snprintf(peer, sizeof(peer), ">n%02d", f->peer);
		screen_print(out, at.x, y++, at.w, STYLE_WARNING,
			     "*  fault#%u %s n%02d%s heals in %s", f->fault,
			     fault_name(f->kind), f->node, peer, left);
	}
	for (size_t i = s->history.n_notes; i > 0 && y < at.y + at.h; i--) {
		const struct msg_see_note *n = &s->history.notes[i - 1];
		char age[16], text[sizeof(n->text) + sizeof(age)];
		enum style style = n->kind == NOTE_ALERT ? STYLE_ALERT : STYLE_WARNING;
		int lines;

		if (!note_stands(n->kind) || n->acknowledged)
			continue;
		glyphs_age((double)(u->clock.now_us - n->at_us) / 1e6, age);
		snprintf(text, sizeof(text), "%s %s", n->text, age);
		screen_text(out, at.x, y, at.w, style, n->kind == NOTE_ALERT ? "!!" : "!");
		lines = screen_paragraph(out,
					 (struct rect){ at.x + 3, y, at.w - 3,
							1 + (spare > 0 ? spare : 0) },
					 style, text);
		spare -= lines - 1;
		y += lines;
	}
	if (y == at.y + 1)
		screen_text(out, at.x, y, at.w, STYLE_GOOD, "no alerts");
}

void panel_journal(struct screen *out, struct rect at, const struct state *s,
		   const struct ui *u)
{
	static const enum style styles[] = { STYLE_FAINT,   STYLE_TEXT,  STYLE_STRONG, STYLE_TITLE,
					     STYLE_WARNING, STYLE_ALERT, STYLE_WARNING };

	if (at.h < 2)
		return;
	screen_rule(out, at, "Journal", NULL);
	for (int i = 0; i < at.h - 1 && (size_t)i < s->history.n_notes; i++) {
		const struct msg_see_note *n =
			&s->history.notes[s->history.n_notes - 1 - (size_t)i];
		int kind = n->kind <= NOTE_LAST ? n->kind : NOTE_LOG, x;
		char clock[16];

		glyphs_clock(n->wall_us, u->clock.wall_us, clock);
		x = screen_text(out, at.x, at.y + 1 + i, at.w, STYLE_FAINT, clock) + 1;
		x += screen_print(out, at.x + x, at.y + 1 + i, at.w - x, styles[kind], "%-7s ",
				  notes_kind(n));
		screen_text(out, at.x + x, at.y + 1 + i, at.w - x,
			    kind == NOTE_LOG ? STYLE_FAINT : STYLE_TEXT, n->text);
	}
}
