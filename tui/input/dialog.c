/* Dialogs. Every action that changes the run for long has a dialog.
 *
 * A dialog shows the effect of the action, a preview that the controller computes. Opening a dialog
 * fills in its fields, keys move the focus or change a value, and Apply sends the command. The
 * focus starts on Cancel, so that a hasty Enter has no effect. If an action cannot be undone, the
 * operator must type the node's number.
 */
#include "tui/input/ui.h"

#include "tui/input/branch.h"
#include "tui/run/notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The focus moves over the fields, then the line for the typed number if the dialog has one, then
 * Cancel, then Apply. Returns the focus of the line for the typed number; UINT32_MAX: the dialog
 * has no such line. */
static uint32_t focus_typed(const struct dialog *d)
{
	return d->needs_number ? d->n_fields : UINT32_MAX;
}

static uint32_t focus_cancel(const struct dialog *d)
{
	return d->n_fields + (d->needs_number ? 1 : 0);
}

int64_t dialog_ratio(const struct dialog *d)
{
	int64_t skip = d->fields[0].value, share = d->fields[1].value;

	return skip_share_pack(skip > 0 && share < 100 ? (uint32_t)share : 0, (uint32_t)skip);
}

static void add_field(struct dialog *d, const char *label, enum field_unit unit, int64_t value,
		      int64_t least, int64_t most, int64_t step)
{
	struct dialog_field *f = &d->fields[d->n_fields++];

	memset(f, 0, sizeof(*f));
	snprintf(f->label, sizeof(f->label), "%s", label);
	f->unit = unit;
	f->value = value;
	f->least = least;
	f->most = most;
	f->step = step;
}

enum tensor_format dialog_format(enum dialog_kind kind, int64_t index)
{
	static const enum tensor_format formats[2][DIALOG_FORMATS] = {
		{ FORMAT_FP32, FORMAT_BF16, FORMAT_Q8, FORMAT_Q6 },
		{ FORMAT_FP32, FORMAT_Q8, FORMAT_Q6, FORMAT_Q4 }
	};

	return formats[kind == DIALOG_SUM_WIRE][index];
}

enum tensor_format dialog_format_now(const struct state *s, enum dialog_kind kind)
{
	return (enum tensor_format)(kind == DIALOG_WIRE ? s->status.wire : s->status.sum_wire);
}

/* ---- previews ---- */

/* Returns the command that Apply sends. The preview is requested with the same command. */
static struct msg_command command_of(const struct ui *u)
{
	const struct dialog *d = &u->dialog;
	struct msg_command c = { .node = -1, .peer = -1 };

	switch (d->kind) {
	case DIALOG_SKIP:
		c.verb = COMMAND_SKIP;
		c.value = dialog_ratio(d);
		break;
	case DIALOG_WIRE:
	case DIALOG_SUM_WIRE:
		c.verb = d->kind == DIALOG_WIRE ? COMMAND_WIRE : COMMAND_SUM_WIRE;
		c.value = dialog_format(d->kind, d->fields[0].value);
		break;
	case DIALOG_FINISH:
		c.verb = COMMAND_FINISH;
		c.value = d->fields[0].value;
		break;
	case DIALOG_FAIL:
		c.verb = COMMAND_FAIL;
		c.node = d->node;
		break;
	case DIALOG_RECOVER:
		c.verb = COMMAND_RECOVER;
		c.node = d->node;
		break;
	case DIALOG_INJECT:
		c.verb = COMMAND_INJECT;
		c.fault = (uint8_t)d->fault;
		c.factor = 1;
		for (uint32_t i = 0; i < d->n_fields; i++) {
			const struct dialog_field *f = &d->fields[i];

			if (f->unit == FIELD_NODE && i == 0)
				c.node = (int32_t)f->value;
			else if (f->unit == FIELD_NODE)
				c.peer = (int32_t)f->value;
			else if (f->unit == FIELD_TIMES)
				c.factor = (float)f->value;
			else if (f->unit == FIELD_PERCENT)
				c.factor = (float)f->value / 100;
			else if (f->unit == FIELD_SECONDS)
				c.ttl_ms = (uint32_t)f->value * 1000;
		}
		break;
	case DIALOG_CUT:
		c.verb = COMMAND_CUT;
		snprintf(c.text, sizeof(c.text), "%s", d->layers);
		break;
	default:
		c.verb = COMMAND_UNDO;
		c.value = (int64_t)d->undo;
	}
	return c;
}

