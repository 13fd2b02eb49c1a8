/* Carries out what the operator requests outside the screen: loads themes, reads other runs,
 * exports files, copies to the clipboard. */
#include "tui/console.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/timestamp.h"
#include "base/process/user_folder.h"
#include "tui/export.h"
#include "tui/run/notes.h"
#include "tui/views/view.h"

static const char *const shipped[] = { "default",           "light",     "mono",
				       "colour-blind-safe", "solarized", "high-contrast" };
enum { SHIPPED = sizeof(shipped) / sizeof(shipped[0]) };

static void change_theme(struct console *c)
{
	const char *name = c->ui.requests.theme_name;
	struct error err = { "" };
	int at = 0;

	if (!*name) {
		for (int i = 0; i < SHIPPED; i++)
			if (strcmp(shipped[i], c->theme.name) == 0)
				at = (i + 1) % SHIPPED;
		name = shipped[at];
	}
	if (theme_find(&c->theme, name, c->folders, &err) != 0) {
		ui_say(&c->ui, STYLE_ALERT, "%s", err.text);
		return;
	}
	snprintf(c->ui.display.theme, sizeof(c->ui.display.theme), "%s", c->theme.name);
	ui_say(&c->ui, STYLE_TEXT, "theme %s", c->theme.name);
	if (c->terminal)
		terminal_theme(c->terminal, &c->theme);
}

static const struct {
	const char *name, *suffix;
} exports[] = { { "text", "txt" },
		{ "svg", "svg" },
		{ "jsonl", "jsonl" },
		{ "csv", "csv" },
		{ "trace", "trace.json" } };

static char *render_export(struct console *c, int what)
{
	switch (what) {
	case 0:
		return screen_dump(c->screen);
	case 1:
		return export_svg(c->screen, &c->theme, strcmp(c->theme.name, "light") != 0);
	case 2:
		return export_jsonl(c->state);
	case 3:
		return export_csv(c->state);
	default:
		return export_trace(c->state);
	}
}

/* Exports to a file in the working folder of the console. The file's name contains date and
 * time. */
static void export_view(struct console *c)
{
	const char *name = *c->ui.requests.export_name ? c->ui.requests.export_name : "text";
	struct error err = { "" };
	char now[TIMESTAMP_NAME_SIZE], path[96], *text;
	int what = 0;

	while (what < 5 && strcmp(exports[what].name, name) != 0)
		what++;
	if (what == 5) {
		ui_say(&c->ui, STYLE_ALERT, "export what? text, svg, jsonl, csv or trace");
		return;
	}
	if (!c->screen)
		return;
	timestamp_name(clock_wall_us(), now);
	snprintf(path, sizeof(path), "skippipe-%s.%s", now, exports[what].suffix);
	c->ui.message.text[0] = '\0';
	view_draw(c->screen, c->state, &c->ui);
	text = render_export(c, what);
	if (file_write(path, text, strlen(text), FILE_RESULT, &err) != 0)
		ui_say(&c->ui, STYLE_ALERT, "%s", err.text);
	else
		ui_say(&c->ui, STYLE_GOOD, "saved as %s", path);
	free(text);
}

/* ---- copying ---- */

/* Returns the text to copy: the selected journal entry, or else the screen without its message
 * line. */
static char *render_copy(struct console *c)
{
	const struct msg_see_note *n = c->ui.display.view == VIEW_JOURNAL
					       ? notes_find(c->state, c->ui.selection.note)
					       : NULL;
	char time[TIMESTAMP_SIZE];

	if (!n) {
		c->ui.message.text[0] = '\0';
		view_draw(c->screen, c->state, &c->ui);
		return screen_dump(c->screen);
	}
	timestamp_text(n->wall_us, time);
	return alloc_format("%s %s it%llu %s\n", time, notes_kind(n),
			    (unsigned long long)n->iteration, n->text);
}

/* Copies to the terminal's clipboard. Always copies to a file too, because a terminal does not
 * report whether it has copied. */
