/* skippipe VERB: the command that an operator types. It runs the program that implements the verb.
 * Some verbs are part of this program: the demo, the rehearsal, the drill, the fleet, and `agent`
 * with several devices. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process/output.h"
#include "cli/agents.h"
#include "cli/args.h"
#include "cli/demo.h"
#include "cli/drill.h"
#include "cli/fleet/command.h"
#include "cli/rehearse.h"
#include "cli/verbs.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

static int say_unknown_verb(const char *name)
{
	const struct verb *nearest = verbs_nearest(name);

	fprintf(stderr, "skippipe: there is no verb \"%s\"", name);
	if (nearest)
		fprintf(stderr, "; did you mean \"%s\"?\n", nearest->name);
	else
		fputs("; skippipe --help lists them\n", stderr);
	return EXIT_USAGE;
}

/* Replaces this process by the verb's program. argv: the arguments after the verb. */
static int exec_program(const struct verb *verb, char **argv)
{
	struct args args = { 0 };
	struct error err;
	char path[PATH_MAX];

	if (verbs_program(verb->program, path, sizeof(path), &err) != 0) {
		fprintf(stderr, "skippipe: %s\n", err.text);
		return EXIT_FAILED;
	}
	args_add(&args, path);
	if (verb->passed)
		args_add(&args, verb->name);
	for (; *argv; argv++)
		args_add(&args, *argv);
	execv(path, args.list);
	fprintf(stderr, "skippipe: %s: %s\n", path, strerror(errno));
	args_free(&args);
	return EXIT_FAILED;
}

/* Runs a verb. argv: the verb and the words after it; ends with NULL. */
static int run_verb(char **argv)
{
	const struct verb *verb = verbs_find(argv[0]);

	if (!verb)
		return say_unknown_verb(argv[0]);
	if (strcmp(verb->name, "agent") == 0 && agents_wanted(argv + 1))
		return agents_main(argv + 1);
	if (verb->program)
		return exec_program(verb, argv + 1);
	if (strcmp(verb->name, "drill") == 0)
		return drill_main(argv);
	if (strcmp(verb->name, "fleet") == 0)
		return fleet_main(argv + 1);
	if (strcmp(verb->name, "rehearse") == 0)
		return rehearse_main(argv);
	return demo_main(false, argv);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	output_check_at_exit("skippipe");
	/* If the parent ignores SIGCHLD, this process inherits that. The kernel would then drop the
	 * exit status of every child. */
	signal(SIGCHLD, SIG_DFL);
	if (!name) {
		verbs_print(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(name, "--version") == 0) {
		puts("skippipe " SKIPPIPE_VERSION);
		return 0;
	}
	if (strcmp(name, "help") == 0 && argc > 2)
		return run_verb((char *[]){ argv[2], (char *)"--help", NULL });
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		verbs_print(stdout);
		return 0;
	}
	return run_verb(argv + 1);
}
