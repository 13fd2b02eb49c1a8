/* Input: keys, pasted text, messages and the clock.
 *
 * A key goes to the open dialog, otherwise to the open prompt, otherwise to its action (ui_act.c).
 * The prompt collects text until Enter; the text is then a command (ui_command.c) or the filter.
 * Files call in one direction: ui.c, then ui_command.c, ui_act.c, dialog.c and ui_move.c, then
 * ui_send.c.
 */
#include "tui/input/ui.h"

#include <stdio.h>
#include <string.h>

#include "tui/input/branch.h"
#include "tui/input/command.h"

void ui_init(struct ui *u, enum graph graph)
{
	memset(u, 0, sizeof(*u));
	keymap_default(&u->map);
	u->display.view = VIEW_OVERVIEW;
	u->display.graph = graph;
	u->connection.state = UI_CONNECTING;
}

void ui_fini(struct ui *u)
{
	state_plan_fini(&u->branch.plan);
	other_runs_clear(&u->others);
}

/* Gives each moving microbatch the first unused row of the panel of moving microbatches. The
 * microbatch keeps its row until it is done, so that rows do not jump. */
static void keep_rows(struct ui_display *display, const struct state *s)
{
	uint8_t shown[MSG_MICROBATCHES] = { 0 };
	int k = 0;

	for (int i = 0; i < UI_MOTION_ROWS; i++) {
		const struct state_flight *f =
			display->rows[i] ? state_flight(s, display->rows[i] - 1) : NULL;

		if (!f || !state_flight_moves(f))
			display->rows[i] = 0;
		else
			shown[display->rows[i] - 1] = 1;
	}
	for (uint32_t m = 0; m < s->n_flights; m++) {
		if (shown[m] || !state_flight_moves(&s->flights[m]))
			continue;
		while (k < UI_MOTION_ROWS && display->rows[k])
			k++;
		if (k == UI_MOTION_ROWS)
			return;
		display->rows[k] = m + 1;
	}
}

/* Updates the clocks. Estimates the present time on the controller's clock: the time of its newest
 * status, plus the time since this status arrived, but at most 1 s. If the status is older than 1 s
 * and the connection is down, only 0.25 s are added. While the screen is frozen, the estimate is
 * the time at the cursor. */
void ui_tick(struct ui *u, const struct state *s, int64_t local_us, int64_t wall_us)
{
	int64_t since;

	u->clock.local_us = local_us;
	u->clock.wall_us = wall_us;
	keep_rows(&u->display, s);
	if (u->display.view == VIEW_MAP || u->display.view == VIEW_OVERVIEW)
		map_update(&u->places, s, local_us);
	if (s->status.now_us != u->clock.status_us) {
		u->clock.status_us = s->status.now_us;
		u->clock.status_local_us = local_us;
	}
	since = local_us - u->clock.status_local_us;
	if (u->clock.frozen) {
		u->clock.now_us = u->clock.frozen_us;
		return;
	}
	if (since < 0 || (s->run.replay && s->status.paused)) /* a stopped replay has no clock */
		since = 0;
	if (since > 1000000)
		since = u->connection.state == UI_LIVE ? 1000000 : 250000;
	u->clock.now_us = u->clock.status_us + since;
	if (u->display.view == VIEW_COMPARE && u->connection.state == UI_LIVE)
		ui_ask_candidates(u, s);
}

void ui_set_connection(struct ui *u, enum ui_link link, const char *why)
{
	if (u->connection.state != link)
		u->connection.since_us = u->clock.local_us;
	u->connection.state = link;
	if (link != UI_LIVE)
		u->authority.lease_request = u->authority.has_waiting = false;
	snprintf(u->connection.reason, sizeof(u->connection.reason), "%s", why);
}

