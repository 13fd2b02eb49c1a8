/* theme.h - colours and attributes for each style, from a JSON file or built in.
 *
 *     { "format": "skippipe.theme/1", "name": "light",
 *       "styles": { "forward": { "fg": "green", "bg": "default", "attributes": ["bold"] } } }
 *
 * A colour is "default", one of the sixteen names ("bright-green"), 0..255, or "#rrggbb" (the
 * nearest of the 256). A style that is not named is plain. An unknown key or value is an error
 * that names file and line.
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
	uint8_t attributes; /* set of enum theme_attribute */
};

struct theme {
	char name[32];
	struct theme_style styles[STYLES];
};

/* Returns a colour of xterm's 256 as 0xrrggbb. The first sixteen are those of a PC's text screen;
 * terminals differ in them. */
uint32_t theme_rgb(int colour);
/* Returns the colour nearest to 0xrrggbb among the colours from `from` to `to` - 1. */
int theme_nearest(uint32_t rgb, int from, int to);

/* Gives the theme that is used without a file: attributes only. */
void theme_plain(struct theme *out);
/* Parses a JSON text; `name` is for messages. -EINVAL: *out is unchanged. Public for tests. */
int theme_parse(struct theme *out, const char *name, const char *json, struct error *err);
/* Loads a theme by its path (with '/' or ".json") or by its name in one of `folders`, which ends
 * with NULL. */
int theme_find(struct theme *out, const char *name, const char *const *folders,
	       struct error *err);

#endif