static void ask_preview(struct ui *u, const struct state *s)
{
	struct msg_command c = command_of(u);

	snprintf(c.text, sizeof(c.text), "preview%s%s", *u->dialog.layers ? " " : "",
		 u->dialog.layers);
	u->dialog.has_preview = false;
	u->dialog.asked_us = u->clock.local_us;
	u->dialog.preview_id = ui_send(u, s, c);
}

void dialog_take_preview(struct dialog *d, const struct msg_see_preview *p)
{
	if (d->kind == DIALOG_NONE || p->command != d->preview_id)
		return;
	d->preview = *p;
	d->has_preview = true;
}

/* ---- opening ---- */

bool dialog_stage_has_others(const struct state *s, uint16_t node)
{
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (i != node && s->nodes[i].known &&
		    s->nodes[i].see.stage == s->nodes[node].see.stage &&
		    (s->nodes[i].see.state == NODE_LIVE ||
		     s->nodes[i].see.state == NODE_SUSPECT))
			return true;
	return false;
}

static void open_skip(struct ui *u, const struct state *s)
{
	struct dialog *d = &u->dialog;

	if (s->run.n_stages < 2) {
		d->kind = DIALOG_NONE;
		ui_say(u, STYLE_WARNING, "there is nothing to skip yet");
		return;
	}
	add_field(d, "stages skipped", FIELD_STAGES, skip_share_stages(state_skip_ratio(s)), 0,
		  state_most_skipped(s), 1);
	add_field(d, "in microbatches", FIELD_PERCENT,
		  s->status.skip_share > 0 ? s->status.skip_share : 100, 1, 100, 5);
}

static void open_format(struct ui *u, const struct state *s)
{
	struct dialog *d = &u->dialog;
	int64_t now = 0;

	while (now < DIALOG_FORMATS - 1 &&
	       dialog_format(d->kind, now) != dialog_format_now(s, d->kind))
		now++;
	add_field(d, d->kind == DIALOG_WIRE ? "activations" : "sums", FIELD_FORMAT, now, 0,
		  DIALOG_FORMATS - 1, 1);
}

/* Opens DIALOG_FINISH. Proposes a number of further iterations during which the learning rate
 * falls: a quarter of the iterations committed so far. If the run ends after these further
 * iterations, they are a fifth of all its iterations. */
static void open_finish(struct ui *u, const struct state *s)
{
	int64_t n = (int64_t)(s->status.committed / 4);

	if (n > DIALOG_FINISH_MOST)
		n = DIALOG_FINISH_MOST;
	add_field(&u->dialog, "iterations", FIELD_NUMBER, n > 1 ? n : 1, 1, DIALOG_FINISH_MOST,
		  n > 20 ? n / 10 : 1);
	ask_preview(u, s);
}

static void open_branch(struct ui *u, const struct state *s)
{
	struct dialog *d = &u->dialog;

	if (!s->plan.known || s->run.n_stages < 2) {
		d->kind = DIALOG_NONE;
		ui_say(u, STYLE_WARNING, "there is no plan yet to change");
		return;
	}
	add_field(d, "stages skipped", FIELD_STAGES,
		  s->plan.see.n_stages - s->plan.see.path_length, 0, state_most_skipped(s), 1);
	add_field(d, "excluded node", FIELD_NODE, -1, -1, s->n_nodes - 1, 1);
}

