/* The two lines at the top of the screen: the run, its state, progress, speed and risks. The two
 * lines at the bottom: the newest message and the keys. */
#include "base/tensor_format.h"
#include "base/timestamp.h"
#include "tui/panels/panels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Adds LIVE or the word for another state of the connection. Its colour is visible across a room;
 * the word can be read without colour. */
static void add_link(struct chips *c, const struct state *s, const struct ui *u)
{
	char age[16];

	glyphs_age((double)(u->clock.local_us - u->connection.since_us) / 1e6, age);
	if (u->connection.state == UI_CONNECTING)
		chips_add(c, 9, STYLE_LOST, " CONNECTING %s ", age);
	else if (u->connection.state == UI_REFUSED)
		chips_add(c, 9, STYLE_LOST, " REFUSED ");
	else if (u->connection.state == UI_LOST)
		chips_add(c, 9, STYLE_LOST, " LOST %s ", age);
	else if (u->clock.frozen && u->clock.behind_us > 0) {
		glyphs_age((double)u->clock.behind_us / 1e6, age);
		chips_add(c, 9, STYLE_LOST, " REPLAY -%s ", age);
	} else if (u->clock.frozen)
		chips_add(c, 9, STYLE_LOST, " FROZEN ");
	else if (s->run.replay)
		chips_add(c, 9, STYLE_LIVE,
			  s->status.paused ? " REPLAY, stopped " : " REPLAY ");
	else if (s->status.phase == PHASE_STALLED)
		chips_add(c, 9, STYLE_LOST, " STALLED ");
	else if (s->status.phase == PHASE_FINISHED)
		chips_add(c, 9, STYLE_LIVE, " FINISHED ");
	else if (s->status.phase == PHASE_PAUSED)
		chips_add(c, 9, STYLE_LOST, " PAUSED ");
	else if (s->status.paused)
		chips_add(c, 9, STYLE_LIVE, " PAUSING ");
	else if (u->connection.state == UI_RECORDED)
		chips_add(c, 9, STYLE_LIVE, " RECORDED ");
	else
		chips_add(c, 9, STYLE_LIVE, " LIVE ");
}

static void add_lease(struct chips *c, const struct state *s, const struct ui *u)
{
	char left[16];

	glyphs_age((double)s->status.lease_us / 1e6, left);
	if (s->run.replay)
		chips_add(c, 4, STYLE_FAINT, "commands off");
	else if (ui_watch_reason(u))
		chips_add(c, 5, STYLE_FAINT, "WATCHING");
	else if (!*s->status.lease)
		chips_add(c, 4, STYLE_FAINT, "locked");
	else if (ui_has_lease(u, s))
		chips_add(c, 5, STYLE_GOOD, "ARMED %s", left);
	else
		chips_add(c, 8, STYLE_WARNING, "held by %s %s", s->status.lease, left);
}

