/* One turn of the console, phase by phase: keys and clicks, messages of a controller or a
 * recording, commands, drawing.
 *
 * Every message is appended to the history, and then applied to the state. To show the past,
 * console_scrub makes a state from the messages up to the cursor, a point in time. To return to the
 * present, it applies the messages after the cursor.
 */
#include "tui/console.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/timestamp.h"
#include "tui/text_mode.h"
#include "tui/views/view.h"

enum { MESSAGES_A_TURN = 256 };

/* Closes the recording. If a write failed, the program says so after it has restored the
 * terminal. */
static void stop_recording(struct console *c, bool failed)
{
	c->record_failed |= fclose(c->record) != 0 || failed;
	c->record = NULL;
}

void console_close(struct console *c)
{
	terminal_close(c->terminal);
	screen_free(c->screen);
	connection_close(c->connection);
	record_close(c->play);
	if (c->record)
		stop_recording(c, false);
	if (c->record_failed)
		fprintf(stderr, "skippipe console: --record %s: the end is missing: a write "
				"failed\n", c->options.record);
	for (uint32_t k = 0; k < OTHER_RUNS; k++)
		run_reader_close(c->readers[k]);
	ui_fini(&c->ui);
	state_free(c->state);
	history_free(c->history);
	memset(c, 0, sizeof(*c));
}

/* ---- messages ---- */

static void print_line(struct console *c, int64_t wall_us, const char *line)
{
	char time[TIMESTAMP_SIZE];

	timestamp_text(wall_us, time);
	printf("%s %s\n", time, line);
	fflush(stdout);
	c->hung_up |= ferror(stdout) != 0;
}

static void say_plain(struct console *c, const struct msg *m)
{
	int64_t unknown_us = c->play ? c->state->run.started_wall_us : clock_wall_us();
	char line[1024];

	if (c->options.plain && text_mode_line(&c->plain, c->state, m, line, sizeof(line)))
		print_line(c, text_mode_wall_us(c->state, m, unknown_us), line);
}

/* Handles a full history: clears it and requests a snapshot, from which a new history begins.
 * While the screen is frozen, drops the message, and the history is cleared when the operator
 * returns to the present. A recording cannot send a snapshot, so its past is lost. */
static void history_is_full(struct console *c, const struct msg *m)
{
	if (c->ui.clock.frozen) {
		c->missed = true;
		return;
	}
	history_clear(c->history);
	c->applied = 0;
	state_apply(c->state, m);
	history_keep(c->history, 0, c->state);
	c->state->stream.needs_snapshot = true;
}

/* Records, keeps and applies an encoded message. at_us: its time of arrival, on the history's
 * clock. */
static void apply_recorded(struct console *c, int64_t at_us, const void *data, size_t size)
{
	struct msg m;

	c->ui.connection.last_message_us = c->now_us;
	if (c->record && record_write(c->record, c->now_us, data, size) != 0) {
		ui_say(&c->ui, STYLE_ALERT, "%s: cannot be written; the recording stops",
		       c->options.record);
		stop_recording(c, true);
	}
	if (msg_decode(&m, data, size) != 0)
		return; /* a message of another version of skippipe is ignored */
	if (history_append(c->history, at_us, data, size) != 0) {
		history_is_full(c, &m);
	} else if (!c->ui.clock.frozen) {
		state_apply(c->state, &m);
		c->applied = history_count(c->history);
		history_keep(c->history, c->applied, c->state);
		say_plain(c, &m);
	}
	ui_take_message(&c->ui, c->state, &m);
	msg_clear(&m);
}

/* ---- the cursor ---- */

static void to_live(struct console *c)
{
	int64_t status_at;

	history_seek(c->history, INT64_MAX, &c->state, &c->applied, &status_at);
	if (c->missed)
		c->state->stream.needs_snapshot = true;
	c->missed = false;
	c->ui.clock.frozen = false;
	c->ui.clock.behind_us = 0;
}