static void open_fail(struct ui *u, const struct state *s)
{
	struct dialog *d = &u->dialog;
	const struct msg_see_node *n = &s->nodes[d->node].see;

	if (n->state == NODE_FAILED || n->state == NODE_DEAD) {
		d->kind = DIALOG_NONE;
		ui_say(u, STYLE_WARNING, "n%02u is %s already", (unsigned)d->node,
		       node_state_shown(n->state));
	} else if (!dialog_stage_has_others(s, d->node)) {
		d->forbidden = true;
		snprintf(d->why, sizeof(d->why),
			 "n%02u is the last replica of S%u: marking it failed would stop the run",
			 (unsigned)d->node, (unsigned)n->stage);
	} else {
		ask_preview(u, s);
	}
}

static void open_recover(struct ui *u, const struct state *s)
{
	const struct msg_see_node *n = &s->nodes[u->dialog.node].see;

	if (n->state == NODE_LIVE) {
		u->dialog.kind = DIALOG_NONE;
		ui_say(u, STYLE_WARNING, "n%02u is live: there is nothing to recover",
		       u->dialog.node);
	}
}

static void open_inject(struct dialog *d, const struct state *s)
{
	const struct fault_description *fault = fault_describe(d->fault);
	int64_t last = s->n_nodes > 0 ? s->n_nodes - 1 : 0;

	add_field(d, "node", FIELD_NODE, d->node, 0, last, 1);
	if (fault->target != FAULT_OF_NODE)
		add_field(d, "other end", FIELD_NODE, -1, -1, last, 1);
	if (fault->factor == FACTOR_TIMES)
		add_field(d, "slower", FIELD_TIMES, 4, 2, 100, 1);
	if (fault->factor == FACTOR_PROBABILITY)
		add_field(d, "lost", FIELD_PERCENT, 5, 1, 99, 1);
	if (!fault->for_good)
		add_field(d, "heals after", FIELD_SECONDS, 60, 5, 3600, 5);
	d->needs_number = fault->confirmed;
}

/* Opens the dialog that undoes the selected journal entry. Without a selection, the command has
 * no id, and the controller undoes the newest command that is not undone yet. */
static void open_undo(struct ui *u, const struct state *s)
{
	const struct msg_see_note *n =
		u->display.view == VIEW_JOURNAL ? notes_find(s, u->selection.note) : NULL;

	if (n && (n->kind != NOTE_COMMAND || n->command == 0)) {
		u->dialog.kind = DIALOG_NONE;
		ui_say(u, STYLE_WARNING, "this entry is not a command that can be undone");
		return;
	}
	u->dialog.undo = n ? n->command : 0;
	snprintf(u->dialog.undo_text, sizeof(u->dialog.undo_text), "%.95s",
		 n ? n->text : "the last command");
	ask_preview(u, s);
}

void dialog_open(struct ui *u, const struct state *s, enum dialog_kind kind)
{
	enum fault_kind fault = u->dialog.fault;
	struct dialog *d = &u->dialog;

	memset(d, 0, sizeof(*d));
	if (ui_watch_reason(u) && kind != DIALOG_QUIT && kind != DIALOG_BRANCH) {
		ui_say(u, STYLE_WARNING, "%s", ui_watch_reason(u));
		return;
	}
	d->kind = kind;
	d->fault = fault;
	d->node = u->selection.node;
	if (kind == DIALOG_SKIP)
		open_skip(u, s);
	else if (kind == DIALOG_WIRE || kind == DIALOG_SUM_WIRE)
		open_format(u, s);
	else if (kind == DIALOG_FINISH)
		open_finish(u, s);
	else if (kind == DIALOG_FAIL)
		open_fail(u, s);
	else if (kind == DIALOG_RECOVER)
		open_recover(u, s);
	else if (kind == DIALOG_INJECT)
		open_inject(d, s);
	else if (kind == DIALOG_UNDO)
		open_undo(u, s);
	else if (kind == DIALOG_BRANCH)
		open_branch(u, s);
	if (kind == DIALOG_HEAL && s->n_faults == 0) {
		d->kind = DIALOG_NONE;
		ui_say(u, STYLE_GOOD, "no injected failure is active");
	}
	/* A what-if changes nothing in the run, so its dialog may start on the first field. */
	d->focus = kind == DIALOG_BRANCH ? 0 : focus_cancel(d);
}

