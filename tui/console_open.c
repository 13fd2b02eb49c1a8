/* Opens the parts of a console: configuration, theme, keys, the connection, the terminal. */
#include "tui/console.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process/installed.h"
#include "base/process/user_folder.h"

enum { HISTORY_MOST = 64 << 20 };

/* Writes the path of the operator's folder. -ENOENT: the environment names no folder. */
static int config_folder(char out[4000], struct error *err)
{
	return user_folder(out, 4000, "XDG_CONFIG_HOME", ".config", err);
}

/* Reads a file of the operator's folder and writes its path. -ENOENT: the file does not exist. */
static int read_config_file(char path[4096], const char *name, char **text, struct error *err)
{
	char folder[4000];
	size_t size;
	int rc = config_folder(folder, err);

	if (rc != 0)
		return rc;
	snprintf(path, 4096, "%s/%s", folder, name);
	return file_read_text(path, 1 << 20, text, &size, err);
}

/* Finds the folders of themes: the operator's own, then the folder of the installed themes. */
static void find_folders(struct console *c)
{
	char folder[4000];
	int i = 0;

	if (config_folder(folder, NULL) == 0)
		snprintf(c->theme_folders[i++], 4096, "%s/themes", folder);
	installed_path("themes", "themes", c->theme_folders[i++], 4096);
	for (int k = 0; k < i; k++)
		c->folders[k] = c->theme_folders[k];
	c->folders[i] = NULL;
}

/* Chooses the theme. If the theme of the command line is missing, this is an error. If the theme of
 * config.json is missing, the console warns and uses the default. */
static int choose_theme(struct console *c, struct error *err)
{
	int rc = -ENOENT;

	theme_plain(&c->theme);
	if (c->options.theme) {
		rc = theme_find(&c->theme, c->options.theme, c->folders, err);
	} else {
		if (*c->config.theme) {
			rc = theme_find(&c->theme, c->config.theme, c->folders, err);
			if (rc != 0)
				ui_say(&c->ui, STYLE_WARNING, "config.json: %s", err->text);
		}
		if (rc != 0)
			theme_find(&c->theme, "default", c->folders, err);
		/* If no theme is installed, the plain theme stays in use: it has attributes, but no
		 * colours. */
		rc = 0;
	}
	snprintf(c->ui.display.theme, sizeof(c->ui.display.theme), "%s", c->theme.name);
	return rc;
}

static void read_config(struct console *c)
{
	char path[4096], *text;
	struct error err = { "" };
	int rc;

	config_default(&c->config);
	rc = read_config_file(path, "config.json", &text, &err);
	if (rc == 0) {
		rc = config_parse(&c->config, path, text, &err);
		free(text);
	}
	if (rc != 0 && rc != -ENOENT)
		ui_say(&c->ui, STYLE_WARNING, "%s", err.text);
	if (c->options.graph < 0)
		c->options.graph = c->config.graph;
	if (c->options.fps == 0)
		c->options.fps = c->config.fps;
	c->options.no_color |= c->config.no_color;
	c->ui.display.mouse = c->ui.requests.mouse = c->config.mouse;
}

static void read_keys(struct console *c)
{
	char path[4096], *text;
	struct error err = { "" };
	int rc = read_config_file(path, "keys.json", &text, &err);

	if (rc == 0) {
		rc = keymap_parse_json(&c->ui.map, path, text, &err);
		free(text);
	}
	if (rc != 0 && rc != -ENOENT)
		ui_say(&c->ui, STYLE_WARNING, "the default keys are used: %s", err.text);
}

static int read_prices(struct console *c, struct error *err)
{
	char *text;
	size_t size;
	int rc;

	if (!c->options.price)
		return 0;
	rc = file_read_text(c->options.price, 1 << 20, &text, &size, err);
	if (rc != 0)
		return rc;
	rc = prices_parse(&c->ui.prices, c->options.price, text, err);
	free(text);
	return rc;
}

int console_default_key(char out[4096], struct error *err)
{
	static const char name[] = "console.key";
	char folder[4000];
	int rc = config_folder(folder, err);

	if (rc == 0 && !file_exists(folder, name)) {
		rc = file_make_private_folder(folder, err);
		if (rc == 0)
			rc = file_make_writable_folder(folder, err);
	}
	if (rc != 0)
		return error_prefix(err, rc,
				    "no folder for this console's key, so give --key FILE");
	snprintf(out, 4096, "%s/%s", folder, name);
	return 0;
}