/* Returns the step of the cursor in time: a twentieth of the planned iteration. */
static int64_t scrub_step_us(const struct console *c)
{
	double scale = c->state->run.time_scale > 0 ? c->state->run.time_scale : 1;
	double us = (double)c->state->plan.see.iteration_s * scale * 1e6 / 20;

	return us > 20000 && us < 60e6 ? (int64_t)us : 100000;
}

void console_scrub(struct console *c)
{
	int64_t last = history_last_us(c->history), first = history_first_us(c->history),
		status_at, to;

	if (c->ui.requests.scrub == SCRUB_NONE)
		return;
	if (c->ui.requests.scrub == SCRUB_LIVE || history_count(c->history) == 0) {
		to_live(c);
		return;
	}
	/* If the screen shows the present or was only frozen, the cursor starts at the newest
	 * message shown. */
	if (!c->ui.clock.frozen || c->ui.clock.behind_us == 0)
		c->cursor_us = c->applied > 0 ? history_at(c->history, c->applied - 1) : last;
	to = c->cursor_us + (c->ui.requests.scrub == SCRUB_BACK ? -1 : 1) * scrub_step_us(c);
	if (c->ui.requests.scrub == SCRUB_EVENT_BACK || c->ui.requests.scrub == SCRUB_EVENT_ON) {
		to = history_nearest_event(c->history, c->cursor_us,
				   c->ui.requests.scrub == SCRUB_EVENT_ON ? 1 : -1);
		if (to < 0) {
			ui_say(&c->ui, STYLE_TEXT, "no event in this direction");
			return;
		}
	}
	if (to >= last) {
		to_live(c);
		return;
	}
	to = to < first ? first : to;
	history_seek(c->history, to, &c->state, &c->applied, &status_at);
	c->cursor_us = to;
	c->ui.clock.frozen = true;
	c->ui.clock.frozen_us = c->state->status.now_us + (to - status_at);
	c->ui.clock.behind_us = last - to;
	c->ui.clock.span_us = last - first;
	c->ui.message.text[0] = '\0';
}

/* ---- where messages come from ---- */

static void play_recorded(struct console *c)
{
	const void *data;
	size_t size;
	int64_t at, upto;

	if (record_next_at(c->play, &at) != 0)
		return;
	if (c->play_local_us == 0) {
		c->play_local_us = c->now_us;
		c->play_base_us = at;
	}
	upto = c->play_base_us +
	       (int64_t)((double)(c->now_us - c->play_local_us) * c->options.speed);
	for (int i = 0; i < 4096 && record_next_at(c->play, &at) == 0 && at <= upto; i++)
		if (record_next(c->play, &at, &data, &size) == 0)
			apply_recorded(c, at, data, size);
}

static void take_connection_event(struct console *c, const struct connection_notice *notice)
{
	char line[1024];

	if (notice->event == CONNECTION_UP) {
		c->refused = false;
		ui_set_connection(&c->ui, UI_LIVE, "");
	} else if (notice->event == CONNECTION_DOWN) {
		ui_set_connection(
			&c->ui, c->refused ? UI_REFUSED : UI_LOST,
			c->refused
				? notice->why
				: "the controller is silent; trying to reconnect");
	} else if (notice->event == CONNECTION_UNREACHED) {
		ui_set_connection(&c->ui, UI_LOST, notice->why);
	} else if (c->ui.connection.state != UI_LIVE) {
		c->refused = true;
		ui_set_connection(&c->ui, UI_REFUSED, notice->why);
	}
	if (c->options.plain) {
		snprintf(line, sizeof(line), "connection: %s",
			 notice->event == CONNECTION_UP ? "up" : notice->why);
		print_line(c, clock_wall_us(), line);
	}
}

void console_read_messages(struct console *c)
{
	struct connection_notice notice;

	if (c->play) {
		play_recorded(c);
		return;
	}
	for (int i = 0; i < MESSAGES_A_TURN; i++) {
		connection_next(c->connection, c->now_us, &notice);
		if (notice.event == CONNECTION_NOTHING)
			break;
		if (notice.event == CONNECTION_MESSAGE)
			apply_recorded(c, c->now_us, notice.data, notice.size);
		else
			take_connection_event(c, &notice);
	}
	if (c->state->stream.needs_snapshot && !c->ui.clock.frozen)
		connection_attach(c->connection, c->now_us);
}