void dialog_open_finish(struct ui *u, const struct state *s, int64_t iterations)
{
	dialog_open(u, s, DIALOG_FINISH);
	if (iterations == 0 || u->dialog.kind != DIALOG_FINISH ||
	    u->dialog.fields[0].value == iterations)
		return;
	u->dialog.fields[0].value = iterations;
	ask_preview(u, s);
}

void dialog_open_cut(struct ui *u, const struct state *s, const char *layers)
{
	dialog_open(u, s, DIALOG_CUT);
	if (u->dialog.kind != DIALOG_CUT)
		return;
	snprintf(u->dialog.layers, sizeof(u->dialog.layers), "%s", layers);
	ask_preview(u, s);
}

/* ---- keys ---- */

static void close_dialog(struct dialog *dialog)
{
	dialog->kind = DIALOG_NONE;
}

static bool typed_right(const struct dialog *d)
{
	char *end;
	long v = strtol(d->typed, &end, 10);

	return *d->typed && !*end &&
	       v == (d->kind == DIALOG_INJECT ? (long)d->fields[0].value : d->node);
}

static void apply_dialog(struct ui *u, const struct state *s)
{
	struct dialog *d = &u->dialog;

	if (d->forbidden)
		return;
	if (d->needs_number && !typed_right(d)) {
		d->focus = focus_typed(d);
		ui_say(u, STYLE_WARNING, "type the node's number to confirm");
		return;
	}
	if (d->kind == DIALOG_QUIT) {
		if (u->authority.owner && u->connection.state == UI_LIVE)
			ui_send(u, s,
				(struct msg_command){
					.verb = COMMAND_STOP, .node = -1, .peer = -1 });
		u->requests.quit = true;
	} else if (d->kind == DIALOG_BRANCH) {
		branch_ask(u, s, (uint32_t)d->fields[0].value, (int32_t)d->fields[1].value);
	} else {
		ui_send(u, s, command_of(u));
	}
	close_dialog(&u->dialog);
}

/* Returns true if a change of a field's value requests a new preview. */
static bool is_stepper(const struct dialog *d)
{
	return d->kind == DIALOG_SKIP || d->kind == DIALOG_WIRE || d->kind == DIALOG_SUM_WIRE ||
	       d->kind == DIALOG_FINISH;
}

static void change_field(struct ui *u, const struct state *s, uint32_t field, int64_t by)
{
	struct dialog_field *f = &u->dialog.fields[field];
	int64_t v = f->value + by * f->step;

	v = v < f->least ? f->least : v > f->most ? f->most : v;
	if (v == f->value)
		return;
	f->value = v;
	if (is_stepper(&u->dialog))
		ask_preview(u, s);
}

/* Handles a key in a dialog with a list: arrows select a line, Enter chooses it. */
static void list_key(struct ui *u, const struct state *s, uint32_t key)
{
	struct dialog *d = &u->dialog;
	uint32_t n = d->kind == DIALOG_FAULT ? FAULT_LAST : s->n_faults;

	if (key == PRESS_ARROW_DOWN || key == 'j' || key == PRESS_TAB)
		d->choice = n ? (d->choice + 1) % n : 0;
	else if (key == PRESS_ARROW_UP || key == 'k' || key == PRESS_BACK_TAB)
		d->choice = n ? (d->choice + n - 1) % n : 0;
	else if (key == PRESS_ESCAPE || key == 'q')
		close_dialog(&u->dialog);
	else if (key == PRESS_ENTER && d->kind == DIALOG_FAULT) {
		d->fault = (enum fault_kind)(FAULT_NONE + 1 + d->choice);
		dialog_open(u, s, DIALOG_INJECT);
	} else if (key == PRESS_ENTER && d->choice < s->n_faults) {
		ui_send(u, s,
			(struct msg_command){ .verb = COMMAND_HEAL,
					      .node = -1,
					      .peer = -1,
					      .value = s->faults[d->choice].fault });
		close_dialog(&u->dialog);
	}
}

