/* config.h - what a person has chosen, from $XDG_CONFIG_HOME/skippipe/config.json. Never
 * written.
 *
 *     { "theme": "light", "graph": "block", "fps": 4, "mouse": true, "color": false }
 *
 * The command line overrides it. An unknown key or a wrong value is a warning that names file
 * and line; the rest of the file holds.
 */
#ifndef TUI_CONFIG_H
#define TUI_CONFIG_H

#include <stdbool.h>

#include "base/error.h"

struct config {
	char theme[64]; /* "" the default */
	int graph;      /* enum graph; -1 what the terminal can show */
	int fps;        /* 0 by itself */
	bool mouse, no_color;
};

/* What holds where the user's file says nothing. */
void config_default(struct config *out);
/* Takes what is good. -EINVAL, with the first thing that is not in err. */
int config_parse(struct config *c, const char *name, const char *json, struct error *err);

#endif
