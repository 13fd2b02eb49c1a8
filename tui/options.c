/* Parses the command line of the console. */
#include "tui/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char options_help[] =
	"usage: skippipe console --connect ADDRESS --controller-key HEX|FILE [options]\n"
	"       skippipe console --play FILE [--speed X]\n"
	"\n"
	"Watch and steer a training run from a terminal. Press ? in the console for the keys.\n"
	"\n"
	"  --connect ADDRESS     the controller: tcp://HOST:PORT or ipc://PATH\n"
	"  --controller-key HEX|FILE  the controller's public key\n"
	"  --key FILE            this console's key; created if it is missing\n"
	"                        [~/.config/skippipe/console.key]\n"
	"  --readonly            watch only: this console sends no commands\n"
	"  --owner               quitting ends the run (used by skippipe demo)\n"
	"  --name TEXT           this console's name in the journal  [USER@HOST]\n"
	"\n"
	"  --theme NAME|FILE     default, light, mono, colour-blind-safe, solarized or\n"
	"                        high-contrast  [default]\n"
	"  --graph braille|block|ascii  [the best that terminal and locale can show]\n"
	"  --no-color            no colours, only attributes; NO_COLOR does the same\n"
	"  --plain               print lines, never redraw: for screen readers and pipes\n"
	"  --fps N               at most N pictures a second  [10, over ssh 4]\n"
	"\n"
	"  --price FILE          prices in dollars an hour, by node or place, as JSON:\n"
	"                        {\"n07\": 2.5, \"Oregon\": 1.2, \"others\": 1}\n"
	"  --record FILE         record the controller's messages in a new file\n"
	"  --play FILE           play a recording without a controller\n"
	"  --speed X             speed of the recording with --play  [1]\n"
	"  --help --version\n"
	"  --manual              print the manual page, for man -l -\n"
	"  --keys                print tables of the keys and of the failures\n"
	"  --check               check the terminal's type, prices and theme, and exit\n";

static int parse_number(const char *name, const char *text, double least, double most,
			double *out, struct error *err)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !isfinite(v) || v < least || v > most)
		return error_set(err, -EINVAL,
				 "--%s: expected a number from %g to %g, got \"%s\"", name,
				 least, most, text);
	*out = v;
	return 0;
}

static int parse_graph(struct options *o, const char *text, struct error *err)
{
	static const char *const names[] = { "braille", "block", "ascii" };

	for (int i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) == 0) {
			o->graph = i;
			return 0;
		}
	}
	return error_set(err, -EINVAL, "--graph: expected braille, block or ascii, got \"%s\"",
			 text);
}

/* Takes an option with a value. */
static int take_option(struct options *o, int option, struct error *err)
{
	double v;
	int rc = 0;

	switch (option) {
	case 'c':
		o->connect = optarg;
		break;
	case 'C':
		o->controller_key = optarg;
		break;
	case 'k':
		o->key = optarg;
		break;
	case 'n':
		o->name = optarg;
		break;
	case 't':
		o->theme = optarg;
		break;
	case 'p':
		o->play = optarg;
		break;
	case 'r':
		o->record = optarg;
		break;
	case 'P':
		o->price = optarg;
		break;
	case 'g':
		rc = parse_graph(o, optarg, err);
		break;
	case 'f':
		rc = parse_number("fps", optarg, 1, 60, &v, err);
		if (rc == 0)
			o->fps = (int)v;
		break;
	case 's':
		rc = parse_number("speed", optarg, 0.01, 10000, &o->speed, err);
		break;
	default:
		rc = -EINVAL;
	}
	return rc;
}

static int check_options(const struct options *o, int argc, char **argv, struct error *err)
{
	if (optind < argc)
		return error_set(err, -EINVAL, "unexpected \"%s\"", argv[optind]);
	if (o->print != PRINT_NOTHING)
		return 0;
	if (!o->play && !o->connect)
		return error_set(
			err, -EINVAL,
			"--connect ADDRESS or --play FILE is needed (see --help)");
	if (o->play && o->connect)
		return error_set(err, -EINVAL, "--connect and --play exclude each other");
	if (o->connect && !o->controller_key)
		return error_set(err, -EINVAL,
				 "--controller-key is needed: the 64 digits that `skippipe "
				 "keygen` printed for the controller, or a file with them");
	return 0;
}

/* Takes flags here and options with a value in take_option. Options that depend on each other are
 * checked at the end. */
int options_parse(struct options *o, int argc, char **argv, struct error *err)
{
	enum { READONLY = 256, PLAIN, NO_COLOR, OWNER, HELP, VERSION, MANUAL, KEYS, CHECK };
	static const struct option longs[] = {
		{ "connect", 1, NULL, 'c' },
		{ "controller-key", 1, NULL, 'C' },
		{ "key", 1, NULL, 'k' },
		{ "name", 1, NULL, 'n' },
		{ "theme", 1, NULL, 't' },
		{ "play", 1, NULL, 'p' },
		{ "record", 1, NULL, 'r' },
		{ "price", 1, NULL, 'P' },
		{ "graph", 1, NULL, 'g' },
		{ "fps", 1, NULL, 'f' },
		{ "speed", 1, NULL, 's' },
		{ "readonly", 0, NULL, READONLY },
		{ "plain", 0, NULL, PLAIN },
		{ "no-color", 0, NULL, NO_COLOR },
		{ "owner", 0, NULL, OWNER },
		{ "help", 0, NULL, HELP },
		{ "version", 0, NULL, VERSION },
		{ "manual", 0, NULL, MANUAL },
		{ "keys", 0, NULL, KEYS },
		{ "check", 0, NULL, CHECK },
		{ NULL, 0, NULL, 0 },
	};
	int option, rc;

	*o = (struct options){ .graph = -1, .speed = 1 };
	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
		o->readonly |= option == READONLY;
		o->plain |= option == PLAIN;
		o->no_color |= option == NO_COLOR;
		o->owner |= option == OWNER;
		if (option >= HELP)
			o->print = (enum options_print)(PRINT_HELP + (option - HELP));
		if (option == ':')
			return error_set(err, -EINVAL, "%s needs a value", argv[optind - 1]);
		if (option == '?')
			return error_set(err, -EINVAL, "unknown option %s", argv[optind - 1]);
		rc = option < READONLY ? take_option(o, option, err) : 0;
		if (rc != 0)
			return rc;
	}
	return check_options(o, argc, argv, err);
}
