#include "tui/input/ui.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/run/branch.h"
#include "tui/input/command.h"

enum { TOAST_US = 6000000, LEASE_S = 600 };

void ui_init(struct ui *u, enum graph graph)
{
	memset(u, 0, sizeof(*u));
	keymap_default(&u->map);
	u->view = VIEW_OVERVIEW;
	u->graph = graph;
	u->link = UI_CONNECTING;
}

void ui_fini(struct ui *u)
{
	state_plan_fini(&u->branch.plan);
}

void ui_say(struct ui *u, enum style style, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(u->toast, sizeof(u->toast), format, args);
	va_end(args);
	u->toast_style = style;
	u->toast_until_us = u->local_us + TOAST_US;
}

/* Whoever moves gets the first free row and keeps it to its end, so that rows do not jump. */
static void keep_lanes(struct ui *u, const struct state *s)
{
	uint8_t shown[MSG_MICROBATCHES] = { 0 };
	int k = 0;

	for (int i = 0; i < UI_LANES; i++) {
		const struct state_flight *f =
			u->lanes[i] ? state_flight(s, u->lanes[i] - 1) : NULL;

		if (!f || !state_flight_moves(f))
			u->lanes[i] = 0;
		else
			shown[u->lanes[i] - 1] = 1;
	}
	for (uint32_t m = 0; m < s->n_flights; m++) {
		if (shown[m] || !state_flight_moves(&s->flights[m]))
			continue;
		while (k < UI_LANES && u->lanes[k])
			k++;
		if (k == UI_LANES)
			return;
		u->lanes[k] = m + 1;
	}
}

/* The controller's clock runs on between its messages; when it is silent for long, or frozen in
 * the display, so is the picture. */
void ui_tick(struct ui *u, const struct state *s, int64_t local_us, int64_t wall_us)
{
	int64_t since;

	u->local_us = local_us;
	u->wall_us = wall_us;
	keep_lanes(u, s);
	if (s->status.now_us != u->status_seen_us) {
		u->status_seen_us = s->status.now_us;
		u->status_local_us = local_us;
	}
	since = local_us - u->status_local_us;
	if (u->frozen) {
		u->now_us = u->still_us;
		return;
	}
	if (since < 0)
		since = 0;
	if (since > 1000000)
		since = u->link == UI_LIVE ? 1000000 : 250000;
	u->now_us = u->status_seen_us + since;
	if (u->view == VIEW_COMPARE && u->link == UI_LIVE)
		ui_ask_candidates(u, s, false);
}

void ui_link_is(struct ui *u, enum ui_link link, const char *why)
{
	if (u->link != link)
		u->link_since_us = u->local_us;
	u->link = link;
	if (link != UI_LIVE)
		u->arming = u->has_waiting = false;
	snprintf(u->link_text, sizeof(u->link_text), "%s", why);
}

bool ui_lease_is_ours(const struct ui *u, const struct state *s)
{
	return *s->status.lease && *u->name && strcmp(s->status.lease, u->name) == 0;
}

const char *ui_only_watches(const struct ui *u)
{
	return u->readonly  ? "this console only watches (--readonly)"
	       : u->watches ? "this console was admitted to watch only"
			    : NULL;
}

static uint64_t queue_command(struct ui *u, struct msg_command c)
{
	if (u->n_outbox == UI_OUTBOX) {
		ui_say(u, STYLE_WARNING, "not sent: too many commands wait for an answer");
		return 0;
	}
	c.id = ++u->last_id;
	u->outbox[u->n_outbox++] = c;
	return c.id;
}

/* The lease may be ours already without our knowing it (a console that was started again), so
 * the controller is asked even where somebody seems to hold it: it says no with a name and a
 * time. */
static void ask_lease(struct ui *u, const struct state *s, struct msg_command then)
{
	struct msg_command arm = {
		.verb = COMMAND_ARM, .node = -1, .peer = -1, .value = LEASE_S
	};

	(void)s;
	u->waiting = then;
	u->has_waiting = true;
	u->arming = queue_command(u, arm);
	ui_say(u, STYLE_WARNING, "taking the operator's lease for 10 minutes, to %s",
	       state_verb_name(then.verb));
}

uint64_t ui_send(struct ui *u, const struct state *s, struct msg_command c)
{
	if (u->link != UI_LIVE) {
		if (!*c.text)
			ui_say(u, STYLE_WARNING, "not sent: %s",
			       u->link == UI_RECORDED ? "this is a recorded run"
						      : "the controller cannot be reached");
		return 0;
	}
	if (u->behind_us > 0 && strncmp(c.text, "branch", 6) != 0) {
		if (!*c.text)
			ui_say(u, STYLE_WARNING,
			       "not sent: the picture is of the past; L goes to now");
		return 0;
	}
	if (strcmp(c.text, "preview") == 0)
		return queue_command(u, c);
	if (ui_only_watches(u) && c.verb != COMMAND_COMPARE && c.verb != COMMAND_SEEK) {
		ui_say(u, STYLE_WARNING, "not sent: %s", ui_only_watches(u));
		return 0;
	}
	if (c.verb == COMMAND_ARM) {
		u->arming = c.value > 0 ? queue_command(u, c) : 0;
		return u->arming ? u->arming : c.value > 0 ? 0 : queue_command(u, c);
	}
	if (c.verb == COMMAND_COMPARE || c.verb == COMMAND_SEEK)
		return queue_command(u, c);
	if (c.verb != COMMAND_ACK && !s->run.replay &&
	    (!ui_lease_is_ours(u, s) || s->status.lease_us < 5000000)) {
		ask_lease(u, s, c);
		return 0;
	}
	ui_say(u, STYLE_TEXT, "%s sent", state_verb_name(c.verb));
	return queue_command(u, c);
}

