/* Writes the console's manual page and the tables of docs/console.md from the tables that the
 * console itself uses. Thus manual and console cannot differ. */
#include "tui/manual.h"

#include <stdlib.h>
#include <string.h>

#include "tui/input/command.h"
#include "tui/input/keymap.h"
#include "tui/options.h"
#include "wire/faults.h"

/* Writes a text and escapes the characters that roff would interpret: a leading dot or quote,
 * hyphens, backslashes. */
static void write_escaped(FILE *to, const char *text)
{
	bool start = true;

	for (; *text; text++) {
		if (start && (*text == '.' || *text == '\''))
			fputs("\\&", to);
		if (*text == '\\')
			fputs("\\e", to);
		else if (*text == '-')
			fputs("\\-", to);
		else
			fputc(*text, to);
		start = *text == '\n';
	}
}

static void keys_of(const struct keymap *map, enum action a, char out[64])
{
	char key[16];

	out[0] = '\0';
	for (int k = 0; k < KEYMAP_EACH && map->keys[a][k]; k++) {
		keymap_show(map->keys[a][k], key);
		snprintf(out + strlen(out), 64 - strlen(out), "%s%s", k ? " " : "", key);
	}
}

/* Writes the head of a list's entry: a name, and its arguments ("" if there are none). */
static void write_name(FILE *to, const char *name, const char *arguments)
{
	fputs(".TP\n.B \"", to);
	write_escaped(to, name);
	fputs(*arguments ? " " : "", to);
	write_escaped(to, arguments);
	fputs("\"\n", to);
}

static void write_options(FILE *to)
{
	char *text = NULL;
	size_t size;
	FILE *help = open_memstream(&text, &size);

	if (!help)
		return;
	options_help(&options_of_console, help);
	fclose(help);
	write_escaped(to, text);
	free(text);
}

void manual_page(FILE *to)
{
	struct keymap map;
	char keys[64];

	keymap_default(&map);
	fprintf(to,
		".TH SKIPPIPE\\-CONSOLE 1 \"\" \"skippipe %s\" \"User Commands\"\n.SH NAME\n"
		"skippipe\\-console \\- watch and steer a training run from a terminal\n.SH "
		"SYNOPSIS\n.nf\n",
		SKIPPIPE_VERSION);
	write_options(to);
	fputs(".fi\n.SH KEYS\n", to);
	for (int g = 0; g < GROUPS; g++) {
		fprintf(to, ".SS %s\n", keymap_group_name((enum keymap_group)g));
		for (int a = 1; a < ACTIONS; a++) {
			const struct keymap_entry *e = keymap_find((enum action)a);

			if (!e || e->group != (enum keymap_group)g)
				continue;
			keys_of(&map, (enum action)a, keys);
			write_name(to, keys, "");
			write_escaped(to, e->help);
			fprintf(to, " (");
			write_escaped(to, e->name);
			fputs(")\n", to);
		}
	}
	fputs(".SH COMMANDS\nTyped after a colon.\n", to);
	for (size_t i = 0; i < command_count(); i++) {
		const struct command_entry *e = command_at(i);

		write_name(to, e->name, e->arguments);
		write_escaped(to, e->help);
		fputc('\n', to);
	}
	fputs(".SH INJECTED FAILURES\n", to);
	for (unsigned k = FAULT_NONE + 1; k <= FAULT_LAST; k++) {
		const struct fault_description *fault = fault_describe(k);

		write_name(to, fault->name, "");
		write_escaped(to, fault->what);
		fputs("; ", to);
		write_escaped(to, fault->ending ? fault->ending : FAULT_HEALS);
		fputc('\n', to);
	}
	fputs(".SH FILES\n.TP\n.I ~/.config/skippipe/config.json\ntheme, graph, fps, mouse, "
	      "color\n.TP\n"
	      ".I ~/.config/skippipe/keys.json\naction: key, or a list of keys\n.TP\n"
	      ".I ~/.config/skippipe/themes/*.json\nyour own themes\n.TP\n"
	      ".I ~/.cache/skippipe/copied.txt\nthe text that y copied last\n.TP\n"
	      ".I ~/.config/skippipe/console.key\nthis console's key; created if it is missing\n"
	      ".SH ENVIRONMENT\nNO_COLOR, XDG_CONFIG_HOME, XDG_CACHE_HOME, TERM, LC_ALL, "
	      "ESCDELAY (milliseconds "
	      "to wait after ESC), SSH_CONNECTION and SSH_TTY (fewer pictures a second, and at "
	      "least 100 milliseconds)\n"
	      ".SH SEE ALSO\n.BR skippipe (1)\n",
	      to);
}

static void write_keys(FILE *to)
{
	struct keymap map;
	char keys[64];

	keymap_default(&map);
	fputs("| key | action | name in keys.json |\n|---|---|---|\n", to);
	for (int g = 0; g < GROUPS; g++) {
		for (int a = 1; a < ACTIONS; a++) {
			const struct keymap_entry *e = keymap_find((enum action)a);

			if (!e || e->group != (enum keymap_group)g)
				continue;
			keys_of(&map, (enum action)a, keys);
			fprintf(to, "| `%s` | %s | `%s` |\n", keys, e->help, e->name);
		}
	}
}

static void write_faults(FILE *to)
{
	fputs("| failure | effect | end |\n|---|---|---|\n", to);
	for (unsigned k = FAULT_NONE + 1; k <= FAULT_LAST; k++) {
		const struct fault_description *fault = fault_describe(k);

		fprintf(to, "| `%s` | %s | %s |\n", fault->name, fault->what,
			fault->ending ? fault->ending : FAULT_HEALS);
	}
}

void manual_tables(FILE *to)
{
	write_keys(to);
	fputc('\n', to);
	write_faults(to);
}
