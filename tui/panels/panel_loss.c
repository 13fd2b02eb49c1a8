/* Training and validation loss over iterations with marks where the run was changed, and the
 * measured and predicted times of the iterations. */
#include <stdio.h>

#include "tui/screen/curve.h"
#include "tui/views/view.h"

#define SERIES(array, count, type, field) \
	{ \
		array, count, sizeof(struct type), offsetof(struct type, iteration), \
			offsetof(struct type, field) \
	}

static void title_of(char title[128], const struct state_history *history)
{
	int n = snprintf(title, 128, "Loss");

	if (history->n_iterations)
		n += snprintf(title + n, 128 - (size_t)n, " train %.3f",
			      (double)history->iterations[history->n_iterations - 1].loss);
	if (history->n_validations)
		snprintf(title + n, 128 - (size_t)n, " validation %.3f",
			 (double)history->validations[history->n_validations - 1].loss);
}

void panel_loss(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	static const enum style styles[2] = { STYLE_TRAIN, STYLE_VALIDATION };
	struct series series[2] = {
		SERIES(s->history.iterations, s->history.n_iterations, msg_see_iteration, loss),
		SERIES(s->history.validations, s->history.n_validations, msg_see_validation, loss)
	};
	char title[128];

	if (at.h < 2)
		return;
	title_of(title, &s->history);
	screen_rule(out, at, title, at.w >= 60 ? "S skip  F failure  R recovery" : "S F R");
	curve_draw(out, (struct rect){ at.x, at.y + 1, at.w, at.h - 1 }, s, u, series, styles,
		   false);
}

static void panel_seconds(struct screen *out, struct rect at, const struct state *s,
			  const struct ui *u)
{
	static const enum style styles[2] = { STYLE_TRAIN, STYLE_VALIDATION };
	struct series series[2] = { SERIES(s->history.iterations, s->history.n_iterations,
					   msg_see_iteration, iteration_s),
				    SERIES(s->history.iterations, s->history.n_iterations,
					   msg_see_iteration, predicted_s) };
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
	curve_draw(out, (struct rect){ at.x, at.y + 1, at.w, at.h - 1 }, s, u, series, styles,
		   true);
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
