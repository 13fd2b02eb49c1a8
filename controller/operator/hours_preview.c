/* hours_preview.c - reports in the journal the loss that each recipe would reach in a given time
 * (hours_preview.h).
 *
 * The operator knows for how long the machines are paid, and wants to know which recipe reaches the
 * lowest loss in that time. A run keeps its recipe, so the answer names the options of a new
 * run. */
#include "controller/operator/hours_preview.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "controller/operator/command.h"
#include "controller/planning/hours_comparison.h"
#include "controller/run/journal.h"
#include "controller/run/outcome.h"
#include "controller/run/run.h"

enum { MOST_HOURS = 1000000 };

void act_hours(struct operators *ops, const char *who, const struct msg_command *m,
	       struct outcome *o)
{
	struct error err = { "" };
	int rc;

	(void)who;
	if (ops->run->phase == PHASE_GATHERING || !ops->run->plan) {
		outcome_set(o, -EAGAIN, "the run has no plan yet");
	} else if (m->value < 1 || m->value > MOST_HOURS) {
		outcome_set(o, -EINVAL, "hours: expected 1 to %d", MOST_HOURS);
	} else if (ops->hours) {
		outcome_set(o, -EBUSY, "recipes are being compared already");
	} else {
		rc = hours_comparison_start(ops->members, m->value, &ops->hours, &err);
		outcome_set(o, rc, "%.150s",
			    rc ? err.text
			       : "comparing recipes: the journal has the answer in some seconds");
	}
}

static void note_row(struct run *run, const struct hours_row *r)
{
	char grows[80] = "", change[64] = "";

	if (r->grows_at > 0)
		snprintf(grows, sizeof(grows), " of %.3g s, then %.3g s from %" PRIu64 " on",
			 r->first_s, r->then_s, r->grows_at);
	else
		snprintf(grows, sizeof(grows), " of %.3g s", r->then_s);
	if (!isnan(r->change))
		snprintf(change, sizeof(change), ", loss %+.1f%% against full", 100 * r->change);
	note(run, NOTE_PREDICTION, -1, 0, "hours: %s: %" PRIu64 " iterations%s%s", r->recipe->name,
	     r->iterations, grows, change);
}

static void answer(struct run *run, const struct hours_comparison *h)
{
	struct error err = { "" };
	const struct hours_row *rows = hours_comparison_rows(h, &err), *best;
	char options[HOURS_OPTIONS];

	if (!rows) {
		note(run, NOTE_WARNING, -1, 0, "hours: no comparison: %.200s", err.text);
		return;
	}
	note(run, NOTE_PREDICTION, -1, 0, "hours: in %" PRId64 " hours on these nodes:",
	     hours_comparison_hours(h));
	for (int i = 0; i < RECIPES; i++)
		note_row(run, &rows[i]);
	best = hours_best(rows);
	if (!best) {
		note(run, NOTE_PREDICTION, -1, 0,
		     "hours: %.1f tokens a weight are outside the measured lengths, so no loss is "
		     "known",
		     rows[0].tokens_per_weight);
		return;
	}
	hours_options(best, hours_comparison_cluster(h), options);
	note(run, NOTE_PREDICTION, -1, 0,
	     "hours: lowest loss: %s; a new run has it with %s --iterations %" PRIu64,
	     best->recipe->name, options, best->iterations);
}

void hours_preview_turn(struct hours_comparison **h, struct run *run)
{
	if (!*h || !hours_comparison_is_done(*h))
		return;
	answer(run, *h);
	hours_preview_fini(h);
}

void hours_preview_fini(struct hours_comparison **h)
{
	hours_comparison_free(*h);
	*h = NULL;
}
