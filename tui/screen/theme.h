/* theme.h - colours and attributes for each style, from a JSON file or built in.
 *
 *     { "format": "skippipe.theme/1", "name": "light",
 *       "styles": { "forward": { "fg": "green", "bg": "default", "attributes": ["bold"] } } }
 *
 * A colour is "default", one of sixteen names ("bright-green"), a number 0..255, or "#rrggbb",
 * which becomes the nearest of the 256 colours. A style that the file does not name is plain. An
 * unknown key or value is an error; the message names file and line.
 */
#ifndef TUI_THEME_H
#define TUI_THEME_H

#include <stdint.h>

#include "base/error.h"
#include "tui/screen/screen.h"

enum { THEME_DEFAULT = -1 };
enum theme_attribute {
	THEME_BOLD = 1,
	THEME_DIM = 2,
	THEME_UNDERLINE = 4,
	THEME_REVERSE = 8,
	THEME_ITALIC = 16
};

struct theme_style {
	int16_t fg, bg;     /* 0..255, or THEME_DEFAULT */
	uint8_t attributes; /* flags of enum theme_attribute */
};

struct theme {
	char name[32];
	struct theme_style styles[STYLES];
};

/* Returns one of xterm's 256 colours as 0xrrggbb. Terminals differ in the first sixteen colours;
 * for these colours the function returns the values of a PC's text screen. */
uint32_t theme_rgb(int colour);
/* Returns the colour that is nearest to 0xrrggbb among the colours `from` to `to` - 1. */
int theme_nearest(uint32_t rgb, int from, int to);

/* Sets *out to the built-in theme, which has attributes but no colours. */
void theme_plain(struct theme *out);
/* Parses a JSON text; `name` is for messages. -EINVAL: *out is unchanged. Public for tests. */
int theme_parse(struct theme *out, const char *name, const char *json, struct error *err);
/* Loads a theme. name: a path, if it contains '/' or ends with ".json"; otherwise the name of a
 * theme in one of `folders`, which ends with NULL. */
int theme_find(struct theme *out, const char *name, const char *const *folders,
	       struct error *err);

#endif