static void type_digit(struct ui *u, const struct state *s, uint32_t key)
{
	struct dialog *d = &u->dialog;
	size_t n = strlen(d->typed);
	struct dialog_field *f;
	int64_t v;

	if (d->needs_number && d->focus >= d->n_fields) {
		if (n + 1 < sizeof(d->typed)) {
			d->typed[n] = (char)key;
			d->typed[n + 1] = '\0';
		}
		d->focus = focus_typed(d);
		return;
	}
	if (d->n_fields == 0 || d->fields[0].unit == FIELD_FORMAT)
		return;
	f = &d->fields[d->focus < d->n_fields ? d->focus : 0];
	v = (f->value < 0 ? 0 : f->value) * 10 + (key - '0');
	if (v > f->most)
		v = key - '0';
	if (v >= f->least && v <= f->most && v != f->value) {
		f->value = v;
		if (is_stepper(d))
			ask_preview(u, s);
	}
}

static void move_focus(struct dialog *d, int by)
{
	uint32_t n = focus_cancel(d) + (d->kind == DIALOG_SKIP ? 3 : 2);

	d->focus = (d->focus + n + (uint32_t)by) % n;
}

void dialog_key(struct ui *u, const struct state *s, uint32_t key)
{
	struct dialog *d = &u->dialog;
	size_t n = strlen(d->typed);
	bool buttons = d->focus >= focus_cancel(d), stepper = is_stepper(d);

	if (d->kind == DIALOG_FAULT || d->kind == DIALOG_HEAL)
		list_key(u, s, key);
	else if (key == PRESS_ESCAPE)
		close_dialog(&u->dialog);
	else if (key == PRESS_ENTER &&
		 (d->focus == focus_cancel(d) + 1 || (d->kind == DIALOG_BRANCH && !buttons)))
		apply_dialog(u, s);
	else if (key == PRESS_ENTER && d->focus == focus_cancel(d)) {
		close_dialog(&u->dialog);
		ui_say(u, STYLE_TEXT, "cancelled: nothing was changed");
	} else if (key == PRESS_ENTER &&
		   /* The third button of DIALOG_SKIP, "Draw as what-if". */
		   d->focus == focus_cancel(d) + 2) {
		close_dialog(&u->dialog);
		branch_ask(u, s, (uint32_t)dialog_ratio(d), -1);
	} else if (key == PRESS_TAB || (key == PRESS_ENTER && !buttons))
		move_focus(d, 1);
	else if (key == PRESS_BACK_TAB)
		move_focus(d, -1);
	else if (key == PRESS_DELETE_BACK && d->needs_number)
		d->typed[n > 0 ? n - 1 : 0] = '\0';
	else if (stepper && (key == PRESS_ARROW_UP || key == PRESS_ARROW_RIGHT || key == '+' ||
			     key == '='))
		change_field(u, s, d->focus < d->n_fields ? d->focus : 0, 1);
	else if (stepper && (key == PRESS_ARROW_DOWN || key == PRESS_ARROW_LEFT || key == '-'))
		change_field(u, s, d->focus < d->n_fields ? d->focus : 0, -1);
	else if (key == PRESS_ARROW_UP)
		move_focus(d, -1);
	else if (key == PRESS_ARROW_DOWN)
		move_focus(d, 1);
	else if (key == PRESS_ARROW_LEFT || key == PRESS_ARROW_RIGHT) {
		if (buttons)
			d->focus = focus_cancel(d) + (d->focus == focus_cancel(d));
		else if (d->focus < d->n_fields)
			change_field(u, s, d->focus, key == PRESS_ARROW_RIGHT ? 1 : -1);
	} else if ((key == '+' || key == '-') && d->focus < d->n_fields)
		change_field(u, s, d->focus, key == '+' ? 1 : -1);
	else if (key >= '0' && key <= '9')
		type_digit(u, s, key);
}
