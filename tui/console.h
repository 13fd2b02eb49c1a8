/* console.h - one running console: its parts, and the phases of main.c's loop.
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
	struct screen *screen;         /* the picture; NULL in plain mode */
	struct terminal *terminal;     /* the terminal; NULL in plain mode */
	struct connection *connection; /* NULL: a recording is played */
	struct record_reader *play;
	FILE *record;
	bool record_failed; /* a write to the recording failed, so that its end is missing */
	int64_t now_us;     /* time on this machine's clock */
	int64_t play_base_us; /* time on the recording's clock at play_local_us */
	int64_t play_local_us;
	int64_t drawn_us;
	struct text_mode plain; /* state of the text output for --plain */
	bool hung_up; /* the terminal is gone */
	bool refused;
	struct history *history;
	size_t applied;    /* number of the history's messages that the state contains */
	int64_t cursor_us; /* the time shown while the screen is frozen, on the history's clock */
	bool missed;       /* messages were dropped because the history was full */
	struct run_reader *readers[OTHER_RUNS]; /* readers of ui.others; NULL: the run is read */
	char theme_folders[2][4096];
	const char *folders[3];
};

/* Opens a console; the options are copied. On error nothing stays open. -EINVAL: an option is
 * wrong; other errors are the system's. console_close closes it. */
int console_open(struct console *c, const struct options *o, struct error *err);
/* Checks the terminal's type, the prices and the theme as console_open does, and opens nothing. */
int console_check(const struct options *o, struct error *err);
void console_close(struct console *c);

/* Gives the path of a console's key without --key, and creates its folder unless there is a key. */
int console_default_key(char out[4096], struct error *err);

/* The phases of a turn of the loop. */
void console_read_keys(struct console *c);
void console_read_messages(struct console *c); /* handles a bounded number of messages */
void console_send_commands(struct console *c);
/* Moves the cursor in time, loads themes, reads other runs, exports, copies, sets the mouse. */
void console_do_side_effects(struct console *c);
void console_scrub(struct console *c); /* moves the cursor in time only */
void console_draw(struct console *c);  /* draws at most fps times a second */
/* Returns the time of the next turn if no input arrives. */
int64_t console_deadline_us(const struct console *c);

#endif
