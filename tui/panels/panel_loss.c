/* Draws training and validation loss over iterations, with marks where the run was changed. Also
 * draws the measured and predicted times of the iterations. */
#include <math.h>
#include <stdio.h>

#include "tui/screen/curve.h"
#include "tui/panels/panels.h"

/* If the run has an end, writes how much is left, such as ", 1.2M tokens and 4m10 to the end". The
 * time assumes the pace of the newest iterations, from commit to commit. */
static void write_rest(const struct state *s, char *text, size_t room)
{
	const struct state_history *h = &s->history;
	size_t n = h->n_iterations < 32 ? h->n_iterations : 32;
	char tokens[16], time[16];
	float took[32];
	double left;

	*text = '\0';
	if (!s->run.iterations || !n || s->status.committed >= s->run.iterations)
		return;
	for (size_t i = 0; i < n; i++)
		took[i] = h->iterations[h->n_iterations - 1 - i].real_s;
	left = (double)(s->run.iterations - s->status.committed);
	glyphs_count(left * (double)s->run.tokens_per_iteration, tokens);
	glyphs_age(left * (double)state_median(took, n), time);
	if (s->run.tokens_per_iteration)
		snprintf(text, room, ", %s tokens and %s to the end", tokens, time);
	else
		snprintf(text, room, ", %s to the end", time);
}

static void title_of(char title[128], const struct state *s, bool with_rest)
{
	const struct state_history *history = &s->history;
	int n = snprintf(title, 128, "Loss");
	char loss[16];

	if (history->n_iterations) {
		glyphs_loss(history->iterations[history->n_iterations - 1].loss, 3, loss);
		n += snprintf(title + n, 128 - (size_t)n, " train %s", loss);
	}
	if (history->n_validations)
		n += snprintf(title + n, 128 - (size_t)n, " validation %.3f",
			      (double)history->validations[history->n_validations - 1].loss);
	if (with_rest)
		write_rest(s, title + n, 128 - (size_t)n);
}

static void draw_losses(struct screen *out, struct rect at, const struct state *s,
			const struct ui *u, struct curve_reading *reading)
{
	struct curve_view view = ui_losses(s, u);
	char title[128];

	if (at.h < 2)
		return;
	title_of(title, s, at.w >= 100);
	screen_rule(out, at, title, at.w >= 60 ? "S skip  F failure  R recovery" : "S F R");
	curve_draw(out, (struct rect){ at.x, at.y + 1, at.w, at.h - 1 }, s, &view, reading);
}

void panel_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	draw_losses(out, at, s, u, NULL);
}

/* Width of the figures next to a run's name: its losses and their differences, in columns. */
enum { NUMBERS = 40 };

/* Draws a loss and, if there is a reference run, the difference from that run's loss. */
static void draw_loss(struct screen *out, int x, int y, double loss, double reference)
{
	if (!isfinite(loss)) {
		screen_text(out, x + 8, y, 1, STYLE_FAINT, "-");
		return;
	}
	screen_print(out, x, y, 9, STYLE_TEXT, "%9.3f", loss);
	if (isfinite(reference))
		screen_print(out, x + 9, y, 9, loss < reference ? STYLE_GOOD : STYLE_WARNING,
			     "%+9.3f", loss - reference);
}

/* Draws a run's letter and name, and its losses at the cursor. reference: the losses of the
 * reference run; NULL: this is the reference run. */
static void draw_run(struct screen *out, struct rect at, char letter, enum style style,
		     const char *name, const struct curve_value *v,
		     const struct curve_value *reference)
{
	int x = at.x + at.w - NUMBERS;

	screen_print(out, at.x + 1, at.y, at.w - 1, style | STYLE_BOLD, "%c%c", letter,
		     reference ? ' ' : '*');
	/* Drops the beginning of a long name, because names of runs differ at their ends. */
	for (int more = screen_columns(name) - (at.w - NUMBERS - 4); more > 0; more--)
		utf8_next(&name);
	screen_text(out, at.x + 4, at.y, at.w - NUMBERS - 4, STYLE_TEXT, name);
	draw_loss(out, x, at.y, v->loss, reference ? reference->loss : NAN);
	draw_loss(out, x + 20, at.y, v->validation, reference ? reference->validation : NAN);
}

