/* command.h - runs another program as a child process, with limits.
 *
 * The operator's commands (for copying checkpoints, for alerts) may hang, ignore SIGTERM, or leave
 * processes running. A caller that must not wait runs them in a thread of its own.
 */
#ifndef BASE_PROCESS_COMMAND_H
#define BASE_PROCESS_COMMAND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct command {
	/* The command and its arguments, ended by NULL; argv[0] is looked up in PATH. */
	char *const *argv;
	/* Variables of the environment, ended by NULL; NULL: the variables of this process. */
	char *const *environment;
	int in, out;              /* standard input and output of the command; -1: /dev/null */
	int64_t limit_us;         /* the command is ended after this time; 0: no limit */
	/* The command is ended within seconds once this becomes true; NULL: never. */
	const atomic_bool *stopped;
};

/* Runs the command in a process group of its own, with no signal blocked or ignored, and waits for
 * its end. After the limit the group gets SIGTERM and, a second later, SIGKILL. Errors: -EIO: the
 * command failed; -ETIMEDOUT: it exceeded the limit; -ECANCELED: `stopped` became true; another
 * negative errno: the command could not be started. The message says what happened ("failed with
 * exit status 1"), and contains no word of argv, because a command may contain secrets. */
int command_run(const struct command *c, struct error *err);

/* Returns true if the program is in a folder of PATH. */
bool command_is_installed(const char *program);

#endif
