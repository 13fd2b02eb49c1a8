/* options.h - the command line of skippipe-console. */
#ifndef TUI_OPTIONS_H
#define TUI_OPTIONS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/process/options.h"
#include "tui/input/ui.h"

enum options_print {
	PRINT_NOTHING,
	PRINT_HELP,
	PRINT_VERSION,
	PRINT_MANUAL,
	PRINT_KEYS,
	PRINT_CHECK /* checks the terminal and the settings, and prints only their errors */
};

struct options {
	const char *connect, *controller_key, *key, *theme, *play, *record, *name, *price;
	char *token;  /* token of an invitation, or @FILE; invited_join overwrites it with zeros */
	int graph;    /* one of enum graph; -1: the best that the terminal can show */
	int fps;      /* number of times that the screen is drawn in a second; 0: automatic */
	double speed; /* speed of --play; 1: as recorded */
	bool readonly, plain, no_color, owner;
	enum options_print print; /* text that is printed instead of opening a console */
};

extern const struct options_table options_of_console;

/* Parses the arguments of main; texts are borrowed from argv. -EINVAL: wrong usage; err has the
 * message. */
int options_parse(struct options *o, int argc, char **argv, struct error *err);

#endif
