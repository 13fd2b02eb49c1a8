/* Training and validation loss over iterations with marks where the run was changed, and the
 * measured and predicted times of the iterations. */
#include <stdio.h>

#include "tui/screen/curve.h"
#include "tui/views/view.h"

#define SERIES(array, count, type, field, style, smooth) \
	{ \
		array, count, sizeof(struct type), offsetof(struct type, iteration), \
			offsetof(struct type, field), style, smooth \
	}

/* Other views show the whole run. */
static int loss_zoom(const struct ui *u)
{
	return u->display.view == VIEW_LOSS ? u->display.loss_zoom : 0;
}

/* Writes ", 1.2M tokens and 4m10 to the end" if an end is set. The time is that of the newest
 * iterations, from commit to commit. */
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

void panel_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	struct series series[2] = {
		SERIES(s->history.iterations, s->history.n_iterations, msg_see_iteration, loss,
		       STYLE_TRAIN, true),
		SERIES(s->history.validations, s->history.n_validations, msg_see_validation, loss,
		       STYLE_VALIDATION, false)
	};
	char title[128];

	if (at.h < 2)
		return;
	title_of(title, s, at.w >= 100);
	screen_rule(out, at, title, at.w >= 60 ? "S skip  F failure  R recovery" : "S F R");
	curve_draw(out, (struct rect){ at.x, at.y + 1, at.w, at.h - 1 }, s, u, series,
		   loss_zoom(u), false);
}

static void panel_seconds(struct screen *out, struct rect at, const struct state *s,
			  const struct ui *u)
{
	const struct state_history *h = &s->history;
	struct series series[2] = {
		SERIES(h->iterations, h->n_iterations, msg_see_iteration, iteration_s, STYLE_TRAIN,
		       false),
		SERIES(h->iterations, h->n_iterations, msg_see_iteration, predicted_s,
		       STYLE_VALIDATION, false)
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
	curve_draw(out, (struct rect){ at.x, at.y + 1, at.w, at.h - 1 }, s, u, series,
		   loss_zoom(u), true);
}

void view_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	struct rect loss = at, seconds = at;

	if (at.h >= 12) {
		loss.h = at.h * 3 / 5;
		seconds.y += loss.h;
		seconds.h -= loss.h;
		panel_seconds(out, seconds, s, u);
	}
	panel_loss(out, loss, s, u);
}
