/* Performs actions, which a key, a click or a typed command starts. An action on the run opens a
 * dialog or sends a command. An action on time moves the cursor in time. All other actions change
 * this console only. */
#include "tui/input/ui.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tui/input/branch.h"
#include "tui/run/notes.h"
#include "tui/input/why.h"

enum { CANDIDATE_US = 3000000 };

/* ---- candidates of the Compare view ---- */

enum { SKIPS_MOST = 15 }; /* largest number of skip ratios that the Compare view compares */

static void add_candidate(struct ui *u, uint32_t skip, const char *text, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void add_candidate(struct ui *u, uint32_t skip, const char *text, const char *format, ...)
{
	struct ui_candidate *one = &u->compare.candidates[u->compare.n++];
	va_list args;

	va_start(args, format);
	vsnprintf(one->name, sizeof(one->name), format, args);
	va_end(args);
	one->skip = skip;
	snprintf(one->text, sizeof(one->text), "%s", text);
}

static void list_formats(struct ui *u, const struct state *s, enum dialog_kind kind)
{
	enum command_verb verb = kind == DIALOG_WIRE ? COMMAND_WIRE : COMMAND_SUM_WIRE;
	char text[32];

	for (int i = 0; i < DIALOG_FORMATS; i++) {
		enum tensor_format f = dialog_format(kind, i);

		if (f == dialog_format_now(s, kind))
			continue;
		snprintf(text, sizeof(text), "%s %s", verb_name(verb), tensor_format_name(f));
		add_candidate(u, 0, text, "%s %s", kind == DIALOG_WIRE ? "wire" : "sums",
			      tensor_format_name(f));
	}
}

static void list_candidates(struct ui *u, const struct state *s)
{
	memset(u->compare.candidates, 0, sizeof(u->compare.candidates));
	u->compare.n = 0;
	for (uint32_t k = 0; k + 1 < s->run.n_stages && k < SKIPS_MOST; k++)
		add_candidate(u, k, "best", "best %u/%u", k, s->run.n_stages);
	add_candidate(u, 0, "dtfm", "dtfm 0/%u", s->run.n_stages);
	u->compare.n_plans = u->compare.n;
	list_formats(u, s, DIALOG_WIRE);
	list_formats(u, s, DIALOG_SUM_WIRE);
	u->compare.epoch = s->plan.see.epoch;
	u->compare.wire = s->status.wire;
	u->compare.sum_wire = s->status.sum_wire;
}

static void ask_candidate(struct ui *u, const struct state *s, struct ui_candidate *one)
{
	struct msg_command c = {
		.verb = COMMAND_COMPARE, .node = -1, .peer = -1, .value = one->skip
	};

	snprintf(c.text, sizeof(c.text), "%s", one->text);
	one->id = ui_send(u, s, c);
	one->asked_us = u->clock.local_us;
	one->asked++;
}

/* Requests one plan at a time, because the controller computes plans in the background.
 * Candidates that never had an answer come first. Without this, the later candidates would never
 * get an answer if the plan in force changes often. An infeasible candidate gets no answer, and
 * is requested twice at most. */
void ui_ask_candidates(struct ui *u, const struct state *s)
{
	struct ui_candidate *next = NULL;
	bool is_next_known = false;

	if (u->compare.epoch != s->plan.see.epoch || u->compare.n == 0 ||
	    u->compare.wire != s->status.wire || u->compare.sum_wire != s->status.sum_wire)
		list_candidates(u, s);
	for (uint32_t k = 0; k < u->compare.n; k++) {
		struct ui_candidate *one = &u->compare.candidates[k];
		const struct state_plan *p = state_candidate(s, one->name);

		if (p && p->see.epoch == s->plan.see.epoch && one->id)
			continue;
		if (one->id && u->clock.local_us - one->asked_us < CANDIDATE_US)
			return;
		if (one->asked == 2 || (next && (!is_next_known || p)))
			continue;
		next = one;
		is_next_known = p != NULL;
	}
	if (next)
		ask_candidate(u, s, next);
}

/* Opens the dialog that would put the selected candidate into force. */
static void apply_candidate(struct ui *u, const struct state *s)
{
	const struct ui_candidate *one = &u->compare.candidates[u->compare.shown];
	char skip[16];

	if (u->compare.shown >= u->compare.n)
		return;
	if (strcmp(one->text, "dtfm") == 0) {
		ui_say(u, STYLE_TEXT, "DT-FM's plan is for comparison only");
		return;
	}
	snprintf(skip, sizeof(skip), "skip %u", one->skip);
	ui_command(u, s, strcmp(one->text, "best") == 0 ? skip : one->text);
}

/* ---- one microbatch ---- */

static void toggle_follow(struct ui *u, const struct state *s)
{
	const struct state_node *n = &s->nodes[u->selection.node];

	if (u->selection.following) {
		u->selection.following = false;
	} else if (n->running && state_newest(n)->kind != TASK_EVALUATE) {
		u->selection.following = true;
		u->selection.microbatch = state_newest(n)->microbatch;
	} else if (n->n_queue > 0) {
		u->selection.following = true;
		u->selection.microbatch = n->queue[0].microbatch;
	} else if (state_newest(n)) {
		u->selection.following = true;
		u->selection.microbatch = state_newest(n)->microbatch;
	} else {
		ui_say(u, STYLE_TEXT, "n%02u has run no microbatch; :follow N follows any",
		       u->selection.node);
	}
}

/* Shows why the followed microbatch waits. If no microbatch is followed, follows the first one that
 * waits at the selected node. */
static void say_why_waits(struct ui *u, const struct state *s)
{
	const struct state_node *n = &s->nodes[u->selection.node];
	const struct state_flight *f;
	char text[160];
	struct why w;

	if (!u->selection.following && n->n_queue > 0) {
		u->selection.following = true;
		u->selection.microbatch = n->queue[0].microbatch;
	}
	f = u->selection.following ? state_flight(s, u->selection.microbatch) : NULL;
	if (!f) {
		ui_say(u, STYLE_TEXT, "no microbatch waits at n%02u; c selects the next collision",
		       u->selection.node);
		return;
	}
	why_make(&w, s, f, u->clock.now_us);
	why_text(&w, text);
	ui_say(u, STYLE_TEXT, "m%02u %s", u->selection.microbatch,
	       w.waits ? text : "does not wait");
}

/* ---- actions without a dialog ---- */

static void act_simple(struct ui *u, const struct state *s, enum command_verb verb,
		       int64_t value)
{
	struct msg_command c = {
		.verb = (uint8_t)verb, .node = -1, .peer = -1, .value = value
	};

	ui_send(u, s, c);
}

/* Acknowledges the alert that is selected in the journal, or else all alerts. */
static void acknowledge_alerts(struct ui *u, const struct state *s)
{
	const struct msg_see_note *n =
		u->display.view == VIEW_JOURNAL ? notes_find(s, u->selection.note) : NULL;

	act_simple(u, s, COMMAND_ACK, n && note_stands(n->kind) ? (int64_t)n->id : 0);
}

static void ask_quit(struct ui *u, const struct state *s)
{
	if (s->n_faults > 0 || (u->authority.owner && s->status.phase != PHASE_FINISHED))
		dialog_open(u, s, DIALOG_QUIT);
	else
		u->requests.quit = true;
}

static void step_back(struct ui *u)
{
	if (*u->selection.filter)
		u->selection.filter[0] = '\0';
	else if (u->selection.following)
		u->selection.following = false;
	else if (u->branch.open)
		branch_leave(u);
	else
		u->display.view = VIEW_OVERVIEW;
}

static void open_prompt(struct ui *u, enum prompt prompt)
{
	u->prompt.kind = prompt;
	u->prompt.text[0] = '\0';
	u->prompt.choice = 0;
	if (prompt == PROMPT_FILTER)
		snprintf(u->prompt.text, sizeof(u->prompt.text), "%s", u->selection.filter);
}

/* Performs an action on the run. Opens a dialog if the operator should see the effect first. */
static void act_run(struct ui *u, const struct state *s, enum action a)
{
	switch (a) {
	case ACTION_SKIP:
		dialog_open(u, s, DIALOG_SKIP);
		break;
	case ACTION_FAIL:
		dialog_open(u, s, DIALOG_FAIL);
		break;
	case ACTION_RECOVER:
		dialog_open(u, s, DIALOG_RECOVER);
		break;
	case ACTION_INJECT:
		dialog_open(u, s, DIALOG_FAULT);
		break;
	case ACTION_HEAL:
		dialog_open(u, s, DIALOG_HEAL);
		break;
	case ACTION_HEAL_ALL:
		act_simple(u, s, COMMAND_HEAL_ALL, 0);
		break;
	case ACTION_PAUSE:
		act_simple(u, s, s->status.paused ? COMMAND_RESUME : COMMAND_PAUSE, 0);
		break;
	case ACTION_STEP:
		act_simple(u, s, COMMAND_STEP, 0);
		break;
	case ACTION_UNDO:
		dialog_open(u, s, DIALOG_UNDO);
		break;
	default:
		acknowledge_alerts(u, s);
	}
}

void ui_show(struct ui *u, enum view view)
{
	enum action a = (enum action)(ACTION_VIEW_OVERVIEW + (view - VIEW_OVERVIEW));

	if (view != u->display.view)
		ui_say(u, STYLE_FAINT, "%s", keymap_find(a)->help);
	u->display.view = view;
}

/* Shows more of the selection. In the overview, opens the Nodes view. In the Microbatches view
 * and on the map, follows the selected microbatch in the overview. In the Compare view, opens the
 * dialog that applies the candidate. */
static void look_closer(struct ui *u, const struct state *s)
{
	if (u->display.view == VIEW_COMPARE)
		apply_candidate(u, s);
	else if (u->display.view == VIEW_OVERVIEW)
		ui_show(u, VIEW_NODES);
	else if (u->display.view == VIEW_MICROBATCHES || u->display.view == VIEW_MAP) {
		u->selection.following = true;
		ui_show(u, VIEW_OVERVIEW);
	}
}

/* Moves in the time of a replay. Only the controller has the record, so the console asks the
 * controller to jump. */
static void seek_replay(struct ui *u, const struct state *s, enum action a)
{
	struct msg_command c = { .verb = COMMAND_SEEK, .node = -1, .peer = -1 };
	double scale = s->run.time_scale > 0 ? s->run.time_scale : 1;
	double step = (double)s->plan.see.iteration_s * scale * 1e6 / 20;

	if (!(step > 20000 && step < 60e6))
		step = 100000;
	c.value = u->clock.now_us + (int64_t)(a == ACTION_SCRUB_BACK ? -step : step);
	if (a == ACTION_LIVE) {
		c.value = s->run.last_us;
		/* The console knows no later event, so the replay runs to its next commit. */
	} else if (a == ACTION_EVENT_ON) {
		c.verb = COMMAND_STEP;
	} else if (a == ACTION_EVENT_BACK) {
		c.value = s->run.first_us;
		for (size_t i = 0; i < s->history.n_notes; i++)
			if (s->history.notes[i].kind != NOTE_LOG &&
			    s->history.notes[i].at_us < u->clock.now_us - 50000)
				c.value = s->history.notes[i].at_us;
	}
	ui_send(u, s, c);
}

static void act_time(struct ui *u, const struct state *s, enum action a)
{
	static const enum scrub steps[] = { SCRUB_BACK, SCRUB_ON, SCRUB_EVENT_BACK,
					    SCRUB_EVENT_ON, SCRUB_LIVE };

	if (s->run.replay && !u->clock.frozen && u->connection.state == UI_LIVE)
		seek_replay(u, s, a);
	else
		u->requests.scrub = steps[a - ACTION_SCRUB_BACK];
}

static void next_colouring(struct ui *u)
{
	static const char *const words[COLOURINGS] = {
		"colours tell kinds of tasks apart: forward, backward, loss",
		"colours tell microbatches apart; again: their data nodes",
		"colours tell the data nodes of microbatches apart; again: kinds of tasks"
	};

	u->display.colouring = (enum colouring)((u->display.colouring + 1) % COLOURINGS);
	ui_say(u, STYLE_TEXT, "%s", words[u->display.colouring]);
}

/* Changes the grouping of the map of links (nodes, regions or stages) to the next grouping that
 * gives a different map. */
static void next_link_grouping(struct ui *u, const struct state *s)
{
	static const char *const words[LINK_GROUPINGS] = { "by node", "by region", "by stage" };
	struct link_groups g;
	struct roster r;
	enum link_grouping shown;
	int next = (int)u->display.link_grouping;

	roster_make(&r, s, u->selection.filter);
	link_groups_make(&g, u->display.link_grouping, s, &r);
	shown = g.by;
	for (int i = 0; i < LINK_GROUPINGS && (i == 0 || g.by == shown); i++) {
		next = (next + 1) % LINK_GROUPINGS;
		link_groups_make(&g, (enum link_grouping)next, s, &r);
	}
	u->display.link_grouping = (enum link_grouping)next;
	ui_say(u, STYLE_TEXT, "links are shown %s", words[g.by]);
}

/* ---- actions that change this console only ---- */

/* Zooms in (by = 1) or out (by = -1). The Loss view has its own zoom. */
static void zoom(struct ui *u, int by)
{
	bool is_loss = u->display.view == VIEW_LOSS;
	int least = is_loss ? 0 : -4, most = is_loss ? 12 : 6;
	int at = (is_loss ? u->display.loss_zoom : u->display.zoom) + by;

	if (at < least || at > most)
		return;
	if (is_loss)
		u->display.loss_zoom = at;
	else
		u->display.zoom = at;
}

static void next_loss_axis(struct ui *u)
{
	u->display.loss_cursor = 0;
	u->display.loss_axis = (enum loss_axis)((u->display.loss_axis + 1) % LOSS_AXES);
	ui_say(u, STYLE_TEXT, "the loss is drawn over %s",
	       u->display.loss_axis == LOSS_BY_TOKENS ? "tokens"
	       : u->display.loss_axis == LOSS_BY_TIME ? "time"
						      : "iterations");
}

static void next_link_measure(struct ui *u)
{
	u->display.link_measure =
		(enum link_measure)((u->display.link_measure + 1) % LINK_MEASURES);
	ui_say(u, STYLE_TEXT, "links are compared by %s",
	       u->display.link_measure == LINK_BY_LATENCY     ? "latency"
	       : u->display.link_measure == LINK_BY_BANDWIDTH ? "bandwidth"
							      : "transfer time");
}

/* Changes how the present view is drawn: axis, measure, grouping or colours. */
static void change_display(struct ui *u, const struct state *s, enum action a)
{
	switch (a) {
	case ACTION_ZOOM_IN:
		zoom(u, 1);
		break;
	case ACTION_ZOOM_OUT:
		zoom(u, -1);
		break;
	case ACTION_COLOUR:
		next_colouring(u);
		break;
	case ACTION_AXIS:
		next_loss_axis(u);
		break;
	case ACTION_MEASURE:
		next_link_measure(u);
		break;
	case ACTION_GROUP:
		next_link_grouping(u, s);
		break;
	case ACTION_THEME:
		u->requests.theme = true;
		u->requests.theme_name[0] = '\0';
		break;
	case ACTION_MOUSE:
		u->display.mouse = !u->display.mouse;
		u->requests.mouse = true;
		ui_say(u, STYLE_TEXT,
		       u->display.mouse
			       ? "mouse on: a click selects a node (hold Shift to select text)"
			       : "mouse off: the terminal selects text");
		break;
	default:
		break;
	}
}

static void act_console(struct ui *u, const struct state *s, enum action a)
{
	switch (a) {
	case ACTION_FREEZE:
		if (u->clock.frozen) {
			u->requests.scrub = SCRUB_LIVE;
			break;
		}
		u->clock.frozen = true;
		u->clock.frozen_us = u->clock.now_us;
		ui_say(u, STYLE_TEXT, "the screen is frozen; the training continues");
		break;
	case ACTION_BRANCH:
		if (u->branch.open)
			branch_leave(u);
		else
			dialog_open(u, s, DIALOG_BRANCH);
		break;
	case ACTION_FOLLOW:
		toggle_follow(u, s);
		break;
	case ACTION_WHY:
		say_why_waits(u, s);
		break;
	case ACTION_NEXT_COLLISION:
		ui_next_collision(u, s);
		break;
	case ACTION_FILTER:
		open_prompt(u, PROMPT_FILTER);
		break;
	case ACTION_PALETTE:
		open_prompt(u, PROMPT_COMMAND);
		break;
	case ACTION_HELP:
		u->display.help_page = 1;
		break;
	case ACTION_EXPORT:
		u->requests.export = true;
		u->requests.export_name[0] = '\0';
		break;
	case ACTION_COPY:
		u->requests.copy = true;
		break;
	case ACTION_QUIT:
		ask_quit(u, s);
		break;
	case ACTION_BACK:
		step_back(u);
		break;
	case ACTION_DRILL:
		look_closer(u, s);
		break;
	default:
		change_display(u, s, a);
		break;
	}
}

void ui_act(struct ui *u, const struct state *s, enum action a)
{
	if (a >= ACTION_VIEW_OVERVIEW && a <= ACTION_VIEW_MAP)
		ui_show(u, (enum view)(VIEW_OVERVIEW + (a - ACTION_VIEW_OVERVIEW)));
	else if ((a >= ACTION_NEXT && a <= ACTION_LAST_ROW) || a == ACTION_FIND_NEXT ||
		 a == ACTION_FIND_PREVIOUS)
		ui_move(u, s, a);
	else if (a >= ACTION_SKIP && a <= ACTION_ACKNOWLEDGE)
		act_run(u, s, a);
	else if (a >= ACTION_SCRUB_BACK && a <= ACTION_LIVE)
		act_time(u, s, a);
	else
		act_console(u, s, a);
}
