/* console.h - one running console: its parts, and the phases of the loop in main.c. */
#ifndef TUI_CONSOLE_H
#define TUI_CONSOLE_H

#include <stdio.h>

#include "tui/config.h"
#include "tui/connection.h"
#include "tui/run/history.h"
#include "tui/options.h"
#include "tui/text_mode.h"
#include "tui/record.h"
#include "tui/run_reader.h"
#include "tui/screen/terminal.h"
#include "tui/screen/theme.h"

struct console {
	struct options options;
	struct config config;
	char name[64];
	struct ui ui;
	struct state *state;
	struct theme theme;
	struct screen *screen;         /* cells to draw into; NULL in plain mode */
	struct terminal *terminal;     /* where `screen` is shown; NULL in plain mode */
	struct connection *connection; /* NULL: a recording is played */
	struct record_reader *play;
	FILE *record;
	/* A write to the recording failed, so the end of the recording is missing. */
	bool record_failed;
	int64_t now_us;     /* time on this machine's clock */
	/* While a recording is played: at the time play_local_us of this machine's clock, the
	 * playback was at the time play_base_us of the recording's clock. */
	int64_t play_base_us, play_local_us;
	int64_t drawn_us;
	struct text_mode plain; /* state of the text output for --plain */
	bool hung_up;           /* the terminal was closed */
	bool refused;
	struct history *history;
	size_t applied;    /* number of messages of the history that are applied to the state */
	int64_t cursor_us; /* time that a frozen screen shows, on the history's clock */
	/* Messages were dropped, because the history was full while the screen was frozen. */
	bool missed;
	/* (OTHER_RUNS) readers of the runs in ui.others; NULL: the run is completely read. */
	struct run_reader *readers[OTHER_RUNS];
	char theme_folders[2][4096];
	const char *folders[3];
};

/* Opens a console with a copy of the options; console_close closes it. After an error nothing is
 * open. -EINVAL: an option is wrong; other errors are the system's. */
int console_open(struct console *c, const struct options *o, struct error *err);
/* Makes the same checks of the terminal's type, the prices and the theme as console_open, but opens
 * nothing. */
int console_check(const struct options *o, struct error *err);
void console_close(struct console *c);

/* Writes the path of the key that a console without --key uses. Creates the key's folder if there
 * is no key yet. */
int console_default_key(char out[4096], struct error *err);

/* The phases of a turn of the loop, in order. */
void console_read_keys(struct console *c);
void console_read_messages(struct console *c); /* handles a bounded number of messages */
void console_send_commands(struct console *c);
/* Does what the operator has requested outside the screen: moves in time, loads themes, reads other
 * runs, exports, copies, switches the mouse. */
void console_do_side_effects(struct console *c);
void console_scrub(struct console *c); /* moves the cursor in time, if this was requested */
void console_draw(struct console *c);  /* draws at most fps times a second */
/* Returns the time at which the loop must take its next turn even if nothing arrives. */
int64_t console_deadline_us(const struct console *c);

#endif