static void first_line(struct screen *out, struct rect at, const struct state *s,
		       const struct ui *u)
{
	const struct msg_see_status *t = &s->status;
	struct chips c = { .n = 0 };
	char clock[TIMESTAMP_SIZE], ratio[SKIP_SHARE_TEXT];
	bool ours; /* false: a published baseline makes the plan, and its name is always shown */

	chips_add(&c, 3, STYLE_TITLE, "skippipe");
	chips_add(&c, 6, STYLE_STRONG, "%s", s->has_run ? s->run.name : "");
	if (s->run.iterations)
		chips_add(&c, 8, STYLE_STRONG, "it %llu/%llu", (unsigned long long)t->iteration,
			  (unsigned long long)s->run.iterations);
	else
		chips_add(&c, 8, STYLE_STRONG, "it %llu", (unsigned long long)t->iteration);
	add_link(&c, s, u);
	if (s->run.rehearsal)
		chips_add(&c, 9, STYLE_LOST, " REHEARSAL ");
	if (s->run.emulated)
		chips_add(&c, 7, STYLE_STRONG, "EMULATED");
	if (u->branch.open)
		chips_add(&c, 8, STYLE_LOST, " WHAT IF ");
	chips_add(&c, 7, t->alive < t->n_nodes ? STYLE_WARNING : STYLE_TEXT, "nodes %u/%u",
		  t->alive, t->n_nodes);
	if (t->n_stages > 0 && t->skip_share > 0)
		chips_add(&c, 7, STYLE_TEXT, "skip %u/%u in %u%%", t->n_stages - t->path_length,
			  t->n_stages, t->skip_share);
	else if (t->n_stages > 0)
		chips_add(&c, 7, STYLE_TEXT, "skip %u/%u=%u%%", t->n_stages - t->path_length,
			  t->n_stages, (t->n_stages - t->path_length) * 100 / t->n_stages);
	if (t->wire != FORMAT_FP32 || t->sum_wire != FORMAT_FP32)
		chips_add(&c, 5, STYLE_TEXT, "wire %s, sums %s",
			  tensor_format_name((enum tensor_format)t->wire),
			  tensor_format_name((enum tensor_format)t->sum_wire));
	if (t->n_skip_phases > 0)
		chips_add(&c, 5, STYLE_TEXT, "phase %u/%u", t->skip_phase, t->n_skip_phases);
	if (t->next_phase_from > 0)
		chips_add(&c, 4, STYLE_FAINT, "skip %s from it%llu",
			  state_ratio_text(t->next_skip, ratio),
			  (unsigned long long)t->next_phase_from);
	ours = !*s->plan.see.algorithm || strcmp(s->plan.see.algorithm, "best") == 0;
	chips_add(&c, ours ? 3 : 7, ours ? STYLE_FAINT : STYLE_WARNING, "plan %llu %s",
		  (unsigned long long)t->epoch, s->plan.see.algorithm);
	if (t->checkpoint_failure.iteration > 0)
		chips_add(&c, 8, STYLE_WARNING, "no checkpoint since it%llu",
			  (unsigned long long)t->checkpoint);
	if (t->faults)
		chips_add(&c, 6, STYLE_WARNING, "faults %u", t->faults);
	add_lease(&c, s, u);
	if (s->stream.gaps)
		chips_add(&c, 2, STYLE_WARNING, "gaps %llu", (unsigned long long)s->stream.gaps);
	if (at.w >= 120)
		chips_add(&c, 1, STYLE_FAINT, "%s", s->run.model);
	if (at.w >= 120 && (t->resent || t->refused || t->dropped))
		chips_add(&c, 0, STYLE_FAINT, "resent %llu refused %llu dropped %llu",
			  (unsigned long long)t->resent, (unsigned long long)t->refused,
			  (unsigned long long)t->dropped);
	if (at.w >= 60) {
		int w = at.w >= 140 ? 20 : 9; /* width of the clock: with or without the date */

		timestamp_text(u->clock.wall_us, clock);
		clock[10] = ' ';
		chips_draw(&c, out, at.x, at.y, at.w - w - 1, "  ");
		screen_print(out, at.x + at.w - w, at.y, w, STYLE_FAINT, "%.*sZ", w - 1,
			     clock + 20 - w);
	} else {
		chips_draw(&c, out, at.x, at.y, at.w, " ");
	}
}

/* Adds the progress of the current iteration, compared with its predicted time. */
static void add_progress(struct chips *c, const struct state *s, const struct ui_clock *clock,
			 int w)
{
	double want = (double)s->plan.see.iteration_s, at;
	int d = glyphs_decimals(want);

	if (s->status.phase != PHASE_COMPUTING || !s->current.start_us ||
	    s->current.iteration != s->status.iteration) {
		chips_add(c, 6, STYLE_TEXT, "%s",
			  *s->status.doing ? s->status.doing
					   : phase_name(s->status.phase));
		return;
	}
	at = state_plan_s(s, clock->now_us - s->current.start_us);
	chips_add(c, w >= 120 ? 6 : 3, at > want * 1.1 && want > 0 ? STYLE_WARNING : STYLE_TEXT,
		  "now %.*f of %.*fs", d, at, d, want);
}