static int open_source(struct console *c, struct error *err)
{
	char key[4096];
	int rc;
	struct connection_options o = { .address = c->options.connect,
					.controller_key = c->options.controller_key,
					.key = c->options.key,
					.name = c->name,
					.readonly = c->options.readonly };

	if (c->options.play)
		return record_open(&c->play, c->options.play, err);
	if (!o.key) {
		rc = console_default_key(key, err);
		if (rc != 0)
			return rc;
		o.key = key;
	}
	return connection_open(&c->connection, &o, err);
}

static int open_screen(struct console *c, struct error *err)
{
	enum graph graph = terminal_shows_braille() ? GRAPH_BRAILLE
			   : terminal_speaks_utf8() ? GRAPH_BLOCK
						    : GRAPH_ASCII;
	const char *none = getenv("NO_COLOR");
	int w, h, rc;

	if (c->options.plain)
		return 0;
	if (c->options.graph >= 0 &&
	    (terminal_speaks_utf8() || c->options.graph == GRAPH_ASCII))
		graph = (enum graph)c->options.graph;
	c->ui.display.graph = graph;
	rc = terminal_open(&c->terminal, &c->theme, !c->options.no_color && !(none && *none),
			   err);
	if (rc == -ENOTTY || rc == -ENOTSUP) {
		fprintf(stderr, "skippipe console: %s: plain lines are printed instead\n",
			err->text);
		c->options.plain = true;
		return 0;
	}
	if (rc != 0)
		return rc;
	if (terminal_substitute(c->terminal))
		ui_say(&c->ui, STYLE_WARNING, "TERM=%s is unknown on this machine: %s is used",
		       getenv("TERM"), terminal_substitute(c->terminal));
	terminal_size(c->terminal, &w, &h);
	c->screen = screen_new(w, h, graph == GRAPH_ASCII);
	return 0;
}

int console_check(const struct options *o, struct error *err)
{
	struct console c = { .options = *o };
	int rc = terminal_check(err);

	/* If the terminal cannot place the cursor, the console prints plain lines. This is no
	 * error. */
	if (rc == -ENOTSUP)
		rc = 0;
	find_folders(&c);
	if (rc == 0)
		rc = read_prices(&c, err);
	return rc == 0 ? choose_theme(&c, err) : rc;
}

static void choose_name(char out[64], const char *given)
{
	const char *user = getenv("USER");
	char host[40] = "";

	gethostname(host, sizeof(host) - 1);
	if (given)
		snprintf(out, 64, "%s", given);
	else
		snprintf(out, 64, "%.20s@%.38s", user && *user ? user : "operator", host);
}

/* Opens the parts of a console; later parts depend on earlier ones. The terminal comes last:
 * the error of an earlier part is then printed on an unchanged screen. */
int console_open(struct console *c, const struct options *o, struct error *err)
{
	int rc;

	memset(c, 0, sizeof(*c));
	c->options = *o;
	c->now_us = clock_monotonic_us();
	choose_name(c->name, o->name);
	ui_init(&c->ui, GRAPH_ASCII);
	c->ui.outbox.last_id = (uint64_t)clock_wall_us();
	c->ui.authority.readonly = o->readonly;
	c->ui.authority.owner = o->owner;
	c->ui.clock.local_us = c->ui.connection.since_us = c->now_us;
	find_folders(c);
	read_config(c);
	read_keys(c);
	rc = choose_theme(c, err);
	c->state = state_new();
	c->history = history_new(HISTORY_MOST);
	if (rc == 0)
		rc = read_prices(c, err);
	if (rc == 0)
		rc = open_source(c, err);
	if (rc == 0 && o->record) {
		c->record = fopen(o->record, "wxe");
		if (!c->record)
			rc = error_set(err, -errno, "--record %s: %s", o->record,
				       errno == EEXIST ? "exists; give the name of a new file"
						       : strerror(errno));
	}
	if (rc == 0)
		rc = open_screen(c, err);
	if (rc != 0) {
		console_close(c);
		return rc;
	}
	if (c->play)
		ui_set_connection(&c->ui, UI_RECORDED, "");
	return 0;
}