static void write_name(const struct other_run *run, char name[96])
{
	int n = snprintf(name, 96, "%s", run->name);

	if (run->n_read < run->n_expected)
		snprintf(name + n, 96 - (size_t)n, ", read to it %llu",
			 (unsigned long long)run->n_read);
}

/* Draws a row for each run that is compared, with its losses at the cursor. */
static void panel_runs(struct screen *out, struct rect at, const struct ui *u,
		       const struct curve_reading *r)
{
	const struct other_runs *o = &u->others;
	struct rect row = { at.x, at.y + 1, 24 + NUMBERS, 1 };
	char name[96];

	snprintf(name, sizeof(name), "At %s", r->place);
	screen_rule(out, at, name, "Left Right move the cursor  * reference");
	for (uint32_t k = 0; k < o->n; k++) {
		write_name(&o->list[k], name);
		if (row.w < screen_columns(name) + 5 + NUMBERS)
			row.w = screen_columns(name) + 5 + NUMBERS;
	}
	if (row.w > at.w)
		row.w = at.w;
	screen_text(out, at.x + row.w - NUMBERS, row.y, NUMBERS, STYLE_FAINT,
		    "     loss      - *  validation    - *");
	row.y++;
	draw_run(out, row, curve_letter(0), STYLE_TRAIN, "this run", &r->values[0], &r->values[1]);
	for (uint32_t k = 0; k < o->n; k++) {
		row.y++;
		write_name(&o->list[k], name);
		draw_run(out, row, curve_letter(1 + k), curve_style(k), name, &r->values[1 + k],
			 k ? &r->values[1] : NULL);
	}
}

static void panel_seconds(struct screen *out, struct rect at, const struct state *s,
			  const struct ui *u)
{
	const struct state_history *h = &s->history;
	struct curve_view view = {
		.own = { SERIES(h->iterations, h->n_iterations, msg_see_iteration, iteration_s,
				STYLE_TRAIN, false),
			 SERIES(h->iterations, h->n_iterations, msg_see_iteration, predicted_s,
				STYLE_VALIDATION, false) },
		.axis = u->display.loss_axis,
		.graph = u->display.graph,
		.zoom = u->display.loss_zoom,
		.from_zero = true,
		.end_below_last = u->display.view == VIEW_LOSS
	};
	const struct msg_see_iteration *it =
		s->history.n_iterations ? &s->history.iterations[s->history.n_iterations - 1]
					: NULL;
	char title[128] = "Seconds per iteration";
	int d = glyphs_decimals((double)s->plan.see.iteration_s);

	if (at.h < 2)
		return;
	if (it)
		snprintf(title, sizeof(title),
			 "Seconds per iteration: took %.*f, predicted %.*f", d,
			 (double)it->iteration_s, d, (double)it->predicted_s);
	screen_rule(out, at, title, NULL);
	curve_draw(out, (struct rect){ at.x, at.y + 1, at.w, at.h - 1 }, s, &view, NULL);
}

void panel_losses(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	struct rect loss = at, seconds = at, runs = at;
	struct curve_reading reading = { .place = "" };

	runs.h = u->others.n ? (int)u->others.n + 3 : 0;
	if (at.h - runs.h < 4)
		runs.h = 0;
	at.h -= runs.h;
	runs.y += at.h;
	loss.h = at.h;
	if (at.h >= (runs.h ? 20 : 12)) {
		loss.h = at.h * 3 / 5;
		seconds.y += loss.h;
		seconds.h = at.h - loss.h;
		panel_seconds(out, seconds, s, u);
	}
	draw_losses(out, loss, s, u, &reading);
	if (runs.h && *reading.place)
		panel_runs(out, runs, u, &reading);
}