void ui_take_message(struct ui *u, const struct state *s, const struct msg *m)
{
	u->connection.last_message_us = u->clock.local_us;
	if (m->type == MSG_SEE_PREVIEW)
		dialog_take_preview(&u->dialog, &m->u.see_preview);
	if (branch_take_answer(u, s, m))
		return;
	if (m->type == MSG_SEE_REPLY)
		ui_take_reply(u, &m->u.see_reply);
	if (m->type == MSG_SEE_SYNCED) {
		snprintf(u->authority.name, sizeof(u->authority.name), "%s", m->u.see_synced.name);
		u->authority.admitted_to_watch = m->u.see_synced.watches;
	}
}

/* ---- typed text ---- */

static void complete_word(struct ui_prompt *prompt)
{
	size_t found[32], n = command_match(prompt->text, found, 32);

	if (n > 0 && !strchr(prompt->text, ' '))
		snprintf(prompt->text, sizeof(prompt->text), "%s ",
			 command_at(found[prompt->choice < n ? prompt->choice : n - 1])->name);
}

static void enter_prompt(struct ui *u, const struct state *s)
{
	enum prompt was = u->prompt.kind;
	char text[sizeof(u->prompt.text)];

	if (was == PROMPT_COMMAND && *u->prompt.text && !strchr(u->prompt.text, ' '))
		complete_word(&u->prompt);
	snprintf(text, sizeof(text), "%s", u->prompt.text);
	u->prompt.kind = PROMPT_NONE;
	if (was == PROMPT_COMMAND) {
		ui_command(u, s, text);
		return;
	}
	snprintf(u->selection.filter, sizeof(u->selection.filter), "%.*s",
		 (int)sizeof(u->selection.filter) - 1, text);
	if (*u->selection.filter)
		ui_reselect(u, s);
}

static void type_glyph(struct ui_prompt *prompt, uint32_t key)
{
	size_t n = strlen(prompt->text);
	char glyph[4];
	int size = utf8_put(glyph, key);

	if (n + (size_t)size + 1 > sizeof(prompt->text))
		return;
	memcpy(prompt->text + n, glyph, (size_t)size);
	prompt->text[n + (size_t)size] = '\0';
	prompt->choice = 0;
}

static void erase_glyph(struct ui_prompt *prompt)
{
	size_t n = strlen(prompt->text);

	if (n == 0) {
		prompt->kind = PROMPT_NONE;
		return;
	}
	while (n > 0 && ((unsigned char)prompt->text[n - 1] & 0xc0) == 0x80)
		n--;
	prompt->text[n > 0 ? n - 1 : 0] = '\0';
}

static void prompt_key(struct ui *u, const struct state *s, uint32_t key)
{
	if (key == PRESS_ESCAPE)
		u->prompt.kind = PROMPT_NONE;
	else if (key == PRESS_ENTER)
		enter_prompt(u, s);
	else if (key == PRESS_DELETE_BACK)
		erase_glyph(&u->prompt);
	else if (key == PRESS_TAB && u->prompt.kind == PROMPT_COMMAND)
		complete_word(&u->prompt);
	else if (key == PRESS_ARROW_DOWN)
		u->prompt.choice++;
	else if (key == PRESS_ARROW_UP)
		u->prompt.choice -= u->prompt.choice > 0;
	else if (key == 'U' - '@')
		u->prompt.text[0] = '\0';
	else if (key >= ' ' && key < PRESS_ARROW_UP)
		type_glyph(&u->prompt, key);
}

void ui_paste(struct ui *u, const char *text)
{
	uint32_t g;

	while (u->prompt.kind != PROMPT_NONE && (g = utf8_next(&text)) != 0)
		if (g >= ' ')
			type_glyph(&u->prompt, g);
}

void ui_key(struct ui *u, const struct state *s, uint32_t key)
{
	enum action a;

	if (u->dialog.kind != DIALOG_NONE) {
		dialog_key(u, s, key);
		return;
	}
	if (u->prompt.kind != PROMPT_NONE) {
		prompt_key(u, s, key);
		return;
	}
	a = keymap_action(&u->map, key);
	if (u->display.help_page) { /* any key closes the help and does nothing else */
		u->display.help_page = a == ACTION_HELP ? u->display.help_page + 1 : 0;
		return;
	}
	ui_act(u, s, a);
}
