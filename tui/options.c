/* The command line of the console. */
#include "tui/options.h"

#include <errno.h>
#include <stddef.h>

#include "base/process/options.h"

static const char *const graphs[] = { "braille", "block", "ascii", NULL };

#define AT(field) .at = offsetof(struct options, field)
#define PRINT(what) OPTIONS_NUMBER, AT(print), .number = PRINT_##what
static const struct options_row rows[] = {
	{ "connect", OPTIONS_TEXT, "ADDRESS", AT(connect),
	  .help = "the controller: tcp://HOST:PORT or ipc://PATH" },
	{ "controller-key", OPTIONS_TEXT, "HEX|FILE", AT(controller_key),
	  .help = "the controller's public key" },
	{ "key", OPTIONS_TEXT, "FILE", AT(key),
	  .help = "this console's key; created if it is missing "
		  "[~/.config/skippipe/console.key]" },
	{ "readonly", OPTIONS_FLAG, AT(readonly),
	  .help = "watch only: this console sends no commands" },
	{ "owner", OPTIONS_FLAG, AT(owner),
	  .help = "quitting ends the run (used by skippipe demo)" },
	{ "name", OPTIONS_TEXT, "TEXT", AT(name),
	  .help = "this console's name in the journal [USER@HOST]" },
	{ NULL, .help = "The screen" },
	{ "theme", OPTIONS_TEXT, "NAME|FILE", AT(theme),
	  .help = "default, light, mono, colour-blind-safe, solarized or high-contrast [default]" },
	{ "graph", OPTIONS_CHOICE, "braille|block|ascii", AT(graph), .words = graphs,
	  .help = "[the best that terminal and locale can show]" },
	{ "no-color", OPTIONS_FLAG, AT(no_color),
	  .help = "no colours, only attributes; NO_COLOR does the same" },
	{ "plain", OPTIONS_FLAG, AT(plain),
	  .help = "print lines, never redraw: for screen readers and pipes" },
	{ "fps", OPTIONS_INT, "N", AT(fps), .least = 1, .most = 60,
	  .help = "at most N pictures a second [10, over ssh 4]" },
	{ NULL, .help = "Files" },
	{ "price", OPTIONS_TEXT, "FILE", AT(price),
	  .help = "prices in dollars an hour, by node or place, as JSON: {\"n07\": 2.5, "
		  "\"Oregon\": 1.2, \"others\": 1}" },
	{ "record", OPTIONS_TEXT, "FILE", AT(record),
	  .help = "record the controller's messages in a new file" },
	{ "play", OPTIONS_TEXT, "FILE", AT(play), .help = "play a recording without a controller" },
	{ "speed", OPTIONS_REAL, "X", "1", "speed of the recording with --play", AT(speed),
	  .least = 0.01, .most = 10000 },
	{ NULL, .help = "Instead of opening a console" },
	{ "help", PRINT(HELP), .help = "print this help" },
	{ "version", PRINT(VERSION), .help = "print the version" },
	{ "manual", PRINT(MANUAL), .help = "print the manual page, for man -l -" },
	{ "keys", PRINT(KEYS), .help = "print tables of the keys and of the failures" },
	{ "check", PRINT(CHECK), .help = "check the terminal's type, prices and theme, and exit" },
};
#undef AT
#undef PRINT

/* Takes the token. The cast removes const: the word points into argv of main, which invited_join
 * overwrites. */
static int take_token(void *options, const char *word, struct error *err)
{
	struct options *o = options;

	if (o->token || o->connect || o->play)
		return error_set(err, -EINVAL, "there are more words than one TOKEN");
	o->token = (char *)word;
	return 0;
}

const struct options_table options_of_console = {
	rows,
	sizeof(rows) / sizeof(rows[0]),
	.word = take_token,
	.intro = "usage: skippipe console TOKEN [options]\n"
		 "       skippipe console --connect ADDRESS --controller-key HEX|FILE [options]\n"
		 "       skippipe console --play FILE [--speed X]\n"
		 "\n"
		 "Watch and steer a training run from a terminal. Press ? in the console for the\n"
		 "keys. TOKEN is the token of skippipe invite --role console, or @FILE, a file\n"
		 "with it. The controller then admits this console's key.\n"
		 "\n",
};

static int check_options(const struct options *o, struct error *err)
{
	if (o->print != PRINT_NOTHING)
		return 0;
	if (!o->play && !o->connect && !o->token)
		return error_set(
			err, -EINVAL,
			"a TOKEN, --connect ADDRESS or --play FILE is needed (see --help)");
	if (o->play && o->connect)
		return error_set(err, -EINVAL, "--connect and --play exclude each other");
	if (o->connect && !o->controller_key)
		return error_set(err, -EINVAL,
				 "--controller-key is needed: the 64 digits that `skippipe "
				 "keygen` printed for the controller, or a file with them");
	return 0;
}

/* Parses the options, then checks those that depend on each other. */
int options_parse(struct options *o, int argc, char **argv, struct error *err)
{
	int rc;

	*o = (struct options){ .graph = -1 };
	rc = options_read(&options_of_console, o, argc, argv, NULL, err);
	if (rc > 0)
		o->print = PRINT_HELP;
	return rc < 0 ? rc : check_options(o, err);
}
