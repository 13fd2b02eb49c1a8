/* remote.c - runs the commands of a store off the machine. The commands have a process group of
 * their own, so that Ctrl-C in a terminal does not end an upload in the middle. Each command has a
 * limit, because a store that hangs would otherwise keep a run from ending. */
#include "model/files/remote.h"

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
#include "base/file.h"
#include "base/process/ending.h"
#include "model/hash.h"

extern char **environ;

enum {
	PATH = 4096,
	BLOCK = 1 << 20,
	LOOK_US = 20000, /* time between two looks at the request to stop */
	END_US = 1000000 /* time between SIGTERM and SIGKILL */
};

static const char rclone_prefix[] = "rclone:";

static bool is_rclone(const char *to)
{
	return strncmp(to, rclone_prefix, sizeof(rclone_prefix) - 1) == 0;
}

static bool is_installed(const char *program)
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

int remote_check(const char *to, struct error *err)
{
	if (strlen(to) > PATH)
		return error_set(err, -ENAMETOOLONG, "the store's command is too long");
	if (is_rclone(to) && !is_installed("rclone"))
		return error_set(err, -ENOENT, "the program rclone is not installed here");
	return 0;
}

static int hash_file(const char *path, uint64_t *hash, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct hash *h = malloc(sizeof(*h));
	char *block = malloc(BLOCK);
	ssize_t n = -1;

	if (h && block && fd >= 0) {
		hash_begin(h);
		while ((n = read(fd, block, BLOCK)) > 0)
			hash_add(h, block, (size_t)n);
	}
	if (n < 0)
		error_set(err, -errno, "%s: %s", path, strerror(errno));
	else
		*hash = hash_end(h);
	if (fd >= 0)
		close(fd);
	free(h);
	free(block);
	return n < 0 ? -EIO : 0;
}

/* Starts the command with its input and output, and with no signal blocked. */
static int start(char *const *argv, const char *in, const char *out, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, in, O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC,
					 FILE_RESULT);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	rc = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

/* Waits for the command, and ends one that is stopped or takes too long. */
static int wait_for(struct remote *r, pid_t pid, const char *verb, const char *name,
		    struct error *err)
{
	const int64_t begun_us = clock_monotonic_us();
	int status = 0;
	bool late = false;

	while (!r->stopped && !late && process_wait(pid, LOOK_US, &status) != 0)
		late = r->limit_us > 0 && clock_monotonic_us() - begun_us > r->limit_us;
	if (r->stopped || late)
		process_end(pid, true, END_US, &status);
	if (r->stopped)
		return error_set(err, -ECANCELED, "the store: %s %s was ended", verb, name);
	if (late)
		return error_set(err, -ETIMEDOUT,
				 "the store: %s %s has not ended for %.0f s and was killed", verb,
				 name, (double)r->limit_us * 1e-6);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status))
		return error_set(err, -EIO, "the store: %s %s failed with exit status %d", verb,
				 name, WEXITSTATUS(status));
	return error_set(err, -EIO, "the store: %s %s was ended by signal %d", verb, name,
			 WTERMSIG(status));
}

/* Runs `verb NAME` with the file at path as its input or output. */
static int run(struct remote *r, bool put, const char *name, const char *path, struct error *err)
{
	const char *verb = put ? "put" : "get";
	char line[2 * PATH], far[2 * PATH];
	char *const shell[] = { "sh", "-c", line, "sh", (char *)verb, (char *)name, NULL };
	char *const rclone[] = { "rclone", "copyto", put ? (char *)path : far,
				 put ? far : (char *)path, NULL };
	pid_t pid;
	int rc;

	snprintf(line, sizeof(line), "%s \"$@\"", r->to);
	snprintf(far, sizeof(far), "%s/%s", r->to + sizeof(rclone_prefix) - 1, name);
	if (r->stopped)
		return error_set(err, -ECANCELED, "the store: %s %s was ended", verb, name);
	if (strlen(r->to) > PATH)
		return error_set(err, -ENAMETOOLONG, "the store's command is too long");
	if (is_rclone(r->to))
		rc = start(rclone, "/dev/null", "/dev/null", &pid);
	else
		rc = start(shell, put ? path : "/dev/null", put ? "/dev/null" : path, &pid);
	if (rc != 0)
		return error_set(err, -rc, "the store: %s cannot be started: %s",
				 is_rclone(r->to) ? "rclone" : "sh", strerror(rc));
	return wait_for(r, pid, verb, name, err);
}

int remote_get(struct remote *r, const char *name, const char *path, uint64_t *hash,
	       struct error *err)
{
	char aside[FILE_ASIDE], *slash;
	int rc, lock;

	snprintf(aside, sizeof(aside), "%s", path);
	slash = strrchr(aside, '/');
	if (slash)
		*slash = 0;
	rc = slash ? file_make_folder(aside, err) : 0;
	if (rc != 0)
		return rc;
	lock = file_make_aside(aside, path, FILE_RESULT);
	if (lock < 0)
		return error_set(err, lock, "%s: %s", path, strerror(-lock));
	rc = run(r, false, name, aside, err);
	if (rc == 0)
		rc = hash_file(aside, hash, err);
	if (rc == 0 && rename(aside, path) != 0)
		rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (rc != 0)
		unlink(aside);
	close(lock);
	return rc;
}

int remote_put(struct remote *r, const char *name, const char *path, struct error *err)
{
	char again[PATH + 16];
	uint64_t here = 0, there = 0;
	int rc = hash_file(path, &here, err);

	snprintf(again, sizeof(again), "%s.check", path);
	if (rc == 0)
		rc = run(r, true, name, path, err);
	if (rc == 0)
		rc = remote_get(r, name, again, &there, err);
	unlink(again);
	if (rc == 0 && here != there)
		rc = error_set(err, -EBADMSG, "the store: %s came back with other bytes", name);
	return rc;
}

void remote_stop(struct remote *r)
{
	r->stopped = true;
}