/* Adds the time of summing the gradients and the time of the whole iteration. With an emulated
 * network, the caller omits both, because the first is in plan seconds and the second in real
 * seconds. */
static void add_sums(struct chips *c, const struct msg_see_iteration *it, int w)
{
	double longest = fmax((double)it->sync_s, (double)it->predicted_sync_s);

	chips_add(c, 8, STYLE_TEXT,
		  w < 100 ? "sum %.*fs pred %.*f" : "sum %.*fs predicted %.*f",
		  glyphs_decimals(longest), (double)it->sync_s, glyphs_decimals(longest),
		  (double)it->predicted_sync_s);
	chips_add(c, 8, STYLE_TEXT, w < 100 ? "all %.*fs" : "all in %.*fs",
		  glyphs_decimals((double)it->real_s), (double)it->real_s);
}

/* Draws figures in order of rank: measured and predicted time first, then loss and speed, then the
 * causes. A narrow screen omits the figures of lowest rank. */
static void second_line(struct screen *out, struct rect at, const struct state *s,
			const struct ui *u)
{
	const struct msg_see_iteration *it =
		s->history.n_iterations ? &s->history.iterations[s->history.n_iterations - 1]
					: NULL;
	int d = glyphs_decimals((double)s->plan.see.iteration_s);
	struct chips c = { .n = 0 };
	char number[16], change[16];

	if (it) {
		glyphs_change((double)it->predicted_s, (double)it->iteration_s, change);
		chips_add(&c, 9,
			  fabsf(it->iteration_s - it->predicted_s) > it->predicted_s * 0.1f
				  ? STYLE_WARNING
				  : STYLE_STRONG,
			  at.w < 100 ? "iter %.*fs pred %.*f (%s)"
				     : "iter %.*fs predicted %.*f (%s)",
			  d, (double)it->iteration_s, d, (double)it->predicted_s, change);
	}
	if (it && !s->run.emulated)
		add_sums(&c, it, at.w);
	add_progress(&c, s, &u->clock, at.w);
	if (s->run.baseline_s > 0 && at.w >= 120 && it && it->iteration_s > 0)
		chips_add(&c, 5, STYLE_TEXT, "plain pipeline %.*f (%.1fx)", d,
			  s->run.baseline_s, s->run.baseline_s / (double)it->iteration_s);
	else if (s->run.baseline_s > 0)
		chips_add(&c, 5, STYLE_TEXT, at.w < 100 ? "base %.*f" : "plain pipeline %.*f",
			  d, s->run.baseline_s);
	if (it) {
		glyphs_count((double)it->tokens_per_s, number);
		if (!s->run.rehearsal)
			chips_add(&c, 7, STYLE_TEXT, "%stok/s", number);
		glyphs_loss(it->loss, 3, number);
		chips_add(&c, 8, STYLE_TEXT, "loss %s", number);
	}
	if (u->prices.are_known) {
		struct cost cost = costs_of(&u->prices, s, -1, 1);

		chips_add(&c, 9, STYLE_TEXT,
			  cost.per_mtoken > 0 ? "$%.2f/h $%.2f/Mtoken" : "$%.2f/h", cost.per_hour,
			  cost.per_mtoken);
	}
	if (s->history.n_validations)
		chips_add(&c, 4, STYLE_TEXT, "val %.3f",
			  (double)s->history.validations[s->history.n_validations - 1].loss);
	if (it)
		chips_add(&c, 6, it->collisions ? STYLE_BLOCKED : STYLE_TEXT,
			  at.w < 120 ? "x%u wait %.*fs" : "%u collisions, wait %.*fs",
			  it->collisions, d, (double)it->wait_s);
	if (it && at.w >= 100)
		chips_add(&c, 3, STYLE_TEXT, "idle %.0f%%", (double)it->idle_fraction * 100);
	if (it && at.w >= 120 && it->rerun)
		chips_add(&c, 3, STYLE_WARNING, "%u rerun", it->rerun);
	if (s->plan.known && s->plan.see.lower_bound_s > 0 && at.w >= 120)
		chips_add(&c, 2, STYLE_FAINT, "bound %.*f", d,
			  (double)s->plan.see.lower_bound_s);
	chips_draw(&c, out, at.x, at.y + 1, at.w, " | ");
}