void console_send_commands(struct console *c)
{
	for (uint32_t i = 0; i < c->ui.outbox.n; i++)
		if (!c->connection ||
		    connection_command(c->connection, &c->ui.outbox.commands[i], c->now_us) != 0)
			ui_say(&c->ui, STYLE_ALERT,
			       "not sent: the controller cannot be reached");
	c->ui.outbox.n = 0;
}

/* ---- keys ---- */

static void click_cell(struct console *c, int x, int y)
{
	int node =
		view_hit(screen_width(c->screen), screen_height(c->screen), c->state, &c->ui, x, y);

	if (node >= 0)
		ui_select(&c->ui, c->state, (uint16_t)node);
}

/* Warns that the end of a terminal's report is missing, so that the console may take the next keys
 * for a part of the report. Names the key to press. */
static void say_unfinished(struct console *c, uint32_t key)
{
	char name[16];

	keymap_show(key, name);
	if (key == 0)
		ui_say(&c->ui, STYLE_WARNING,
		       "the terminal sent a part of a report: Esc ends the wait for its rest");
	else if (keymap_action(&c->ui.map, key) != ACTION_NONE)
		ui_say(&c->ui, STYLE_WARNING,
		       "%s right after Esc can belong to a report of the terminal: press %s again",
		       name, name);
}

static void take_input(struct console *c, const struct terminal_event *e)
{
	if (e->input == INPUT_PASTE)
		ui_paste(&c->ui, e->paste);
	else if (e->input == INPUT_CLICK)
		click_cell(c, e->x, e->y);
	else if (e->input == INPUT_UNFINISHED)
		say_unfinished(c, e->key);
	else if (e->key == 'L' - '@')
		terminal_redraw(c->terminal);
	/* Ctrl-C raises no signal if the terminal sends it as an escape sequence. */
	else if (e->key == 'C' - '@')
		c->ui.requests.quit = true;
	else
		ui_key(&c->ui, c->state, e->key);
}

void console_read_keys(struct console *c)
{
	struct terminal_event e;
	int w, h;

	if (!c->terminal)
		return;
	for (int i = 0; i < 256; i++) {
		terminal_next(c->terminal, c->now_us, &e);
		if (e.input == INPUT_NONE)
			break;
		take_input(c, &e);
		c->drawn_us = 0; /* 0: console_draw draws the effect of the key at once */
	}
	terminal_size(c->terminal, &w, &h);
	if (w != screen_width(c->screen) || h != screen_height(c->screen)) {
		screen_resize(c->screen, w, h);
		c->drawn_us = 0;
	}
}

/* ---- drawing ---- */

static int64_t frame_us(const struct console *c)
{
	const char *ssh = getenv("SSH_CONNECTION");
	int fps = c->options.fps ? c->options.fps : ssh && *ssh ? 4 : 10;

	return 1000000 / fps;
}

void console_draw(struct console *c)
{
	if (!c->screen || c->now_us - c->drawn_us < frame_us(c))
		return;
	ui_tick(&c->ui, c->state, c->now_us, clock_wall_us());
	view_draw(c->screen, c->state, &c->ui);
	terminal_show(c->terminal, c->screen);
	c->drawn_us = c->now_us;
}

int64_t console_deadline_us(const struct console *c)
{
	int64_t next = c->screen ? c->drawn_us + frame_us(c) : c->now_us + 1000000, at;

	if (c->terminal && terminal_deadline_us(c->terminal) < next)
		next = terminal_deadline_us(c->terminal);
	if (c->connection && connection_deadline_us(c->connection) < next)
		next = connection_deadline_us(c->connection);
	if (c->play && record_next_at(c->play, &at) == 0 && c->now_us + 20000 < next)
		next = c->now_us + 20000;
	for (uint32_t k = 0; k < OTHER_RUNS; k++)
		if (c->readers[k])
			next = c->now_us;
	return next;
}