static void heard_reply(struct ui *u, const struct msg_see_reply *r)
{
	bool arming = u->arming && r->command == u->arming, had = arming && u->has_waiting;

	for (uint32_t k = 0; k < u->n_candidates; k++)
		if (u->candidates[k].id == r->command && r->command)
			return; /* the answer itself is a plan */
	if (arming) {
		u->arming = 0;
		u->has_waiting = false;
	}
	if (r->status != 0) {
		ui_say(u, STYLE_ALERT, "refused: %s",
		       *r->text ? r->text : strerror(-r->status));
	} else if (had) {
		ui_say(u, STYLE_WARNING,
		       "the operator's lease is ours (:arm off gives it back); %s sent",
		       state_verb_name(u->waiting.verb));
		queue_command(u, u->waiting);
	} else if (*r->text) {
		ui_say(u, STYLE_GOOD, "%s", r->text);
	}
}

void ui_heard(struct ui *u, const struct state *s, const struct msg *m)
{
	u->heard_us = u->local_us;
	if (m->type == MSG_SEE_PREVIEW)
		dialog_heard(u, s, &m->u.see_preview);
	if (branch_heard(u, s, m))
		return;
	if (m->type == MSG_SEE_REPLY)
		heard_reply(u, &m->u.see_reply);
	if (m->type == MSG_SEE_SYNCED) {
		snprintf(u->name, sizeof(u->name), "%s", m->u.see_synced.name);
		u->watches = m->u.see_synced.watches;
	}
}

/* ---- typed text ---- */

static void complete_word(struct ui *u)
{
	size_t found[32], n = command_match(u->typed, found, 32);

	if (n > 0 && !strchr(u->typed, ' '))
		snprintf(u->typed, sizeof(u->typed), "%s ",
			 command_at(found[u->palette < n ? u->palette : n - 1])->name);
}

static void enter_prompt(struct ui *u, const struct state *s)
{
	enum prompt was = u->prompt;
	char text[sizeof(u->typed)];

	if (was == PROMPT_COMMAND && *u->typed && !strchr(u->typed, ' '))
		complete_word(u);
	snprintf(text, sizeof(text), "%s", u->typed);
	u->prompt = PROMPT_NONE;
	if (was == PROMPT_COMMAND) {
		ui_command(u, s, text);
		return;
	}
	snprintf(u->filter, sizeof(u->filter), "%.*s", (int)sizeof(u->filter) - 1, text);
	if (*u->filter)
		ui_reselect(u, s);
}

static void type_glyph(struct ui *u, uint32_t key)
{
	size_t n = strlen(u->typed);
	char glyph[4];
	int size = utf8_put(glyph, key);

	if (n + (size_t)size + 1 > sizeof(u->typed))
		return;
	memcpy(u->typed + n, glyph, (size_t)size);
	u->typed[n + (size_t)size] = '\0';
	u->palette = 0;
}

static void erase_glyph(struct ui *u)
{
	size_t n = strlen(u->typed);

	if (n == 0) {
		u->prompt = PROMPT_NONE;
		return;
	}
	while (n > 0 && ((unsigned char)u->typed[n - 1] & 0xc0) == 0x80)
		n--;
	u->typed[n > 0 ? n - 1 : 0] = '\0';
}

static void prompt_key(struct ui *u, const struct state *s, uint32_t key)
{
	if (key == PRESS_ESCAPE)
		u->prompt = PROMPT_NONE;
	else if (key == PRESS_ENTER)
		enter_prompt(u, s);
	else if (key == PRESS_DELETE_BACK)
		erase_glyph(u);
	else if (key == PRESS_TAB && u->prompt == PROMPT_COMMAND)
		complete_word(u);
	else if (key == PRESS_ARROW_DOWN)
		u->palette++;
	else if (key == PRESS_ARROW_UP)
		u->palette -= u->palette > 0;
	else if (key == 'U' - '@')
		u->typed[0] = '\0';
	else if (key >= ' ' && key < PRESS_ARROW_UP)
		type_glyph(u, key);
}

void ui_paste(struct ui *u, const char *text)
{
	uint32_t g;

	while (u->prompt != PROMPT_NONE && (g = utf8_next(&text)) != 0)
		if (g >= ' ')
			type_glyph(u, g);
}

void ui_key(struct ui *u, const struct state *s, uint32_t key)
{
	enum action a;

	if (u->dialog.kind != DIALOG_NONE) {
		dialog_key(u, s, key);
		return;
	}
	if (u->prompt != PROMPT_NONE) {
		prompt_key(u, s, key);
		return;
	}
	a = keymap_action(&u->map, key);
	if (u->help) { /* whatever closes the help does nothing else */
		u->help = a == ACTION_HELP ? u->help + 1 : 0;
		return;
	}
	ui_act(u, s, a);
}