void panel_header(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	if (at.h >= 1)
		first_line(out, at, s, u);
	if (at.h >= 2)
		second_line(out, at, s, u);
}

/* Draws the cursor's position in time, the marks of events (S F R), and the keys that move the
 * cursor. */
static void draw_scrub(struct screen *out, struct rect at, const struct state_history *history,
		       int64_t last_us, int64_t behind_us, int64_t span_us)
{
	static const char keys[] = "[ ] scrub  { } event  L live  B what if";
	int n = (int)sizeof(keys) - 1, w = at.w - n - 8, x;

	if (w < 10 || span_us <= 0) {
		screen_text(out, at.x, at.y, at.w, STYLE_FAINT, keys);
		return;
	}
	x = screen_text(out, at.x, at.y, 6, STYLE_FAINT, "time ");
	screen_fill(out, (struct rect){ at.x + x, at.y, w, 1 }, 0x2500, STYLE_RULE);
	for (size_t i = 0; i < history->n_notes; i++) {
		int64_t ago = last_us - history->notes[i].at_us;

		if (history->notes[i].mark > ' ' && ago >= 0 && ago <= span_us)
			screen_put(out,
				   at.x + x +
					   (int)((double)(w - 1) *
						 (1 - (double)ago / (double)span_us)),
				   at.y, (uint32_t)history->notes[i].mark, STYLE_MARK);
	}
	behind_us = behind_us < 0 ? 0 : behind_us > span_us ? span_us : behind_us;
	screen_put(out,
		   at.x + x +
			   (int)((double)(w - 1) * (1 - (double)behind_us / (double)span_us)),
		   at.y, '^', STYLE_MARK);
	screen_text(out, at.x + at.w - n, at.y, n, STYLE_FAINT, keys);
}

/* Draws the most urgent of these: the prompt, the message, the cursor in time, the reason of a lost
 * connection, the filter, the newest journal entry. */
void panel_prompt(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	const struct msg_see_note *last =
		s->history.n_notes ? &s->history.notes[s->history.n_notes - 1] : NULL;
	char clock[16];
	int x;

	if (at.h < 1)
		return;
	if (u->prompt.kind != PROMPT_NONE) {
		const char *text = u->prompt.text;

		for (int more = screen_columns(text) + 2 - at.w; more > 0; more--)
			/* Drops the beginning of a long text, because the operator types at its
			 * end. */
			utf8_next(&text);
		x = screen_print(out, at.x, at.y, at.w, STYLE_STRONG, "%c%s",
				 u->prompt.kind == PROMPT_COMMAND ? ':' : '/', text);
		screen_put(out, at.x + x, at.y, ' ', STYLE_TEXT | STYLE_REVERSE);
		return;
	}
	if (*u->message.text && u->clock.local_us < u->message.until_us)
		screen_text(out, at.x, at.y, at.w, u->message.style, u->message.text);
	else if (u->clock.behind_us > 0)
		draw_scrub(out, at, &s->history, u->clock.now_us + u->clock.behind_us,
			   u->clock.behind_us, u->clock.span_us);
	else if (s->run.replay && u->connection.state == UI_LIVE)
		draw_scrub(out, at, &s->history, s->run.last_us, s->run.last_us - u->clock.now_us,
			   s->run.last_us - s->run.first_us);
	else if (u->connection.state != UI_LIVE && *u->connection.reason)
		screen_text(out, at.x, at.y, at.w, STYLE_WARNING, u->connection.reason);
	else if (*u->selection.filter)
		screen_print(out, at.x, at.y, at.w, STYLE_FAINT, "/%s  (Esc shows all)",
			     u->selection.filter);
	else if (last) {
		glyphs_clock(last->wall_us, u->clock.wall_us, clock);
		screen_print(out, at.x, at.y, at.w, STYLE_FAINT, "%s %s", clock, last->text);
	}
}

