/* Draws a dialog; dialog.c handles its keys. All lines are collected before drawing, so that the
 * frame fits them. The focused field, line or button is reversed. */
#include "tui/views/view.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WIDE = 62 };
static const char unchanged[] = "this is the current value; Left and Right change it";

struct lines {
	char text[16][96];
	unsigned style[16];
	int n;
};

static void add_line(struct lines *l, unsigned style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void add_line(struct lines *l, unsigned style, const char *format, ...)
{
	va_list args;

	if (l->n == 16)
		return;
	va_start(args, format);
	vsnprintf(l->text[l->n], sizeof(l->text[0]), format, args);
	va_end(args);
	l->style[l->n++] = style;
}

/* ---- the preview ---- */

/* Splits a text at each "; ", and adds each part as a line. */
static void add_parts(struct lines *l, const char *text)
{
	const char *end;

	for (; (end = strstr(text, "; ")) != NULL; text = end + 2)
		add_line(l, STYLE_TEXT, "%.*s", (int)(end - text), text);
	add_line(l, STYLE_TEXT, "%s", text);
}

static void add_preview(struct lines *l, const struct ui *u)
{
	const struct dialog *d = &u->dialog;
	const struct msg_see_preview *p = &d->preview;
	char change[16], age[16], error[48] = "";
	int digits = glyphs_decimals((double)p->before_iteration_s);

	if (d->preview_id == 0) {
		add_line(l, STYLE_WARNING, "no preview: %s",
			 u->connection.state == UI_LIVE ? "too many commands are unanswered"
					    : "the controller cannot be reached");
		return;
	}
	if (!d->has_preview) {
		glyphs_age((double)(u->clock.local_us - d->asked_us) / 1e6, age);
		add_line(l, STYLE_FAINT,
			 u->clock.local_us - d->asked_us > 300000 ? "planning... STALE %s"
							    : "planning...%s",
			 u->clock.local_us - d->asked_us > 300000 ? age : "");
		return;
	}
	if (!p->feasible) {
		add_line(l, STYLE_ALERT, "not possible: %.70s", p->text);
		return;
	}
	/* The action needs no new plan, so the preview has no time. */
	if (p->after_iteration_s <= 0) {
		add_parts(l, *p->text ? p->text : "no path changes");
		return;
	}
	glyphs_change((double)p->before_iteration_s, (double)p->after_iteration_s, change);
	if (p->n_predictions > 0)
		snprintf(error, sizeof(error), "  (+-%.0f%%, n=%u)", (double)p->median_error * 100,
			 p->n_predictions);
	add_line(l, STYLE_STRONG, "iteration %6.*f -> %.*f s  %s%s", digits,
		 (double)p->before_iteration_s, digits, (double)p->after_iteration_s, change,
		 error);
	if (p->verb == COMMAND_CUT) {
		add_parts(l, p->text);
		return;
	}
	if (p->before_sync_s != p->after_sync_s)
		add_line(l, STYLE_TEXT, "sums      %6.*f -> %.*f s", digits,
			 (double)p->before_sync_s, digits, (double)p->after_sync_s);
	add_line(l, STYLE_TEXT, "blocked   %6.*f -> %.*f s", digits, (double)p->before_wait_s,
		 digits, (double)p->after_wait_s);
	add_line(l, p->after_peak_slots > p->memory ? STYLE_ALERT : STYLE_TEXT,
		 "peak slots %5u -> %u of %u", p->before_peak_slots, p->after_peak_slots,
		 p->memory);
	add_line(l, p->after_least_visits < p->before_least_visits ? STYLE_WARNING : STYLE_TEXT,
		 "least-trained S%u: %u -> %u visits an iteration%s", p->least_stage,
		 p->before_least_visits, p->after_least_visits,
		 p->after_least_visits < p->before_least_visits ? "  (fewer)" : "");
	add_line(l, STYLE_TEXT, "%u paths change, from iteration %llu", p->paths_changed,
		 (unsigned long long)p->iteration);
	if (*p->text)
		add_line(l, STYLE_WARNING, "%.90s", p->text);
}

/* Adds how the previewed plan changes the cost of the run. without: a node whose machine would be
 * stopped; -1: none. */
static void add_cost(struct lines *l, const struct state *s, const struct ui *u, int without)
{
	const struct msg_see_preview *p = &u->dialog.preview;
	bool has_times = u->dialog.has_preview && p->feasible && p->before_iteration_s > 0 &&
			 p->after_iteration_s > 0;
	struct cost now, then;

	if (!u->prices.are_known || !has_times)
		return;
	now = costs_of(&u->prices, s, -1, 1);
	then = costs_of(&u->prices, s, without,
			(double)p->after_iteration_s / (double)p->before_iteration_s);
	if (without >= 0)
		add_line(l, STYLE_TEXT, "machine stopped: $%.2f -> $%.2f an hour", now.per_hour,
			 then.per_hour);
	if (now.per_mtoken > 0)
		add_line(l, then.per_mtoken > now.per_mtoken ? STYLE_WARNING : STYLE_TEXT,
			 "$%.2f -> $%.2f a million tokens", now.per_mtoken, then.per_mtoken);
}

/* Adds how many microbatches visit the node. gone: the action removes the node from the run; in
 * this case, also adds how many replicas its stage keeps. */
static void add_blast(struct lines *l, const struct state *s, uint16_t node, bool gone)
{
	uint32_t through = 0, left = 0, stage = s->nodes[node].see.stage;

	for (uint32_t i = 0; i < s->n_flights; i++) {
		const struct state_flight *f = &s->flights[i];

		for (uint32_t h = 0; f->known && h < f->route.n_hops; h++)
			through += f->route.nodes[h] == node;
	}
	for (uint32_t i = 0; i < s->n_nodes; i++)
		left += i != node && s->nodes[i].known && s->nodes[i].see.stage == stage &&
			(s->nodes[i].see.state == NODE_LIVE ||
			 s->nodes[i].see.state == NODE_SUSPECT);
	add_line(l, STYLE_TEXT, "%u of %u microbatches pass n%02u%s", through, s->plan.n_routes,
		 (unsigned)node, gone ? " and must be rerouted" : "");
	if (!gone)
		return;
	if (left == 0)
		add_line(l, STYLE_ALERT, "S%u: THE LAST REPLICA", stage);
	else
		add_line(l, left == 1 ? STYLE_WARNING : STYLE_TEXT, "S%u keeps %u other replica%s",
			 stage, left, left == 1 ? "" : "s");
}

static void show_value(const struct dialog_field *f, enum dialog_kind kind,
		       const struct state *s, char text[48])
{
	switch (f->unit) {
	case FIELD_STAGES:
		snprintf(text, 48, "%lld of %u = %lld%%", (long long)f->value, s->run.n_stages,
			 s->run.n_stages ? (long long)f->value * 100 / s->run.n_stages : 0);
		break;
	case FIELD_FORMAT:
		snprintf(text, 48, "%s", tensor_format_name(dialog_format(kind, f->value)));
		break;
	case FIELD_NODE:
		if (f->value < 0)
			snprintf(text, 48, kind == DIALOG_BRANCH ? "none" : "all");
		else
			snprintf(text, 48, "n%02lld", (long long)f->value);
		break;
	case FIELD_SECONDS:
		glyphs_age((double)f->value, text);
		break;
	case FIELD_TIMES:
		snprintf(text, 48, "x%lld", (long long)f->value);
		break;
	case FIELD_PERCENT:
		snprintf(text, 48, "%lld%%", (long long)f->value);
		break;
	default:
		snprintf(text, 48, "%lld", (long long)f->value);
	}
}

/* Writes the title: the name of the action, and what it acts on. */
static const char *title_of(const struct state *s, const struct ui *u, char text[80])
{
	const struct dialog *d = &u->dialog;
	char now[SKIP_SHARE_TEXT], then[SKIP_SHARE_TEXT];
	int64_t ratio = state_skip_ratio(s);

	switch (d->kind) {
	case DIALOG_SKIP:
		skip_share_format(skip_share_of(ratio), skip_share_stages(ratio), s->run.n_stages,
				  now);
		ratio = dialog_ratio(d);
		skip_share_format(skip_share_of(ratio), skip_share_stages(ratio), s->run.n_stages,
				  then);
		snprintf(text, 80, "Skip %s -> %s", now, then);
		break;
	case DIALOG_WIRE:
	case DIALOG_SUM_WIRE:
		snprintf(text, 80, "%s %s -> %s",
			 d->kind == DIALOG_WIRE ? "Activations in" : "Sums in",
			 tensor_format_name(dialog_format_now(s, d->kind)),
			 tensor_format_name(dialog_format(d->kind, d->fields[0].value)));
		break;
	case DIALOG_FINISH:
		return "Lower the learning rate, then end the run";
	case DIALOG_FAIL:
		snprintf(text, 80, "Mark n%02u failed", (unsigned)d->node);
		break;
	case DIALOG_RECOVER:
		snprintf(text, 80, "Recover n%02u", (unsigned)d->node);
		break;
	case DIALOG_FAULT:
		snprintf(text, 80, "Inject a failure at n%02u", (unsigned)d->node);
		break;
	case DIALOG_INJECT:
		snprintf(text, 80, "Inject: %s", fault_name(d->fault));
		break;
	case DIALOG_HEAL:
		return "Heal";
	case DIALOG_UNDO:
		return "Undo";
	case DIALOG_CUT:
		snprintf(text, 80, "Cut the model: %.60s", *d->layers ? d->layers : "as proposed");
		break;
	case DIALOG_BRANCH:
		snprintf(text, 80, "What if, in iteration %llu",
			 (unsigned long long)s->current.iteration);
		break;
	default:
		return "Quit";
	}
	return text;
}

static const char *ending_of(const struct state *s, enum fault_kind kind)
{
	const struct fault_description *fault = fault_describe(kind);

	if (fault->for_good && s->run.embedded)
		return "the node stays dead until R restarts it";
	return fault->ending ? fault->ending : FAULT_HEALS;
}

static void fill_skip(struct lines *l, const struct state *s, const struct ui *u)
{
	int64_t now = state_skip_ratio(s);
	char ratio[SKIP_SHARE_TEXT];

	if (dialog_ratio(&u->dialog) == now) {
		add_line(l, STYLE_TEXT, "%s", unchanged);
		return;
	}
	add_preview(l, u);
	add_cost(l, s, u, -1);
	if (s->status.next_phase_from > 0)
		add_line(l, STYLE_TEXT,
			 "it holds until the schedule's next phase at it%llu skips %s",
			 (unsigned long long)s->status.next_phase_from,
			 state_ratio_text(s->status.next_skip, ratio));
	else if (s->status.n_skip_phases > 0)
		add_line(l, STYLE_TEXT, "it holds for the rest of the run");
	if (skip_share_of(now) > 0)
		add_line(l, STYLE_FAINT, "undo: :skip %u%%:%u", skip_share_of(now),
			 skip_share_stages(now));
	else
		add_line(l, STYLE_FAINT, "undo: :skip %u", skip_share_stages(now));
}

static void fill_format(struct lines *l, const struct state *s, const struct ui *u)
{
	const struct dialog *d = &u->dialog;

	if (dialog_format(d->kind, d->fields[0].value) == dialog_format_now(s, d->kind)) {
		add_line(l, STYLE_TEXT, "%s", unchanged);
		return;
	}
	add_preview(l, u);
	add_line(l, STYLE_FAINT, "undo: :%s %s",
		 verb_name(d->kind == DIALOG_WIRE ? COMMAND_WIRE : COMMAND_SUM_WIRE),
		 tensor_format_name(dialog_format_now(s, d->kind)));
}

/* Splits the preview's text at semicolons, and adds each part as a line. */
static void fill_finish(struct lines *l, const struct ui *u)
{
	const struct dialog *d = &u->dialog;
	const char *at = d->preview.text;

	if (!d->has_preview || !d->preview.feasible)
		add_preview(l, u);
	while (d->has_preview && d->preview.feasible && *at) {
		size_t n = strcspn(at, ";");

		add_line(l, STYLE_TEXT, "%.*s", (int)n, at);
		at += n + strspn(at + n, "; ");
	}
	add_line(l, STYLE_FAINT, "undo, until the rate falls: :finish 0");
}

static void fill_quit(struct lines *l, const struct state *s, const struct ui *u)
{
	if (u->authority.owner)
		add_line(l, STYLE_ALERT, "This ends the run. Committed iterations are kept.");
	else
		add_line(l, STYLE_TEXT, "The run continues without this console.");
	if (s->n_faults > 0)
		add_line(l, STYLE_WARNING,
			 s->n_faults == 1
				 ? "%u injected failure is active and heals by itself."
				 : "%u injected failures are active and heal by themselves.",
			 s->n_faults);
}

/* Adds the lines between title and buttons, which describe the effect of the action. */
static void fill_lines(struct lines *l, const struct state *s, const struct ui *u)
{
	const struct dialog *d = &u->dialog;

	switch (d->kind) {
	case DIALOG_SKIP:
		fill_skip(l, s, u);
		break;
	case DIALOG_WIRE:
	case DIALOG_SUM_WIRE:
		fill_format(l, s, u);
		break;
	case DIALOG_FINISH:
		fill_finish(l, u);
		break;
	case DIALOG_FAIL:
		add_blast(l, s, d->node, true);
		if (d->forbidden)
			add_line(l, STYLE_ALERT, "%s", d->why);
		else
			add_preview(l, u);
		if (!d->forbidden)
			add_cost(l, s, u, (int)d->node);
		add_line(l, STYLE_FAINT, "the node keeps running but is not used; undo: R");
		break;
	case DIALOG_RECOVER:
		add_line(l, STYLE_TEXT, "n%02u is %s %.60s", (unsigned)d->node,
			 node_state_shown(s->nodes[d->node].see.state),
			 s->nodes[d->node].see.why);
		add_line(l, STYLE_TEXT,
			 "it fetches S%u from another replica, and joins between iterations",
			 (unsigned)s->nodes[d->node].see.stage);
		break;
	case DIALOG_INJECT:
		add_blast(l, s, (uint16_t)d->fields[0].value,
			  fault_describe(d->fault)->moves_work);
		add_line(l, STYLE_FAINT, "%s", ending_of(s, d->fault));
		break;
	case DIALOG_CUT:
		add_preview(l, u);
		add_line(l, STYLE_FAINT,
			 "it happens after the next commit; training waits meanwhile");
		add_line(l, STYLE_FAINT, "undo: :cut with the present layers, before that commit");
		break;
	case DIALOG_UNDO:
		add_line(l, STYLE_STRONG, "%s", d->undo_text);
		add_preview(l, u);
		break;
	case DIALOG_BRANCH:
		add_line(l, STYLE_TEXT,
			 "the iteration shown is planned again, and the plan is drawn");
		add_line(l, STYLE_TEXT, "below the past tasks; nothing in the run changes");
		break;
	case DIALOG_QUIT:
		fill_quit(l, s, u);
		break;
	default:
		break;
	}
}

static void fill_list(struct lines *l, const struct state *s, const struct ui *u)
{
	const struct dialog *d = &u->dialog;

	if (d->kind == DIALOG_FAULT) {
		for (uint32_t i = 0; i < FAULT_LAST; i++)
			add_line(l, i == d->choice ? STYLE_TEXT | STYLE_REVERSE : STYLE_TEXT,
				 "%c %-10s %s", i == d->choice ? '>' : ' ',
				 fault_name(i + 1), fault_describe(i + 1)->what);
	} else {
		for (uint32_t i = 0; i < s->n_faults; i++)
			add_line(l, i == d->choice ? STYLE_TEXT | STYLE_REVERSE : STYLE_TEXT,
				 "%c #%u %s n%02d", i == d->choice ? '>' : ' ',
				 s->faults[i].fault, fault_name(s->faults[i].kind),
				 s->faults[i].node);
	}
}

static const char *apply_name(const struct ui *u)
{
	switch (u->dialog.kind) {
	case DIALOG_FAIL:
		return "Mark failed";
	case DIALOG_RECOVER:
		return "Recover";
	case DIALOG_INJECT:
		return "Inject";
	case DIALOG_UNDO:
		return "Undo";
	case DIALOG_BRANCH:
		return "What if";
	case DIALOG_FINISH:
		return "Finish";
	case DIALOG_QUIT:
		return u->authority.owner ? "Stop the run" : "Leave";
	default:
		return "Apply";
	}
}

static void draw_fields(struct screen *out, struct rect at, const struct state *s,
			const struct ui *u)
{
	const struct dialog *d = &u->dialog;
	int y = at.y;

	for (uint32_t i = 0; i < d->n_fields; i++, y++) {
		unsigned mark = d->focus == i ? STYLE_REVERSE : 0;
		char value[48];
		int x;

		show_value(&d->fields[i], d->kind, s, value);
		x = screen_print(out, at.x, y, at.w, STYLE_TEXT, "%-15s ", d->fields[i].label);
		screen_print(out, at.x + x, y, at.w - x, STYLE_STRONG | mark, "%c < %s >",
			     mark ? '>' : ' ', value);
	}
	if (d->needs_number)
		screen_print(out, at.x, y, at.w,
			     STYLE_WARNING | (d->focus == d->n_fields ? STYLE_REVERSE : 0),
			     "type the node's number to confirm: %s_", d->typed);
}

static void draw_buttons(struct screen *out, struct rect at, const struct ui *u)
{
	const struct dialog *d = &u->dialog;
	uint32_t cancel = d->n_fields + (d->needs_number ? 1 : 0);
	const char *name = d->kind == DIALOG_QUIT ? "Stay" : "Cancel";
	int x = at.x + 2;

	x += screen_print(out, x, at.y, at.x + at.w - x,
			  d->focus == cancel ? STYLE_TEXT | STYLE_REVERSE : STYLE_TEXT,
			  "%c[%s]", d->focus == cancel ? '>' : ' ', name) +
	     2;
	x += screen_print(out, x, at.y, at.x + at.w - x,
			  (d->forbidden ? STYLE_FAINT : STYLE_TEXT) |
				  (d->focus == cancel + 1 ? STYLE_REVERSE : 0),
			  "%c[%s]", d->focus == cancel + 1 ? '>' : ' ', apply_name(u)) +
	     2;
	if (d->kind == DIALOG_SKIP)
		screen_print(out, x, at.y, at.x + at.w - x,
			     d->focus == cancel + 2 ? STYLE_TEXT | STYLE_REVERSE : STYLE_TEXT,
			     "%c[Draw as what-if]", d->focus == cancel + 2 ? '>' : ' ');
}

/* Returns the text about keys for the lower border of the dialog. */
static const char *hint_of(const struct dialog *d, bool list)
{
	return list ? " Up Down select  Enter takes  Esc closes "
	       : d->kind == DIALOG_SKIP || d->kind == DIALOG_WIRE || d->kind == DIALOG_SUM_WIRE ||
			       d->kind == DIALOG_FINISH
		       ? " Left Right change  Tab to the buttons  Esc closes "
	       : d->kind == DIALOG_BRANCH ? " Left Right change  Tab next  Enter plans  Esc closes "
	       : d->n_fields > 0          ? " Tab next  Left Right change  Esc closes "
					  : " Tab moves  Enter presses  Esc closes ";
}

void overlay_dialog(struct screen *out, const struct state *s, const struct ui *u)
{
	const struct dialog *d = &u->dialog;
	bool list = d->kind == DIALOG_FAULT || d->kind == DIALOG_HEAL;
	struct lines l = { .n = 0 };
	struct rect box, in;
	char title[80];
	int fields = (int)d->n_fields + (d->needs_number ? 1 : 0);

	if (list)
		fill_list(&l, s, u);
	else
		fill_lines(&l, s, u);
	box.w = screen_width(out) < WIDE ? screen_width(out) : WIDE;
	box.h = l.n + fields + (list ? 2 : 4);
	if (box.h > screen_height(out))
		box.h = screen_height(out);
	box.x = (screen_width(out) - box.w) / 2;
	box.y = (screen_height(out) - box.h) / 2;
	screen_box(out, box, title_of(s, u, title));
	in = (struct rect){ box.x + 2, box.y + 1, box.w - 4, box.h - 2 };
	draw_fields(out, in, s, u);
	for (int i = 0; i < l.n && fields + i < in.h; i++)
		screen_text(out, in.x, in.y + fields + i, in.w, l.style[i], l.text[i]);
	if (!list)
		draw_buttons(out, (struct rect){ in.x, box.y + box.h - 2, in.w, 1 }, u);
	screen_text(out, in.x, box.y + box.h - 1, in.w, STYLE_FAINT, hint_of(d, list));
}
