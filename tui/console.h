/* console.h - one running console: its parts, and what main.c's loop does with them each turn.
 */
#ifndef TUI_CONSOLE_H
#define TUI_CONSOLE_H

#include <stdio.h>

#include "tui/config.h"
#include "tui/connection.h"
#include "tui/run/history.h"
#include "tui/options.h"
#include "tui/text_mode.h"
#include "tui/record.h"
#include "tui/screen/terminal.h"
#include "tui/screen/theme.h"

struct console {
	struct options options;
	struct config config;
	char name[64];
	struct ui ui;
	struct state *state;
	struct theme theme;
	struct screen *screen;         /* NULL in plain mode */
	struct terminal *terminal;     /* NULL in plain mode */
	struct connection *connection; /* NULL: a recorded stream plays */
	struct record_reader *play;
	FILE *record;
	int64_t now_us;       /* our clock */
	int64_t play_base_us; /* the recorded clock at our play_local_us */
	int64_t play_local_us;
	int64_t drawn_us;
	bool stale;   /* something changed since it was drawn */
	struct text_mode plain; /* of plain mode */
	bool hung_up; /* the terminal is gone */
	bool refused;
	struct history *history;
	size_t applied;    /* messages of it that the state holds */
	int64_t cursor_us; /* while frozen: the moment shown, on the history's clock */
	bool missed;       /* messages came that the history had no room for */
	char theme_folders[3][4096];
	const char *folders[4];
};

/* Everything of a console, by its options, which are copied. On error nothing stays open:
 * -EINVAL what was asked for is wrong, others by errno, *err says what. Closed by
 * console_close. */
int console_open(struct console *c, const struct options *o, struct error *err);
void console_close(struct console *c);

/* The phases of a turn. */
void console_read_keys(struct console *c);
void console_read_messages(struct console *c); /* a bounded number */
void console_send_commands(struct console *c);
void console_do_side_effects(struct console *c); /* cursor, theme, export, copy, mouse */
void console_scrub(struct console *c);     /* the cursor alone */
void console_draw(struct console *c);      /* when it is time */
/* When the next turn has something to do. */
int64_t console_deadline_us(const struct console *c);

#endif