bool panel_offers(const struct state *s, const struct ui *u, enum action a)
{
	bool changes_run = (a >= ACTION_SKIP && a <= ACTION_HEAL_ALL) || a == ACTION_UNDO;

	return !changes_run || (!s->run.replay && u->connection.state != UI_RECORDED);
}

/* Returns true for views in which the colours of microbatches matter. */
static bool shows_colours(enum view view)
{
	return view == VIEW_TIMELINE || view == VIEW_MICROBATCHES || view == VIEW_MAP;
}

void panel_keys(struct screen *out, struct rect at, const struct state *s, const struct ui *u)
{
	static const struct {
		enum action action;
		int rank;
	} shown[] = {
		{ ACTION_SKIP, 8 },   { ACTION_FAIL, 7 },    { ACTION_RECOVER, 6 },
		{ ACTION_INJECT, 7 }, { ACTION_HEAL, 3 },    { ACTION_HEAL_ALL, 4 },
		{ ACTION_PAUSE, 6 },  { ACTION_STEP, 2 },    { ACTION_FOLLOW, 5 },
		{ ACTION_FREEZE, 4 }, { ACTION_UNDO, 4 },    { ACTION_ACKNOWLEDGE, 2 },
		{ ACTION_FILTER, 2 }, { ACTION_PALETTE, 5 }, { ACTION_HELP, 9 },
		{ ACTION_BRANCH, 4 }, { ACTION_COLOUR, 5 },  { ACTION_AXIS, 5 },
		{ ACTION_MEASURE, 7 }, { ACTION_GROUP, 6 },  { ACTION_QUIT, 9 },
	};
	struct chips c = { .n = 0 };

	if (at.h < 1)
		return;
	chips_add(&c, 6, STYLE_FAINT,
		  at.w >= 150 ? "1Over 2Nodes 3Links 4Time 5Mbs 6Loss 7Comp 8Jrnl 9Map"
			      : "1-9 views");
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		const struct keymap_entry *e = keymap_find(shown[i].action);
		char key[16];

		if (!panel_offers(s, u, shown[i].action))
			continue;
		if ((shown[i].action == ACTION_COLOUR && !shows_colours(u->display.view)) ||
		    (shown[i].action == ACTION_AXIS && u->display.view != VIEW_LOSS) ||
		    ((shown[i].action == ACTION_MEASURE || shown[i].action == ACTION_GROUP) &&
		     u->display.view != VIEW_LINKS))
			continue;
		keymap_show_action(&u->map, shown[i].action, key);
		if (*key && e && e->label)
			chips_add(&c, shown[i].rank, STYLE_KEY, "%s %s", key, e->label);
	}
	chips_draw(&c, out, at.x, at.y, at.w, "  ");
	/* Only the keys are highlighted, not the words next to them. */
	for (int i = 0, x = at.x; i < c.n; i++) {
		const char *space = strchr(c.chip[i].text, ' ');
		int n = screen_columns(c.chip[i].text);

		if (c.chip[i].rank < 0)
			continue;
		if (i > 0 && space) {
			int key = (int)(space - c.chip[i].text);

			screen_restyle(out, (struct rect){ x + key, at.y, n - key, 1 }, 0,
				       STYLE_TEXT);
		}
		x += n + 2;
	}
}
