/* config.h - the operator's settings, from $XDG_CONFIG_HOME/skippipe/config.json. The console never
 * writes this file.
 *
 *     { "theme": "light", "graph": "block", "fps": 4, "mouse": true, "color": false }
 *
 * Options of the command line override it. An unknown key or a wrong value is a warning that names
 * file and line; the other settings are used.
 */
#ifndef TUI_CONFIG_H
#define TUI_CONFIG_H

#include <stdbool.h>

#include "base/error.h"

struct config {
	char theme[64]; /* name or path of the theme; "": the default */
	int graph;      /* one of enum graph; -1: the best that the terminal can show */
	int fps;        /* pictures a second; 0: automatic */
	bool mouse, no_color;
};

/* Gives the settings that are used without a file. */
void config_default(struct config *out);
/* Takes the valid settings. -EINVAL: err names the first invalid one. */
int config_parse(struct config *c, const char *name, const char *json, struct error *err);

#endif
