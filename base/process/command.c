/* command.c - starts a command in a process group, waits for its end, and ends it after the time
 * limit. */
#include "base/process/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/ending.h"

extern char **environ;

enum {
	PATH = 4096,
	LOOK_US = 20000, /* time between two checks if the command must be stopped */
	END_US = 1000000 /* time between SIGTERM and SIGKILL */
};

bool command_is_installed(const char *program)
{
	const char *at = getenv("PATH");
	char path[PATH];

	while (at && *at) {
		size_t n = strcspn(at, ":");

		if (snprintf(path, sizeof(path), "%.*s/%s", (int)n, at, program) < PATH &&
		    access(path, X_OK) == 0)
			return true;
		at += n + (at[n] == ':');
	}
	return false;
}

static void redirect(posix_spawn_file_actions_t *actions, int fd, int to)
{
	if (fd < 0)
		posix_spawn_file_actions_addopen(actions, to, "/dev/null",
						 to == STDIN_FILENO ? O_RDONLY : O_WRONLY, 0);
	else
		posix_spawn_file_actions_adddup2(actions, fd, to);
}

static int start_command(const struct command *c, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	redirect(&actions, c->in, STDIN_FILENO);
	redirect(&actions, c->out, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	rc = posix_spawnp(pid, c->argv[0], &actions, &attributes, c->argv,
			  c->environment ? c->environment : environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

int command_run(const struct command *c, struct error *err)
{
	const int64_t begun_us = clock_monotonic_us();
	bool late = false, stopped = false;
	int status = 0;
	pid_t pid;
	int rc = start_command(c, &pid);

	if (rc != 0)
		return error_set(err, -rc, "cannot be started: %s", strerror(rc));
	while (!stopped && !late && process_wait(pid, LOOK_US, &status) != 0) {
		late = c->limit_us > 0 && clock_monotonic_us() - begun_us > c->limit_us;
		stopped = c->stopped && *c->stopped;
	}
	if (stopped || late)
		process_end(pid, true, END_US, &status);
	if (stopped)
		return error_set(err, -ECANCELED, "was ended");
	if (late)
		return error_set(err, -ETIMEDOUT, "has not ended for %.0f s and was killed",
				 (double)c->limit_us * 1e-6);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status))
		return error_set(err, -EIO, "failed with exit status %d", WEXITSTATUS(status));
	return error_set(err, -EIO, "was ended by signal %d", WTERMSIG(status));
}
