/* The command line of `skippipe fleet`: a verb, a file of hosts, and options. Options for the
 * controller follow after "--"; this program passes them on without checking them. */
#include "cli/fleet/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/options.h"

static const char *const verbs[] = { "up", "status", "logs", "down" };

static int take_word(void *options, const char *word, struct error *err)
{
	struct fleet_options *o = options;

	o->n_words++;
	if (o->n_words == 2)
		o->file = word;
	if (o->n_words > 2)
		return error_set(err, -EINVAL, "%s: unexpected (see --help)", word);
	for (size_t i = 0; o->n_words == 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i], word) == 0) {
			o->verb = (enum fleet_verb)i;
			return 0;
		}
	return o->n_words == 2
		       ? 0
		       : error_set(err, -EINVAL,
				   "%s: expected up, status, logs or down (see --help)", word);
}

static int take_address(void *options, const char *text, struct error *err)
{
	struct fleet_options *o = options;

	if (o->n_addresses == FLEET_ADDRESSES)
		return error_set(err, -EINVAL, "--address: more than %d", FLEET_ADDRESSES);
	o->addresses[o->n_addresses++] = text;
	return 0;
}

static int take_forgotten(void *options, const char *text, struct error *err)
{
	struct fleet_options *o = options;

	if (o->n_forgotten == FLEET_FORGOTTEN)
		return error_set(err, -EINVAL, "--forget: more than %d", FLEET_FORGOTTEN);
	o->forgotten[o->n_forgotten++] = text;
	return 0;
}

static const struct options_row rows[] = {
#define AT(field) .at = offsetof(struct fleet_options, field)
	{ NULL, .help = "up" },
	{ "run-dir", OPTIONS_TEXT, "DIR", AT(run_dir),
	  .help = "the folder of the run: here (or at --controller) for its record, and below the "
		  "home folder of each host for its checkpoints. If it has a record, the run is "
		  "resumed [run]" },
	{ "controller", OPTIONS_TEXT, "HOST", AT(controller),
	  .help = "where the controller runs: a host of FILE by its name, or USER@HOST:PORT "
		  "[this machine]" },
	{ "address", OPTIONS_PARSED, "ADDRESS", .parse = take_address,
	  .help = "where the hosts reach the controller, tcp://HOST:PORT; up to 4 "
		  "[its own addresses, port 7700]" },
	{ "bundle", OPTIONS_TEXT, "FILE", AT(bundle),
	  .help = "the archive of make bundle, for hosts without this version [the one of this "
		  "build]" },
	{ "wait-s", OPTIONS_SECONDS, "N", "60", "time for all agents to join", AT(wait_us),
	  .least = 1, .most = 86400 },
	{ NULL, .help = "logs" },
	{ "follow", OPTIONS_FLAG, AT(follow), .letter = 'f',
	  .help = "print new lines until Ctrl-C" },
	{ "lines", OPTIONS_U32, "N", "10", "lines of each log", AT(lines), .letter = 'n',
	  .most = 100000 },
	{ NULL, .help = "down" },
	{ "purge", OPTIONS_FLAG, AT(purge), .help = "remove the installed bundles, too" },
	{ "forget", OPTIONS_PARSED, "HOST", .parse = take_forgotten,
	  .help = "this host, by its name, is gone for good: down ends the fleet although it "
		  "cannot "
		  "reach the host; may be repeated" },
	{ "help", OPTIONS_HELP, .help = "print this help" },
#undef AT
};

static const struct options_table table = {
	rows, sizeof(rows) / sizeof(rows[0]), .word = take_word,
	.intro = "usage: skippipe fleet up FILE [option ...] [-- CONTROLLER-OPTION ...]\n"
		 "       skippipe fleet status FILE\n"
		 "       skippipe fleet logs FILE [-f] [-n N]\n"
		 "       skippipe fleet down FILE [--purge] [--forget HOST ...]\n"
		 "\n"
		 "Runs a training on the hosts of FILE, with ssh. FILE has a line for each host:\n"
		 "\n"
		 "  gpu@203.0.113.7:40022  name=left place=eu-west device=cuda:all\n"
		 "  m2                     # user and port as ssh's configuration has them\n"
		 "\n"
		 "up      copies skippipe to hosts that lack this version, invites and starts an\n"
		 "        agent on each and a controller, and waits until all agents have joined.\n"
		 "        listen= and advertise= are the agent's options of these names.\n"
		 "status  prints whether each agent runs, and the state of the run.\n"
		 "logs    prints the agents' logs together.\n"
		 "down    ends controller and agents, and removes everything but the run.\n"
		 "\n"
		 "Each command may be repeated, also after it was interrupted.\n"
		 "\n",
	.end = "\n"
	       "Exit status: 0 all hosts did it, 1 some did not, 2 wrong usage. status also ends\n"
	       "with 1 if the run is not healthy.\n"
};

int fleet_options_read(struct fleet_options *o, char **argv, struct error *err)
{
	static char *const none[] = { NULL };
	size_t n = 0;
	int rc;

	*o = (struct fleet_options){ .controller_words = none };
	for (; argv[n] && strcmp(argv[n], "--") != 0; n++)
		;
	if (argv[n])
		o->controller_words = argv + n + 1;
	o->words = alloc_array(n + 2, sizeof(*o->words));
	o->words[0] = (char *)"fleet";
	memcpy(o->words + 1, argv, n * sizeof(*argv));
	rc = options_read(&table, o, (int)n + 1, o->words, NULL, err);
	if (rc == 1)
		options_help(&table, stdout);
	if (rc == 0 && o->n_words < 2)
		rc = error_set(err, -EINVAL,
			       "expected up, status, logs or down, and a FILE "
			       "(see --help)");
	if (rc == 0 && o->verb != FLEET_UP && *o->controller_words)
		rc = error_set(err, -EINVAL, "only `fleet up` has options for the controller");
	return rc;
}