static void copy_text(struct console *c)
{
	struct error err = { "" };
	char folder[4000], path[4096] = "", *text;
	bool copied;
	int rc;

	if (!c->screen)
		return;
	text = render_copy(c);
	rc = user_folder(folder, sizeof(folder), "XDG_CACHE_HOME", ".cache", &err);
	if (rc == 0)
		rc = file_make_private_folder(folder, &err);
	if (rc == 0) {
		snprintf(path, sizeof(path), "%s/copied.txt", folder);
		rc = file_write(path, text, strlen(text), FILE_PRIVATE, &err);
	}
	copied = c->terminal && terminal_copy(c->terminal, text);
	if (rc != 0)
		ui_say(&c->ui, copied ? STYLE_WARNING : STYLE_ALERT, "%s: %s",
		       copied ? "copied to the terminal's clipboard only" : "not copied", err.text);
	else if (copied)
		ui_say(&c->ui, STYLE_GOOD, "copied to the terminal's clipboard and %s", path);
	else
		ui_say(&c->ui, STYLE_GOOD, "copied to %s", path);
	free(text);
}

/* ---- comparing with other runs ---- */

static void close_readers(struct run_reader *readers[OTHER_RUNS])
{
	for (uint32_t k = 0; k < OTHER_RUNS; k++) {
		run_reader_close(readers[k]);
		readers[k] = NULL;
	}
}

/* Opens the runs that the operator wants to compare. These runs replace the former runs, but only
 * if every folder has a run. */
static void compare_runs(struct console *c)
{
	struct run_reader *readers[OTHER_RUNS] = { NULL };
	struct other_runs found = { .n = 0 };
	struct error err = { "" };
	char *save, *folder = strtok_r(c->ui.requests.compare.folders, " ", &save);

	for (; folder && found.n < OTHER_RUNS; folder = strtok_r(NULL, " ", &save)) {
		if (run_reader_open(&readers[found.n], folder, &found.list[found.n], &err) != 0) {
			ui_say(&c->ui, STYLE_ALERT, "%s", err.text);
			close_readers(readers);
			return;
		}
		found.n++;
	}
	close_readers(c->readers);
	other_runs_clear(&c->ui.others);
	memcpy(c->readers, readers, sizeof(readers));
	c->ui.others = found;
	c->ui.display.loss_cursor = 0;
	if (found.n == 0)
		ui_say(&c->ui, STYLE_TEXT, "no other run is compared");
}

/* Reads a part of one run each turn, so that reading does not delay the drawing. */
static void read_runs(struct console *c)
{
	struct error err = { "" };
	uint32_t k = 0;
	int rc;

	while (k < OTHER_RUNS && !c->readers[k])
		k++;
	if (k == OTHER_RUNS)
		return;
	rc = run_reader_turn(c->readers[k], &c->ui.others.list[k], &err);
	if (rc < 0)
		ui_say(&c->ui, STYLE_ALERT, "%s", err.text);
	if (rc <= 0) {
		run_reader_close(c->readers[k]);
		c->readers[k] = NULL;
	}
}

void console_do_side_effects(struct console *c)
{
	console_scrub(c);
	c->ui.requests.scrub = SCRUB_NONE;
	if (c->ui.requests.theme)
		change_theme(c);
	if (c->ui.requests.export)
		export_view(c);
	if (c->ui.requests.compare.is_requested)
		compare_runs(c);
	read_runs(c);
	if (c->ui.requests.copy)
		copy_text(c);
	if (c->ui.requests.mouse && c->terminal &&
	    !terminal_mouse(c->terminal, c->ui.display.mouse) && c->ui.display.mouse) {
		c->ui.display.mouse = false;
		ui_say(&c->ui, STYLE_WARNING, "this terminal reports no mouse");
	}
	c->ui.requests.theme = c->ui.requests.export = c->ui.requests.copy = c->ui.requests.mouse =
		c->ui.requests.compare.is_requested = false;
}
