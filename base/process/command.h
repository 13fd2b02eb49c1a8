/* command.h - runs another program as a child process, with limits.
 *
 * The operator's commands (a store, an alert) may hang, ignore SIGTERM, or leave processes behind.
 * A caller that must not wait runs them in a thread of its own.
 */
#ifndef BASE_PROCESS_COMMAND_H
#define BASE_PROCESS_COMMAND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct command {
	char *const *argv;        /* ends with NULL; argv[0] is looked up in PATH */
	char *const *environment; /* ends with NULL; NULL: the environment of this process */
	int in, out;              /* standard input and output of the command; -1: /dev/null */
	int64_t limit_us;         /* the command is ended after this time; 0: no limit */
	/* The command is ended within seconds once this is true. NULL: never */
	const atomic_bool *stopped;
};

/* Runs the command in a process group of its own, with no signal blocked or ignored, and waits for
 * its end. After the limit the group gets SIGTERM and, a second later, SIGKILL. Errors: -EIO: it
 * failed; -ETIMEDOUT; -ECANCELED: `stopped` became true; another negative errno: it could not be
 * started. The message says what happened ("failed with exit status 1"), and contains no word of
 * argv, because a command may contain secrets. */
int command_run(const struct command *c, struct error *err);

/* Returns true if the program is in a folder of PATH. */
bool command_is_installed(const char *program);

#endif
