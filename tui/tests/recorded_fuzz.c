/* Fuzzes recordings: takes arbitrary bytes as a recording and uses it as the console does. Makes
 * the state at the end and at an earlier time. At both times draws a view and a dialog. Prints the
 * messages as lines. */
#include <stdint.h>
#include <stdlib.h>

#include "tui/run/history.h"
#include "tui/text_mode.h"
#include "tui/record.h"
#include "tui/views/view.h"

enum { MOST_MESSAGES = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(const struct state *s, struct ui *u, int w, int h)
{
	struct screen *screen;
	char *text;

	screen = screen_new(w, h, u->display.graph == GRAPH_ASCII);
	view_draw(screen, s, u);
	text = screen_dump(screen);
	free(text);
	screen_free(screen);
}

/* Draws a view, with a dialog or without one. `which`, a number made from the input's length,
 * chooses the view and the dialog. */
static void draw_some(const struct state *s, struct ui *u, size_t which)
{
	ui_show(u, (enum view)(VIEW_OVERVIEW + which % (VIEWS - 1)));
	dialog_open(u, s, (enum dialog_kind)(which / 8 % (DIALOG_QUIT + 1)));
	draw(s, u, 80, 24);
	u->dialog.kind = DIALOG_NONE;
}

/* Applies the messages of the recording, up to the first one that cannot be read. */
static void take_all(struct record_reader *r, struct history *h, struct state *s, struct ui *u)
{
	struct text_mode plain = { .at_us = 0 };
	char line[256];
	const void *message;
	size_t size;
	int64_t at;

	for (int i = 0; i < MOST_MESSAGES && record_next(r, &at, &message, &size) == 0; i++) {
		struct msg m;

		if (msg_decode(&m, message, size) != 0)
			continue;
		if (history_append(h, at, message, size) == 0)
			state_apply(s, &m);
		text_mode_line(&plain, s, &m, line, sizeof(line));
		ui_take_message(u, s, &m);
		msg_clear(&m);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record_reader *r;
	struct history *h;
	struct state *s;
	struct ui u;
	size_t applied;
	int64_t status_at;

	r = record_open_memory(data, size);
	h = history_new(1 << 22);
	s = state_new();
	ui_init(&u, GRAPH_BRAILLE);
	ui_set_connection(&u, UI_RECORDED, "recorded");
	take_all(r, h, s, &u);
	applied = history_count(h);
	ui_tick(&u, s, 5000000, 0);
	draw_some(s, &u, size);
	if (applied > 0) {
		history_seek(h, history_at(h, applied / 2), &s, &applied, &status_at);
		u.clock.frozen = true;
		u.clock.frozen_us =
			s->status.now_us + (history_at(h, history_count(h) / 2) - status_at);
		u.clock.behind_us = history_last_us(h) - history_at(h, history_count(h) / 2);
		u.clock.span_us = history_last_us(h) - history_first_us(h);
		history_nearest_event(h, history_last_us(h), -1);
		ui_tick(&u, s, 6000000, 0);
		draw_some(s, &u, size / 3);
	}
	ui_fini(&u);
	state_free(s);
	history_free(h);
	record_close(r);
	return 0;
}
