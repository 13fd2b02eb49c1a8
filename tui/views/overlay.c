/* Windows over a view: the help and the list of commands. */
#include "tui/views/view.h"

#include <stdio.h>
#include <string.h>

#include "tui/input/command.h"
#include "tui/screen/table.h"

/* ---- help ---- */

/* Draws at.h lines of the help, from line `first` on. Returns the number of lines of the whole
 * help. Pages are full, so a page may begin inside a group. */
static int help_lines(struct screen *out, const struct keymap *map, struct rect at, int first)
{
	static const enum keymap_group order[GROUPS] = {
		GROUP_ACT, GROUP_VIEWS, GROUP_TIME, GROUP_FIND, GROUP_CONSOLE, GROUP_MOVE
	};
	int line = 0;

	for (int i = 0; i < GROUPS; i++) {
		enum keymap_group g = order[i];
		int y = at.y + line++ - first;

		if (y >= at.y && y < at.y + at.h)
			screen_text(out, at.x, y, at.w, STYLE_TITLE, keymap_group_name(g));
		for (int a = 1; a < ACTIONS; a++) {
			const struct keymap_entry *e = keymap_find((enum action)a);
			char keys[40] = "", key[16];

			if (!e || e->group != g || map->keys[a][0] == 0)
				continue;
			for (int k = 0; k < 2 && map->keys[a][k]; k++) {
				keymap_show(map->keys[a][k], key);
				snprintf(keys + strlen(keys), sizeof(keys) - strlen(keys),
					 "%s%s", k ? " " : "", key);
			}
			y = at.y + line++ - first;
			if (y < at.y || y >= at.y + at.h)
				continue;
			screen_text(out, at.x + 1, y, 8, STYLE_KEY, keys);
			screen_text(out, at.x + 10, y, at.w - 10, STYLE_TEXT, e->help);
		}
	}
	return line;
}

static int help_pages(const struct screen *out, const struct keymap *map)
{
	struct screen *scratch;
	int columns = screen_width(out) >= 150 ? 2 : 1, rows = screen_height(out) - 2, lines;

	if (rows < 1)
		return 1;
	scratch = screen_new(1, 1, true);
	lines = help_lines(scratch, map, (struct rect){ 0, 0, 1, 1 }, 0);
	screen_free(scratch);
	return (lines + rows * columns - 1) / (rows * columns);
}

void overlay_help(struct screen *out, const struct ui *u)
{
	struct rect box = screen_whole(out);
	int columns = box.w >= 150 ? 2 : 1, pages = help_pages(out, &u->map), page;
	char title[96];

	if (box.w > 160) {
		box.x = (box.w - 160) / 2;
		box.w = 160;
	}
	page = (u->display.help_page - 1) % pages;
	if (pages > 1)
		snprintf(title, sizeof(title),
			 "Help %d/%d: ? turns the page, any other key closes", page + 1, pages);
	else
		snprintf(title, sizeof(title), "Help: any key closes");
	screen_box(out, box, title);
	for (int k = 0; k < columns; k++) {
		struct rect at = { box.x + 2 + k * (box.w - 4) / columns, box.y + 1,
				   (box.w - 4) / columns - 1, box.h - 2 };

		help_lines(out, &u->map, at, (page * columns + k) * at.h);
	}
}

/* ---- palette ---- */

enum { PALETTE = 32, USAGE = 19 /* USAGE: column in which the usage of a command begins */ };

/* Writes how a command is used: its arguments and its help. */
static void write_usage(size_t command, char text[256])
{
	const struct command_entry *e = command_at(command);

	snprintf(text, 256, "%s%s%s", e->arguments, *e->arguments ? ": " : "", e->help);
}

/* Draws a line of the list: a command with its key and its usage. */
static void draw_command(struct screen *out, struct rect at, const struct ui *u, size_t command,
			 unsigned mark)
{
	const struct command_entry *e = command_at(command);
	char key[16] = "", usage[256];

	if (e->action != ACTION_NONE)
		keymap_show_action(&u->map, e->action, key);
	write_usage(command, usage);
	screen_fill(out, at, ' ', STYLE_TEXT | mark);
	screen_print(out, at.x, at.y, at.w, STYLE_STRONG | mark, "%c%-12s", mark ? '>' : ' ',
		     e->name);
	screen_text(out, at.x + 14, at.y, 4, STYLE_KEY | mark, key);
	screen_text(out, at.x + USAGE, at.y, at.w - USAGE, STYLE_TEXT | mark, usage);
}

/* The list is as wide as its longest text and covers at most half of the screen's height. */
void overlay_palette(struct screen *out, const struct ui *u)
{
	size_t found[PALETTE], n = command_match(u->prompt.text, found, PALETTE), chosen;
	int w = screen_width(out), bottom = screen_height(out) - 2, rows, first;
	struct rect box = { 0, 0, 40, 0 };
	char usage[256];

	if (n == 0 || bottom < 4)
		return;
	for (size_t i = 0; i < n; i++) {
		write_usage(found[i], usage);
		if (box.w < screen_columns(usage) + USAGE + 3)
			box.w = screen_columns(usage) + USAGE + 3;
	}
	box.w = box.w < w ? box.w : w;
	rows = bottom / 2 < 2 ? 2 : bottom / 2;
	rows = (int)n < rows ? (int)n : rows;
	chosen = u->prompt.choice < n ? u->prompt.choice : n - 1;
	first = table_first((int)n, rows, (int)chosen);
	box.h = rows + 2;
	box.y = bottom - box.h;
	screen_box(out, box, "Commands: Tab completes, Enter runs");
	for (int i = 0; i < rows && first + i < (int)n; i++)
		draw_command(out, (struct rect){ 1, box.y + 1 + i, box.w - 2, 1 }, u,
			     found[first + i], (size_t)(first + i) == chosen ? STYLE_REVERSE : 0);
}
