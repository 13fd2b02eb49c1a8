/* config.h - the operator's settings, from $XDG_CONFIG_HOME/skippipe/config.json. The console never
 * writes this file.
 *
 *     { "theme": "light", "graph": "block", "fps": 4, "mouse": true, "color": false }
 *
 * Options of the command line override the settings. If a key is unknown or a value is wrong, the
 * console shows a warning with file and line, and uses the other settings.
 */
#ifndef TUI_CONFIG_H
#define TUI_CONFIG_H

#include <stdbool.h>

#include "base/error.h"

struct config {
	char theme[64]; /* name or path of the theme; "": the default */
	int graph;      /* one of enum graph; -1: the best that the terminal can show */
	int fps;        /* number of times that the screen is drawn in a second; 0: automatic */
	bool mouse, no_color;
};

/* Fills in the settings that apply without a file. */
void config_default(struct config *out);
/* Copies the valid settings to *c. -EINVAL: some are not valid; err names the first of them. */
int config_parse(struct config *c, const char *name, const char *json, struct error *err);

#endif
