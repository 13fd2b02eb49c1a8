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
	PRINT_CHECK /* prints nothing, unless the terminal or the settings have an error */
};

struct options {
	const char *connect, *controller_key, *key, *theme, *play, *record, *name, *price;
	char *token;  /* token of an invitation, or @FILE; invited_join wipes it */
	int graph;    /* one of enum graph; -1: the best that the terminal can show */
	int fps;      /* 0: automatic */
	double speed; /* speed with which --play plays */
	bool readonly, plain, no_color, owner;
	enum options_print print; /* the text to print instead of opening a console */
};

extern const struct options_table options_of_console;

/* Parses main's arguments. Texts are borrowed from argv. -EINVAL: err has the message. */
int options_parse(struct options *o, int argc, char **argv, struct error *err);

#endif
